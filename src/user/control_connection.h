// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ControlConnection: the main connection of a process to softibd: control calls, which may wait
// (for quiescence), and calls whose answer nobody waits for.
#pragma once

#include "base/result.h"
#include "platform/client_host.h"
#include "user/api.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace ib::user {

// Remembers why a call failed on this thread (last_reason()).
Status failed(Status status, std::string reason);

class ControlConnection {
 public:
  explicit ControlConnection(platform::ClientHost& host) : host_(host) {}
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;
  ~ControlConnection();

  Status connect(std::string& reason);
  // Calls that wait, and all that follow, end with Disconnected. Any thread.
  void shut_down() { channel_->shut_down(); }
  // False in a child that was forked after connect(): nothing of this is the child's.
  bool is_mine() const { return host_.process_number() == process_number_; }
  // Held while objects of this process are made, changed or destroyed.
  std::mutex& control_lock() { return control_lock_; }

  // The answer as it comes.
  platform::ControlReply exchange(control::Code code, std::uint32_t file,
                                  std::span<const std::byte> in, std::span<std::byte> out,
                                  std::span<const int> handles = {}) {
    return channel_->call(static_cast<std::uint32_t>(code), file, in, out, handles);
  }
  // A control call; out-parameters are plain structs of verbs/control.h.
  template <class In>
  Result<std::uint64_t> call(control::Code code, std::uint32_t file, const In& in,
                             std::span<std::byte> out = {}, std::span<const int> handles = {}) {
    return call_bytes(code, file, std::as_bytes(std::span(&in, 1)), out, handles);
  }
  template <class In, class Out>
  Result<std::uint64_t> call_for(control::Code code, std::uint32_t file, const In& in, Out& out) {
    return call_bytes(code, file, std::as_bytes(std::span(&in, 1)),
                      std::as_writable_bytes(std::span(&out, 1)), {});
  }
  Result<std::uint64_t> call_bytes(control::Code code, std::uint32_t file,
                                   std::span<const std::byte> in, std::span<std::byte> out,
                                   std::span<const int> handles);
  // A control call that only the end of its object can refuse: nobody waits for its answer. Returns
  // false if that is not possible now: then call(). Under the control lock.
  template <class In>
  bool submit(control::Code code, std::uint32_t file, const In& in) {
    if (!channel_->submit(static_cast<std::uint32_t>(code), file,
                          std::as_bytes(std::span(&in, 1)))) {
      return false;
    }
    submitted_.store(++submissions_, std::memory_order_release);
    return true;
  }
  // Waits until softibd has executed what was submitted before, or is gone. Not in an OpScope, nor
  // on the service thread: calls may wait for these.
  void settle() {
    if (submitted_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wait_for_submitted();
  }

 private:
  void wait_for_submitted();

  platform::ClientHost& host_;
  std::uint64_t process_number_ = 0;
  std::unique_ptr<platform::ControlChannel> channel_;
  std::mutex control_lock_;
  // The number of the last call that was submitted; 0: softibd has executed it.
  std::atomic<std::uint64_t> submitted_{0};
  std::uint64_t submissions_ = 0;
};

}  // namespace ib::user
