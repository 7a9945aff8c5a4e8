// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// AsyncQueue: the events that an application reads from ibv_context::async_fd.
//
// A socket pair of sequenced packets rather than a pipe: one record is one message, and records of
// an object that is being destroyed can be taken out again, as in the kernel. Records that do not
// fit wait in a list: none is ever lost. Any thread.
#pragma once

#include "base/result.h"
#include "host_abi/provider/abi/verbs_abi.h"
#include "platform/control_channel.h"

#include <cstdint>
#include <deque>
#include <mutex>

namespace ib::host_abi {

class AsyncQueue {
 public:
  AsyncQueue() = default;
  AsyncQueue(const AsyncQueue&) = delete;
  AsyncQueue& operator=(const AsyncQueue&) = delete;
  ~AsyncQueue();

  // Ok, TooManyHandles, InsufficientResources.
  Status open();
  int application_fd() const { return application_end_; }
  // The application's end, which the caller closes from here on (for libibverbs:
  // verbs_uninit_context). Until then it ends with the queue.
  int hand_over();

  // Makes `fd`, an open descriptor of the application and to be closed by it, the application's
  // end. Returns false with errno on failure.
  bool take_number(int fd);

  void post(const AsyncEventRecord& record);
  // After the application has read: moves waiting records into the socket.
  void flush();
  // Takes out the unread records of `element`, and returns their number. Records of ports and
  // devices carry a number there, never an address, so they do not match.
  std::uint32_t purge(std::uint64_t element);

 private:
  bool send(const AsyncEventRecord& record) const;
  void flush_locked();

  std::mutex mutex_;
  int application_end_ = -1;
  std::uint64_t application_file_ = 0;  // the program may close it at any time
  platform::NativeHandle our_end_;
  bool handed_over_ = false;
  std::deque<AsyncEventRecord> waiting_;
};

}  // namespace ib::host_abi
