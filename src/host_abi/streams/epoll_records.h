// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which epoll sets a descriptor is in. If a TCP socket becomes a stream, its number means another
// file, which then has to be added to the same sets.
//
// Of streams in edge-triggered sets: a reader has its peer's end send (end.h), and what comes by
// that makes no edge. Over TCP it would. Of those in others see left_rung.h.
//
// *Late* records: the kernel has not been told of the last changes, for as long as the stream is
// left rung. It has an entry for reading then, so the link is ready there; it may be one that the
// program has deleted.
//
// A set whose number was closed by system call, and means another one by now, has nothing to remove
// and is left alone. Thread rule: any thread.
#pragma once

#include "host_abi/streams/table.h"

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <optional>

namespace ib::host_abi::stream_switch {

// After epoll_ctl() with these arguments has succeeded.
void record_epoll(int set, int operation, int fd, const epoll_event* event);
bool has_epoll_records(int fd);
// The one record of `fd`, if it has no other and nothing else in the set has the same data, as far
// as is known.
struct EpollRecord {
  int set = -1;
  epoll_event event{};
};
std::optional<EpollRecord> only_record(int fd);
// Whether the kernel has `fd` in `set` as it was told: looked at once after each change.
bool is_in_kernel(int fd, int set);
// An epoll_ctl() of which the kernel is told later. Returns nothing if it must be told at once;
// else whether the record is late now, or again what the kernel has. `by`: who has left the stream
// rung.
std::optional<bool> change_late(int set, int operation, int fd, const epoll_event* event,
                                const Socket& stream, LeftBy by);
bool is_late(int fd);
bool is_any_late();
// Whether an entry of `fd` with these data in `set` could be taken for that of another.
bool may_be_mistaken(int set, int fd, std::uint64_t data);
// Tells the kernel of late changes of `fd`, and that nobody has left `stream`: one step for others.
// Returns false if nobody had.
bool tell_and_stop_leaving(int fd, Socket& stream);
// Whatever was added to a set with this number, and who waits in it.
void forget_records_of_set(int set);
// `fd` is about to be closed or replaced, or will not become a stream any more.
void forget_epoll_records(int fd);
// Also removes it from its sets, as the kernel does for a file that nobody has any more: softibd,
// which has made the link, may close its own number a moment later.
void leave_epoll_sets(int fd);

// More has come to the stream `fd` than its last edge was for: makes another one.
void make_edges(int fd);

// Moves `fd` from the file that it is to another one: constructed before the change, which done()
// follows.
class EpollMove {
 public:
  explicit EpollMove(int fd);
  // Returns whether one of the sets is edge-triggered.
  bool done();

 private:
  static constexpr std::size_t kMost = 8;
  struct Entry {
    int set = -1;
    epoll_event event{};
  };

  int fd_;
  std::size_t count_ = 0;
  std::array<Entry, kMost> entries_{};
};

void lock_epoll_records();
void unlock_epoll_records();
void begin_epoll_records_as_child();

}  // namespace ib::host_abi::stream_switch
