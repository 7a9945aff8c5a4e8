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
#include "host_abi/streams/set_waiters.h"
#include "host_abi/streams/waiting.h"

#include <fcntl.h>

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
  int home = -1;          // the set that the thread waited in, or LeftBy::kNoSet
  // That the program wants: those of kIn and kOut.
  std::uint32_t events = 0;
  std::uint64_t data = 0;
  bool is_in_kernel = false;  // in `home`, with these data:
  std::uint64_t kernel_data = 0;
  bool is_late = false;  // the kernel has another entry than the program wants
};

class Lefts {
 public:
  std::span<Left> all() { return std::span(entries_).first(count_); }
  // Returns false if there is no room. A handler must not come in between: it may read, too.
  bool add(const Left& one) {
    const Inside inside;
    drop_settled();
    if (count_ == entries_.size()) return false;
    entries_[count_++] = one;
    return true;
  }
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
  int count_of(int set) {
    const auto in_set = [set](const Left& one) { return one.home == set; };
    return static_cast<int>(std::count_if(all().begin(), all().end(), in_set));
  }

 private:
  static bool is_in_use(const Left& one) {
    return one.socket->uses.load(std::memory_order_relaxed) == one.use;
  }

  std::array<Left, kMostLeft> entries_{};
  std::size_t count_ = 0;
};

constinit thread_local Lefts here;
constinit thread_local int last_set = -1;
constinit thread_local bool has_changed = false;

constexpr std::uint32_t kIn = EPOLLIN | EPOLLRDNORM;
constexpr std::uint32_t kOut = EPOLLOUT | EPOLLWRNORM;
constexpr std::uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

// Where no other process, number or set has the stream.
bool is_alone(const Socket& stream, const streams::End& end) {
  return !is_in_sandbox() && !is_shared(stream) &&
         stream.numbers.load(std::memory_order_relaxed) == 1 &&
         end.shared().wants_edges.load(std::memory_order_relaxed) == 0;
}

// Those of level-triggered entries that more than one thread may wait for.
bool are_plain(std::uint32_t events) {
  constexpr std::uint32_t kPlain = kIn | kOut | EPOLLPRI | kEnds;
  return (events & ~kPlain) == 0;
}

// A stream whose reads wait at the link, and that no set has.
bool add_waiting(int fd, Socket& stream) {
  return here.add({fd, &stream, stream.uses.load(), LeftBy::kNoSet});
}

// The record is that of the kernel, too.
void follow_record(Left& one, const std::optional<EpollRecord>& record) {
  one.events = record ? record->event.events & (kIn | kOut) : 0;
  one.data = one.kernel_data = record ? record->event.data.u64 : 0;
  one.is_in_kernel = record.has_value();
  one.is_late = false;
}

bool add_in_set(int fd, Socket& stream) {
  const std::optional<EpollRecord> record = only_record(fd);
  if (!record || record->set != last_set || !are_plain(record->event.events) ||
      (record->event.events & kIn) == 0) {
    return false;
  }
  if (!is_in_kernel(fd, last_set)) return false;
  Left one{fd, &stream, stream.uses.load(), last_set};
  follow_record(one, record);
  return here.add(one);
}

// The end of what the number was when its link was left; it may mean another file by now.
streams::End* end_of_left(const Left& one, const Ref& stream) {
  return stream && &*stream == one.socket ? opened_end_of(*stream) : nullptr;
}

bool has_news(const Left& one) {
  const Ref stream = find_unchecked(one.fd);
  const streams::End* const end = end_of_left(one, stream);
  return end != nullptr && end->has_news();
}

// Returns false if only the kernel can tell.
bool is_writable(const Left& one) {
  const Ref stream = find_unchecked(one.fd);
  const streams::End* const end = end_of_left(one, stream);
  return end != nullptr && end->has_room();
}

bool is_readable(const Left& one) {
  if (!has_news(one)) return false;
  const Inside inside;
  {
    const Ref stream = find_unchecked(one.fd);
    streams::End* const end = end_of_left(one, stream);
    if (end == nullptr) return false;
    if (const std::optional<bool> is_there = end->is_readable()) return *is_there;
  }
  const Ref stream = find(one.fd);
  streams::End* const end = end_of_left(one, stream);
  if (end == nullptr) return false;
  OwnLink link(one.fd);
  return end->is_readable(link);
}

LeftBy left_by(int fd) {
  const Ref stream = find_unchecked(fd);
  return stream ? stream_switch::left_by(*stream) : LeftBy();
}

// As far as memory tells, which is right about reading.
std::uint32_t ready_events(const Left& one) {
  std::uint32_t ready = 0;
  if ((one.events & kIn) != 0 && is_readable(one)) ready |= one.events & kIn;
  if ((one.events & kOut) != 0 && is_writable(one)) ready |= one.events & kOut;
  return ready;
}

// Of a number that was just found. Returns false if something has come to it.
bool settle(int fd, Socket& stream) {
  if (!tell_and_stop_leaving(fd, stream)) return true;
  streams::End* const end = end_of(stream);
  if (end == nullptr) return true;
  const Inside inside;
  OwnLink link(fd);
  return !end->settle_link(link);
}

// Those of a stream that another thread or process has left: their entries are level-triggered.
int filter_others(int set, std::span<epoll_event> events) {
  for (int fd = next_in_table(0); fd >= 0; fd = next_in_table(fd + 1)) {
    const LeftBy by = left_by(fd);
    if (!by.is_anybody() || by.is(&here)) continue;
    const Ref stream = find_stream(fd);
    const std::optional<EpollRecord> record = only_record(fd);
    if (!stream || !settle_left(fd, *stream) || !record || record->set != set) continue;
    for (epoll_event& event : events) {
      const bool is_its = event.data.u64 == record->event.data.u64;
      if (is_its && (event.events & kEnds) == 0) event.events &= ~kIn;
    }
  }
  const auto end = std::remove_if(events.begin(), events.end(),
                                  [](const epoll_event& event) { return event.events == 0; });
  return static_cast<int>(end - events.begin());
}

// A link that is left stays so if it is in no other set now. Returns whether memory tells of all
// that the set will have of it.
bool follow_control(int fd) {
  if (here.all().empty()) return false;
  const Ref stream = find_unchecked(fd);
  Left* const one = stream ? here.find(fd, *stream) : nullptr;
  if (one == nullptr) return false;
  const std::optional<EpollRecord> record = only_record(fd);
  if (has_epoll_records(fd) && (!record || record->set != one->home)) {
    settle_left(fd);
    return false;
  }
  follow_record(*one, record);
  const std::uint32_t others = record ? record->event.events & ~(kIn | kEnds) : 0;
  return others == 0 && left_by(*stream).is(&here);
}

// One that is deleted late and then closed by system call would stay in the set for as long as
// softibd has the link: some milliseconds after it was made.
bool may_delete_late(const Socket& stream) {
  constexpr std::uint32_t kAgainAndAgain = 3;
  constexpr std::int64_t kLong = 100'000'000;
  return stream.additions.load(std::memory_order_relaxed) >= kAgainAndAgain &&
         now_ns() - stream.added_ns.load(std::memory_order_relaxed) > kLong;
}

}  // namespace

void note_wait(int set, bool looks) {
  last_set = looks && set < LeftBy::kNoSet && !is_shared_set(set) ? set : -1;
}

bool control_late(int set, int operation, int fd, const epoll_event* event) {
  if (here.all().empty() || !is_only_waiter(set)) return false;
  const Inside inside;
  const Ref seen = find_unchecked(fd);
  Left* const one = seen ? here.find(fd, *seen) : nullptr;
  if (one == nullptr || one->home != set) return false;
  if (operation == EPOLL_CTL_DEL && !may_delete_late(*seen)) return false;
  const Ref stream = find_stream(fd);
  if (!stream || &*stream != one->socket) return false;
  const auto late = change_late(set, operation, fd, event, *stream, LeftBy(&here, set));
  if (!late) return false;
  one->is_late = *late;
  one->events = operation == EPOLL_CTL_DEL ? 0 : event->events;
  if (operation != EPOLL_CTL_DEL) one->data = event->data.u64;
  note_use(fd);
  return true;
}

// Another thread's is settled, and one that will not be left any more. The kernel hears of what is
// late before the next change.
void begin_control(int set, int operation, int fd, const epoll_event* event) {
  if (is_late(fd)) {
    settle_left(fd);
    if (is_late(fd)) forget_epoll_records(fd);  // it is another file now
  }
  if (operation == EPOLL_CTL_ADD && is_set(fd)) share(fd);
  if (!is_any_left()) return;
  if (operation != EPOLL_CTL_DEL && event != nullptr && may_be_mistaken(set, fd, event->data.u64))
    settle_all_left();
  const LeftBy by = left_by(fd);
  if (!by.is_anybody()) return;
  const bool stays = by.is(&here) &&
                     (operation == EPOLL_CTL_DEL || (event != nullptr && are_plain(event->events)));
  if (!stays) settle_left(fd);
}

void end_control(int operation, int fd) {
  if (!follow_control(fd)) has_changed = true;
  if (operation != EPOLL_CTL_ADD || !is_in_table(fd)) return;
  const Ref stream = find_unchecked(fd);
  if (stream && stream->additions.fetch_add(1) == 0) stream->added_ns.store(now_ns());
}

bool take_changed() {
  return std::exchange(has_changed, false);
}

bool may_leave_rung(int fd, Socket& stream, const streams::End& end) {
  if (stream.is_never_left.load(std::memory_order_relaxed)) return false;
  const bool waits = stream.has_waited.load(std::memory_order_relaxed) && !has_epoll_records(fd);
  if (!waits && !has_place(last_set)) return false;
  if (!is_alone(stream, end)) return false;
  if (const LeftBy by = left_by(stream); by.is_anybody() && !by.is(&here)) return false;
  const int home = waits ? LeftBy::kNoSet : last_set;
  const Left* one = here.find(fd, stream);
  const bool is_left = left_by(stream).is_anybody();
  if (one != nullptr && is_left && one->home != home) return false;
  if (one != nullptr && !is_left) {
    here.drop_settled();  // the kernel may have another entry since
    one = nullptr;
  }
  if (one == nullptr && !(waits ? add_waiting(fd, stream) : add_in_set(fd, stream))) return false;
  begin_leaving(stream, LeftBy(&here, home));
  return true;
}

void note_read(int fd, Socket& stream, bool left_rung) {
  if (!left_rung) tell_and_stop_leaving(fd, stream);
}

bool is_any_left_here(int set) {
  if (here.all().empty()) return false;
  here.drop_settled();
  return here.count_of(set) > 0;
}

bool has_left_any() {
  here.drop_settled();
  return !here.all().empty();
}

// A look at the number here spares the read that follows its own.
News find_news(int set, epoll_event& event) {
  const Left* found = nullptr;
  for (const Left& one : here.all()) {
    if (one.home != set) continue;
    const bool wants_out = (one.events & kOut) != 0;
    if (!wants_out && ((one.events & kIn) == 0 || !has_news(one))) continue;
    if (wants_out && one.is_late && !is_writable(one)) {
      settle_left(one.fd);
      return News::OfMore;
    }
    if (found != nullptr) return News::OfMore;
    found = &one;
  }
  if (found == nullptr) return News::None;
  const std::uint32_t ready = ready_events(*found);
  if (ready == 0) return News::None;
  const Ref stream = find(found->fd);
  if (!stream || &*stream != found->socket) return News::None;
  note_use(found->fd);
  event.events = ready;
  event.data.u64 = found->data;
  return News::OfOne;
}

// The event that the kernel's of `one` stands for. If the peer has closed its link, a read makes
// out what that means; but a late entry may not be wanted.
epoll_event filter_own(const Left& one, epoll_event event, bool& has_told) {
  const bool has_ended = (event.events & kEnds) != 0;
  if (!one.is_late) {
    if (!has_ended && !is_readable(one)) event.events &= ~kIn;
    return event;
  }
  const bool is_unknown = has_ended || ((one.events & kOut) != 0 && !is_writable(one));
  if (is_unknown) {
    settle_left(one.fd);
    has_told = true;
  }
  event.events = is_unknown ? 0 : ready_events(one);
  event.data.u64 = one.data;
  return event;
}

Filtered filter_left(int set, epoll_event* events, int found) {
  Filtered result;
  for (int i = 0; i < found; ++i) {
    epoll_event event = events[i];
    const auto lefts = here.all();
    const auto one = std::find_if(lefts.begin(), lefts.end(), [&](const Left& left) {
      return left.home == set && left.is_in_kernel && left.kernel_data == event.data.u64;
    });
    if (one == lefts.end()) {
      result.has_others = true;
    } else {
      event = filter_own(*one, event, result.has_told);
    }
    if (event.events != 0) events[result.kept++] = event;
  }
  if (!result.has_others) return result;
  here.drop_settled();
  if (left_count(set) <= here.count_of(set)) return result;
  result.kept = filter_others(set, {events, static_cast<std::size_t>(result.kept)});
  return result;
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
  if (!left_by(fd).is_anybody()) return;
  if (const Ref stream = find_stream(fd)) settle_left(fd, *stream);
}

bool settle_left(int fd, Socket& stream) {
  const LeftBy by = left_by(stream);
  if (!by.is_anybody()) return true;
  if (!by.is(&here)) stream.is_never_left.store(true, std::memory_order_relaxed);
  return settle(fd, stream);
}

void settle_all_left() {
  if (!is_any_left()) return;
  for (int fd = next_in_table(0); fd >= 0; fd = next_in_table(fd + 1)) settle_left(fd);
}

bool is_any_left() {
  return left_count() > 0;
}

void forget_set(int set) {
  if (!is_set(set)) return;
  settle_all_left();
  forget_records_of_set(set);
}

void begin_set(int set, bool closes_at_exec) {
  if (is_set(set)) {
    forget_records_of_set(set);  // untold: they are of the other set
    settle_all_left();
  }
  note_made(set, closes_at_exec);
}

void change_set_flags(int set, int flags) {
  if (!note_closes_at_exec(set, (flags & FD_CLOEXEC) != 0)) settle_all_left();
}

void share(int set) {
  share_set(set);
  settle_all_left();
}

}  // namespace ib::host_abi::stream_switch
