// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/wait.h"

#include "host_abi/sockets/cancellation.h"
#include "host_abi/sockets/closed_numbers.h"
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/scratch.h"
#include "host_abi/sockets/data.h"
#include "host_abi/sockets/rdma.h"
#include "host_abi/sockets/rsocket_locks.h"
#include "host_abi/sockets/sleepers.h"
#include "host_abi/sockets/switch.h"

#include <fcntl.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <utility>

namespace ib::host_abi::sockets {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr int kLongestSleep = 250;  // ms
constexpr int kLookAgain = 1;       // ms; for what another thread is ending
constexpr long kPause = 20'000;     // ns
constexpr int kMostPauses = 10'000;

// A call of rpoll(), for what comes back from it.
struct Sleep {
  const pollfd* entries;  // of the caller
  nfds_t count;
  const pollfd* asked;  // those of them that rpoll() got
  nfds_t asked_count;
  int limit;  // ms
  const sigset_t* mask;
  AllAlone* locks;
  std::uint32_t news;  // count of the caller's last look
  int sleeper;         // of its Sleeper
  bool is_over = false;
};
constinit thread_local Sleep* sleep_of_thread = nullptr;

// The number of an rsocket is that of the descriptor that its cm_id has for events. After the
// connection is made it has one: that of its end.
enum class Events : std::uint8_t { Ignored, Watched, Readable };
constinit std::array<std::atomic<Events>, kMostDescriptors> event_channels{};

// Of rsockets that listen: their queue, kEnding, or 0. Relaxed: a listener is noted before other
// threads get to it, and a poll for its end misses it at most until the next one.
constinit std::array<std::atomic<int>, kMostDescriptors> queues{};
constexpr int kEnding = -1;
// Threads of librdmacm that take requests. One of them looks for kEnding after it is counted, and
// end_requests() looks at the count after it has stored that.
constinit std::atomic<int> taking{0};
constinit thread_local bool takes = false;
constinit thread_local bool looking_for_queue = false;
constinit thread_local int queue_found = 0;

// Returns the descriptor to wait for instead of `fd`, which rpoll() has chosen.
int sleep_fd_of(int fd) {
  if (fd < 0 || fd >= kMostDescriptors) return fd;
  const int queue = queues[static_cast<std::size_t>(fd)].load(std::memory_order_relaxed);
  return queue > 0 ? queue : fd;
}

std::atomic<Events>* channel_of(int rs) {
  if (rs < 0 || rs >= kMostDescriptors) return nullptr;
  return &event_channels[static_cast<std::size_t>(rs)];
}

bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return real::poll(&entry, nfds_t{1}, 0) > 0;
}

}  // namespace

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

Deadline::Deadline(const timespec* timeout) {
  if (timeout == nullptr || timeout->tv_sec > INT_MAX) return;
  has_ = true;
  zero_ = timeout->tv_sec == 0 && timeout->tv_nsec == 0;
  at_ = now() + std::int64_t{timeout->tv_sec} * kSecond + timeout->tv_nsec;
}

Deadline Deadline::after_ms(int milliseconds) {
  if (milliseconds < 0) return Deadline(nullptr);
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
  return Deadline(&time);
}

int Deadline::left_ms() const {
  if (!has_) return -1;
  const std::int64_t left = (at_ - now() + 999'999) / 1'000'000;
  return left < 0 ? 0 : left > INT_MAX ? INT_MAX : static_cast<int>(left);
}

int sleep_in_rpoll(pollfd* entries, nfds_t count, const Deadline& deadline, const sigset_t* mask,
                   std::uint32_t news) {
  look_for_closed();
  const Rdma* api = loaded_rdma();
  const int limit = deadline.left_ms();
  int left = limit < 0 ? kLongestSleep : std::min(limit, kLongestSleep);
  if (api == nullptr) {
    const timespec time{left / 1000, left % 1000 * 1'000'000L};
    return real::ppoll(entries, count, &time, mask);
  }
  AllAlone locks(entries, count);
  Scratch<pollfd, 64> asked(count);
  Scratch<nfds_t, 64> place(count);
  if (!locks.valid() || asked.get() == nullptr || place.get() == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  const Sleeper sleeper;
  const Inside inside;
  locks.take();
  nfds_t used = 0;
  for (nfds_t i = 0; i < count; ++i) {
    entries[i].revents = 0;
    if (entries[i].fd < 0) continue;
    if (!locks.has(entries[i].fd)) {
      left = std::min(left, kLookAgain);
      continue;
    }
    place[used] = i;
    asked[used++] = entries[i];
  }
  // Without a time limit: rpoll() of librdmacm 44 counts a thread whose time is over as one that
  // still sleeps, and lets none sleep again after the next wake-up. The limit is put into its
  // poll().
  Sleep sleep{entries, count, asked.get(), used, left, mask, &locks, news, sleeper.fd()};
  Sleep* const outer = std::exchange(sleep_of_thread, &sleep);  // of what a signal interrupted
  const int result = api->poll(asked.get(), used, -1);
  sleep_of_thread = outer;
  for (nfds_t i = 0; i < used; ++i) entries[place[i]].revents = asked[i].revents;
  return result < 0 && sleep.is_over ? 0 : result;
}

bool is_sleeping() {
  return sleep_of_thread != nullptr;
}

namespace {

// Waits for the descriptors that rpoll() has chosen (`entries`) and for the events of connections
// that the sleep watches. Returns the number of the former that are ready.
int sleep_for_all(const Sleep& sleep, pollfd* entries, nfds_t count, pollfd* all) {
  std::copy_n(entries, count, all);
  for (nfds_t i = 0; i < count; ++i) all[i].fd = sleep_fd_of(entries[i].fd);
  nfds_t used = count;
  if (sleep.sleeper >= 0) all[used++] = {sleep.sleeper, POLLIN, 0};
  const nfds_t first_watched = used;
  bool news = count_of_news() != sleep.news;
  for (nfds_t i = 0; i < sleep.count; ++i) {
    const std::atomic<Events>* channel = channel_of(sleep.entries[i].fd);
    const Events state = channel == nullptr ? Events::Ignored : channel->load();
    if (state == Events::Watched) all[used++] = {sleep.entries[i].fd, POLLIN, 0};
    news |= state == Events::Readable;
  }
  const timespec time{sleep.limit / 1000, sleep.limit % 1000 * 1'000'000L};
  const timespec none{};
  sleep.locks->release();
  const int depth = std::exchange(Inside::depth, 0);  // rpoll() has no lock here
  int result = real::ppoll(all, used, news ? &none : &time, sleep.mask);
  const int error = errno;
  Inside::depth = depth;
  sleep.locks->take();
  errno = error;
  for (nfds_t i = count; result > 0 && i < used; ++i) {
    if (all[i].revents == 0) continue;
    if (i >= first_watched) channel_of(all[i].fd)->store(Events::Readable);
    --result;
  }
  for (nfds_t i = 0; i < count; ++i) entries[i].revents = all[i].revents;
  return result;
}

}  // namespace

int poll_of_sleep(pollfd* entries, nfds_t count) {
  Sleep& sleep = *sleep_of_thread;
  Scratch<pollfd, 64> all(count + sleep.count + 1);
  if (all.get() == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  int result = sleep_for_all(sleep, entries, count, all.get());
  for (nfds_t i = 0; result > 0 && i < sleep.asked_count; ++i) {
    // Another thread ends it, and reads its events meanwhile.
    if (entries[i].revents == 0 || sleep.locks->has(sleep.asked[i].fd)) continue;
    entries[i].revents = 0;
    --result;
  }
  if (result != 0) return result;
  sleep.is_over = true;
  errno = EINTR;
  return -1;
}

void pause_of_sleep() {
  const timespec time{0, kPause};
  const Sleep& sleep = *sleep_of_thread;
  const auto has_all = [&] {
    return std::all_of(sleep.asked, sleep.asked + sleep.asked_count,
                       [&](const pollfd& one) { return sleep.locks->has(one.fd); });
  };
  do {
    sleep.locks->release();
    static_cast<void>(real::ppoll(nullptr, nfds_t{0}, &time, nullptr));
    sleep.locks->take();
  } while (!has_all());
}

void watch(int rs) {
  auto* channel = channel_of(rs);
  if (channel == nullptr) return;
  real::fcntl(rs, F_SETFL, O_NONBLOCK);  // nobody waits for these events by reading them
  queues[static_cast<std::size_t>(rs)].store(0, std::memory_order_relaxed);
  channel->store(Events::Watched);
}

void unwatch(int rs) {
  auto* channel = channel_of(rs);
  if (channel == nullptr) return;
  channel->store(Events::Ignored);
  queues[static_cast<std::size_t>(rs)].store(0, std::memory_order_relaxed);
}

void watch_queue_of(int rs) {
  const Rdma* api = loaded_rdma();
  if (api == nullptr || channel_of(rs) == nullptr) return;
  pollfd entry{rs, POLLIN, 0};
  queue_found = 0;
  looking_for_queue = true;
  api->poll(&entry, 1, 0);
  looking_for_queue = false;
  queues[static_cast<std::size_t>(rs)].store(queue_found, std::memory_order_relaxed);
}

namespace {

// A thread of librdmacm takes requests from one call without a time limit to the next. The first
// entry has the orders for it, the last one too: then the requests have to come again.
int poll_of_service(pollfd* entries, nfds_t count, int timeout) {
  if (std::exchange(takes, false)) taking.fetch_sub(1);
  const int result = real::poll(entries, count, timeout);
  if (timeout >= 0 || count < 2 || result <= 0) return result;
  if (entries[0].revents != 0) {
    for (nfds_t i = 1; i < count; ++i) entries[i].revents = 0;
    return 1;
  }
  takes = true;
  taking.fetch_add(1);
  return result;
}

}  // namespace

void end_requests(int rs) {
  if (channel_of(rs) == nullptr) return;
  queues[static_cast<std::size_t>(rs)].store(kEnding);
  const timespec time{0, kPause};
  for (int i = 0; i < kMostPauses && taking.load() > 0; ++i) {
    static_cast<void>(real::ppoll(nullptr, nfds_t{0}, &time, nullptr));
  }
}

int poll_of_librdmacm(pollfd* entries, nfds_t count, int timeout) {
  const int result = poll_of_service(entries, count, timeout);
  const auto is_dead = [](const pollfd& one) {
    if (one.revents == 0 || one.fd < 0 || one.fd >= kMostDescriptors) return false;
    const int queue = queues[static_cast<std::size_t>(one.fd)].load();
    return queue == kEnding || (queue > 0 && (one.revents & POLLHUP) != 0);
  };
  if (result <= 0 || std::none_of(entries, entries + count, is_dead)) return result;
  Scratch<pollfd, 64> others(count);
  if (others.get() == nullptr) return result;
  for (nfds_t i = 0; i < count; ++i) {
    others[i] = entries[i];
    if (is_dead(entries[i])) others[i].fd = -1;
  }
  const int left = poll_of_service(others.get(), count, timeout);
  for (nfds_t i = 0; i < count; ++i) entries[i].revents = others[i].revents;
  return left;
}

bool is_looking_for_queue() {
  return looking_for_queue;
}

void found_queue(int fd) {
  queue_found = fd;
}

namespace {

short look_at_rsocket(const Rdma* api, Socket& socket, short events) {
  const int rs = socket.rs.load();
  const Alone alone(rs);
  if (!alone.valid()) return socket.lost.load() ? POLLERR : 0;
  pollfd entry{rs, events, 0};
  if (api->poll(&entry, 1, 0) <= 0) entry.revents = 0;
  std::atomic<Events>* channel = channel_of(rs);
  if (channel != nullptr && channel->load() == Events::Readable) {
    // The first look may have read the last event of the making of the connection.
    if (!is_readable(rs) || !take_event_of_end(*api, rs)) {
      channel->store(Events::Watched);
    } else {
      channel->store(Events::Ignored);
      // All that the peer has sent has come before this event, its goodbye too.
      pollfd last{rs, events, 0};
      if (api->poll(&last, 1, 0) > 0) entry.revents = last.revents;
      if ((last.revents & (POLLHUP | POLLERR)) == 0) socket.lost.store(true);
    }
  }
  return socket.lost.load() ? static_cast<short>(entry.revents | POLLERR) : entry.revents;
}

}  // namespace

bool is_lost(Socket& socket) {
  const int rs = socket.rs.load();
  std::atomic<Events>* channel = channel_of(rs);
  if (channel != nullptr && channel->load() == Events::Watched && is_readable(rs)) {
    channel->store(Events::Readable);
    look_at(socket, 0);
  }
  return socket.lost.load();
}

short look_at(Socket& socket, short events) {
  const Rdma* api = loaded_rdma();
  if (api == nullptr) return 0;
  const short found = look_at_rsocket(api, socket, events);
  const bool is_readable = socket.aside.size() > 0 || socket.read_shut.load();
  return is_readable ? static_cast<short>(found | (events & POLLIN)) : found;
}

short ask_for(short asked) {
  short result = 0;
  if ((asked & (POLLIN | POLLRDNORM | POLLRDHUP)) != 0) result |= POLLIN;
  if ((asked & (POLLOUT | POLLWRNORM)) != 0) result |= POLLOUT;
  return result;
}

namespace {

// The stream has ended: rsockets report that as something to read.
bool is_at_end(Socket& socket) {
  const Rdma* api = loaded_rdma();
  if (api == nullptr || !socket.is_own()) return false;
  if (socket.read_shut.load()) return true;
  if (socket.aside.size() > 0) return false;
  const Alone alone(socket.rs.load());
  char byte = 0;
  return alone.valid() && api->recv(socket.rs.load(), &byte, 1, MSG_PEEK) == 0;
}

}  // namespace

short translate(Socket& socket, short asked, short reported) {
  const int readable = asked & (POLLIN | POLLRDNORM);
  const int writable = asked & (POLLOUT | POLLWRNORM);
  int result = 0;
  if ((reported & POLLIN) != 0) {
    result |= readable;
    if ((asked & POLLRDHUP) != 0 && is_at_end(socket)) result |= POLLRDHUP;
  }
  if ((reported & POLLOUT) != 0) result |= writable;
  if ((reported & (POLLERR | POLLNVAL)) != 0) {
    result |= readable | writable | (asked & POLLRDHUP) | POLLERR | POLLHUP;
  } else if ((reported & POLLHUP) != 0) {
    // The peer has closed. TCP calls that hang-up only when this side has ended its part too.
    result |= readable | writable | (asked & POLLRDHUP);
    if (socket.write_shut.load()) result |= POLLHUP;
  }
  return static_cast<short>(result);
}

namespace {

// A thread that waits to read: its socket is not read ahead meanwhile.
class Reading {
 public:
  Reading(Socket& socket, bool reads) : socket_(socket), reads_(reads) {
    if (reads) socket.readers.fetch_add(1);
  }
  ~Reading() {
    if (reads_) socket_.readers.fetch_sub(1);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  Socket& socket_;
  bool reads_;
};

Deadline deadline_of(int fd, bool reads) {
  timeval limit{};
  socklen_t length = sizeof limit;
  const int name = reads ? SO_RCVTIMEO : SO_SNDTIMEO;
  static_cast<void>(real::getsockopt(fd, SOL_SOCKET, name, static_cast<void*>(&limit), &length));
  const timespec time{limit.tv_sec, limit.tv_usec * 1000};
  const bool limited = limit.tv_sec != 0 || limit.tv_usec != 0;
  return Deadline(limited ? &time : nullptr);
}

}  // namespace

int wait_for(int fd, Socket& socket, short events) {
  const bool reads = (events & POLLIN) != 0;
  const short asked = ask_for(events);
  const std::int64_t start = now();
  do {
    if (look_at(socket, asked) != 0) return 0;
  } while (now() - start < kPollTime);
  const Deadline deadline = deadline_of(fd, reads);
  while (true) {
    const std::uint32_t news = count_of_news();
    end_if_cancelled();
    const Reading reading(socket, reads);
    if (look_at(socket, asked) != 0) return 0;
    if (deadline.is_over()) return EAGAIN;
    const SetAside ahead = reads ? SetAside::Never : set_aside(socket);
    if (ahead == SetAside::Some) continue;
    const int more = ahead == SetAside::NoneYet ? POLLIN : 0;
    pollfd entry{socket.rs.load(), static_cast<short>(asked | more), 0};
    if (sleep_in_rpoll(&entry, 1, deadline, nullptr, news) < 0) return errno;
  }
}

}  // namespace ib::host_abi::sockets
