// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Waiting for rsockets and descriptors of the kernel together. It polls for some time, then sleeps
// in librdmacm's rpoll(), whose own call of poll() comes back to poll_calls.cpp: there the
// program's signal mask is in force, so that no signal is lost between mask and sleep.
#pragma once

#include "host_abi/sockets/table.h"

#include <poll.h>

#include <csignal>
#include <cstdint>
#include <ctime>

namespace ib::host_abi::sockets {

// Nanoseconds of the monotonic clock.
std::int64_t now();

class Deadline {
 public:
  // There is none if `timeout` is nullptr.
  explicit Deadline(const timespec* timeout);
  static Deadline after_ms(int milliseconds);  // negative: none

  bool is_over() const { return has_ && now() >= at_; }
  bool is_zero() const { return zero_; }
  // For poll(): rounded up; -1: no limit.
  int left_ms() const;
  const Deadline* operator->() const { return this; }

 private:
  bool has_ = false;
  bool zero_ = false;
  std::int64_t at_ = 0;
};

// How long a thread polls before it sleeps: a good deal longer than an answer takes.
inline constexpr std::int64_t kPollTime = 40'000;

// Returns the events that rpoll() reports now, or 0. POLLERR also if the peer has been killed.
short look_at(Socket& socket, short events);

// Sleeps until rpoll() may have something to report, or for a quarter of a second (returns 0).
// -1, EINTR: a signal came. `mask` may be nullptr. `news`: count_of_news() before the caller's last
// look at what it waits for (sleepers.h).
int sleep_in_rpoll(pollfd* entries, nfds_t count, const Deadline& deadline, const sigset_t* mask,
                   std::uint32_t news);
// This thread is in there, so a call of poll() or sched_yield() may be rpoll()'s, and what they do:
// sleep, and wait until threads that have been woken are out of rpoll(). Meanwhile the rsockets are
// not locked.
bool is_sleeping();
int poll_of_sleep(pollfd* entries, nfds_t count);
void pause_of_sleep();

// The calls of poll() of librdmacm's own threads. The channel of a listener hangs up when softibd
// is gone, and the thread that takes its requests would read it without end; an adapter's channel
// is silent then.
int poll_of_librdmacm(pollfd* entries, nfds_t count, int timeout);

// Sleeps end too when the connection manager has news of this rsocket. It has some when a peer is
// gone that has not said goodbye, and long before rsockets take notice.
void watch(int rs);
// Returns whether the peer of a connection is gone without a goodbye, by news that have come.
bool is_lost(Socket& socket);
void unwatch(int rs);

// `rs` listens. A thread of librdmacm takes its connection requests from its channel and hands the
// connections over through a queue. rpoll() of librdmacm 44 sleeps on the channel, so it wakes too
// early and then not again; sleeps here wait for the queue instead.
void watch_queue_of(int rs);
// The same for a call of poll() while the thread is in watch_queue_of(): that of the queue.
bool is_looking_for_queue();
void found_queue(int fd);
// `rs`, which listens, ends: when this returns, librdmacm's thread takes no more requests for it.
void end_requests(int rs);

}  // namespace ib::host_abi::sockets
