// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a thread waits for a stream: it looks for some microseconds if that has paid of late, then
// sleeps in the kernel at the link.
#pragma once

#include "host_abi/streams/spin_habit.h"
#include "host_abi/streams/table.h"

#include <cstdint>

namespace ib::host_abi::stream_switch {

std::int64_t now_ns();

// SO_RCVTIMEO or SO_SNDTIMEO of a link, from the first wait of a call on.
class TimeLimit {
 public:
  TimeLimit(int fd, short events) : fd_(fd), events_(events) {}
  bool exists() { return deadline() != kNone; }
  bool is_over() { return exists() && now_ns() >= deadline(); }
  // As poll() takes it, at most `most`; -1: without limit.
  int left_ms(int most);

 private:
  static constexpr std::int64_t kNone = -1;
  static constexpr std::int64_t kUnread = -2;
  std::int64_t deadline();

  int fd_;
  short events_;
  std::int64_t deadline_ = kUnread;
};

// Waits until `stream` may be readable (POLLIN) or writable (POLLOUT). Returns 0, or an errno:
// EAGAIN if the time is over, EINTR if a call at a TCP socket would return it. A cancellation
// point, which gives back one reference of `stream` if the thread ends there.
int wait_for(int fd, Socket& stream, streams::End& end, short events, TimeLimit& limit);

// A message of some stream of this process waits for a port that is down. A thread that
// sleeps wakes each kStuckMs and lets it go on.
inline constexpr int kStuckMs = 10;
void note_if_stuck(const streams::End& end);
bool is_any_stuck();
void let_stuck_go_on();

}  // namespace ib::host_abi::stream_switch
