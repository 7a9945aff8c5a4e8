// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Each thread has a list of the links that it has left rung. Other threads find in the table who
// has left a stream (LeftBy).
#include "host_abi/streams/left_rung.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/streams/epoll_records.h"
#include "host_abi/streams/fabric.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/own_link.h"
#include "host_abi/streams/sandbox.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;

struct Left {
  int fd = -1;
  Socket* socket = nullptr;
  std::uint32_t use = 0;  // of the place in the table
  int home = -1;          // the set that the thread waited in (LeftBy)
  int set = -1;           // -1: it is in none now, or not for reading
  std::uint32_t events = 0;
  std::uint64_t data = 0;
};

class Lefts {
 public:
  std::span<Left> all() { return std::span(entries_).first(count_); }
  bool is_full() const { return count_ == entries_.size(); }
  void add(const Left& one) { entries_[count_++] = one; }
  Left* find(int fd, const Socket& socket) {
    for (Left& one : all()) {
      if (one.socket == &socket && one.fd == fd && is_in_use(one)) return &one;
    }
    return nullptr;
  }
  // Those that others have settled, or that were closed.
  void drop_settled() {
    std::size_t kept = 0;
    for (const Left& one : all()) {
      if (is_in_use(one) && left_by(*one.socket).is(this)) entries_[kept++] = one;
    }
    count_ = kept;
  }
  bool is_empty() const { return count_ == 0; }
  int count_of(int set) {
    const auto in_set = [set](const Left& one) { return one.home == set; };
    return static_cast<int>(std::count_if(all().begin(), all().end(), in_set));
  }

 private:
  static bool is_in_use(const Left& one) {
    return one.socket->uses.load(std::memory_order_relaxed) == one.use;
  }

  std::array<Left, 64> entries_{};
  std::size_t count_ = 0;
};

constinit thread_local Lefts here;
constinit thread_local int last_set = -1;
constinit thread_local bool has_changed = false;

constexpr std::uint32_t kIn = EPOLLIN | EPOLLRDNORM;
constexpr std::uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

// Where no other process, number or set has the stream.
bool is_alone(const Socket& stream, const streams::End& end) {
  return !is_in_sandbox() && !is_shared(stream) &&
         stream.numbers.load(std::memory_order_relaxed) == 1 &&
         end.shared().wants_edges.load(std::memory_order_relaxed) == 0;
}

// Those of level-triggered entries that more than one thread may wait for.
bool are_plain(std::uint32_t events) {
  constexpr std::uint32_t kPlain = kIn | EPOLLOUT | EPOLLWRNORM | EPOLLPRI | kEnds;
  return (events & ~kPlain) == 0;
}

// The set has it, as the kernel says.
bool add_to_list(int fd, Socket& stream) {
  const std::optional<EpollRecord> record = only_record(fd);
  if (!record || record->set != last_set || !are_plain(record->event.events) ||
      (record->event.events & kIn) == 0) {
    return false;
  }
  here.drop_settled();
  if (here.is_full()) return false;
  epoll_event event = record->event;
  const int error = errno;
  const bool has_it = real::epoll_ctl(record->set, EPOLL_CTL_MOD, fd, &event) == 0;
  errno = error;
  if (has_it)
    here.add(
        {fd, &stream, stream.uses.load(), last_set, last_set, event.events & kIn, event.data.u64});
  return has_it;
}

// The number may have been closed by system call and mean another file: only what was found by
// find() is used.
bool has_news(const Left& one) {
  {
    const Ref stream = find_unchecked(one.fd);
    if (!stream || &*stream != one.socket) return false;
    const streams::End* const end = opened_end_of(*stream);
    if (end == nullptr || !end->has_news()) return false;
  }
  const Ref stream = find(one.fd);
  if (!stream || &*stream != one.socket) return false;
  streams::End* const end = opened_end_of(*stream);
  if (end == nullptr) return false;
  const Inside inside;
  OwnLink link(one.fd);
  return end->is_readable(link);
}

// Of a number that was just found. Returns false if something has come to it.
bool settle(int fd, Socket& stream) {
  if (!stop_leaving(stream)) return true;
  streams::End* const end = end_of(stream);
  if (end == nullptr) return true;
  const Inside inside;
  OwnLink link(fd);
  return !end->settle_link(link);
}

bool is_among(std::span<const epoll_event> events, std::uint64_t data) {
  return std::any_of(events.begin(), events.end(),
                     [data](const epoll_event& one) { return one.data.u64 == data; });
}

}  // namespace

void note_wait(int set, bool looks) {
  last_set = looks ? set : -1;
}

// Another thread's is settled, and one that will not be left any more.
void begin_control(int fd, int operation, const epoll_event* event) {
  has_changed = true;
  if (!is_any_left()) return;
  const Ref stream = find_unchecked(fd);
  if (!stream || !left_by(*stream).is_anybody()) return;
  const bool stays = left_by(*stream).is(&here) &&
                     (operation == EPOLL_CTL_DEL || (event != nullptr && are_plain(event->events)));
  if (!stays) settle_left(fd);
}

void end_control(int fd) {
  if (here.is_empty()) return;
  const Ref stream = find_unchecked(fd);
  Left* const one = stream ? here.find(fd, *stream) : nullptr;
  if (one == nullptr) return;
  const std::optional<EpollRecord> record = only_record(fd);
  if (has_epoll_records(fd) && (!record || record->set != one->home)) {
    settle_left(fd);
    return;
  }
  one->events = record ? record->event.events & kIn : 0;
  one->data = record ? record->event.data.u64 : 0;
  one->set = one->events != 0 ? one->home : -1;
}

bool take_changed() {
  return std::exchange(has_changed, false);
}

bool may_leave_rung(int fd, Socket& stream, const streams::End& end) {
  if (!has_place(last_set) || stream.is_never_left.load(std::memory_order_relaxed)) return false;
  if (!is_alone(stream, end)) return false;
  if (const LeftBy by = left_by(stream); by.is_anybody() && !by.is(&here)) return false;
  const Left* const one = here.find(fd, stream);
  if (one != nullptr ? one->home != last_set : !add_to_list(fd, stream)) return false;
  begin_leaving(stream, LeftBy(&here, last_set));
  return true;
}

void note_read(Socket& stream, bool left_rung) {
  if (!left_rung) stop_leaving(stream);
}

bool is_any_left_here() {
  if (!here.is_empty()) here.drop_settled();
  return !here.is_empty();
}

int find_left(int set, epoll_event* events, int room) {
  int found = 0;
  for (const Left& one : here.all()) {
    if (found == room) break;
    if (one.set != set || !has_news(one)) continue;
    events[found].events = one.events;
    events[found++].data.u64 = one.data;
  }
  return found;
}

int filter_left(int set, epoll_event* events, int made, int found) {
  int kept = made;
  bool is_unknown = false;
  for (int i = made; i < made + found; ++i) {
    epoll_event event = events[i];
    const auto lefts = here.all();
    const auto one = std::find_if(lefts.begin(), lefts.end(), [&](const Left& left) {
      return left.set == set && left.data == event.data.u64;
    });
    if (one == lefts.end()) {
      is_unknown = true;
    } else if ((event.events & kEnds) != 0) {
      // The peer has closed its link: a read makes out what that means.
    } else if (is_among({events, static_cast<std::size_t>(made)}, event.data.u64) ||
               !has_news(*one)) {
      event.events &= ~kIn;
    }
    if (event.events != 0) events[kept++] = event;
  }
  if (!is_unknown) return kept;
  here.drop_settled();
  if (left_count(set) <= here.count_of(set)) return kept;
  settle_all_left();
  return kLookAgain;
}

bool settle_left_here() {
  bool is_quiet = true;
  for (const Left& one : here.all()) {
    const Ref stream = find_stream(one.fd);
    if (stream && &*stream == one.socket) is_quiet &= settle(one.fd, *stream);
  }
  here.drop_settled();
  return is_quiet;
}

void settle_left(int fd) {
  if (const Ref one = find_unchecked(fd); !one || !left_by(*one).is_anybody()) return;
  const Ref stream = find_stream(fd);
  if (!stream) return;
  const LeftBy by = left_by(*stream);
  if (!by.is(&here)) stream->is_never_left.store(true, std::memory_order_relaxed);
  settle(fd, *stream);
}

void settle_all_left() {
  if (!is_any_left()) return;
  for (int fd = next_in_table(0); fd >= 0; fd = next_in_table(fd + 1)) settle_left(fd);
}

bool is_any_left() {
  return left_count() > 0;
}

void forget_set(int set) {
  if (!was_set(set)) return;
  settle_all_left();
  forget_records_of_set(set);
}

}  // namespace ib::host_abi::stream_switch
