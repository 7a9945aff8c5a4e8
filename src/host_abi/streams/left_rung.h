// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Links that are left rung (streams/end.h): a thread has read them to their end, and looks for more
// in memory, so that neither side needs a system call for the bell. To the kernel they are readable
// all the time.
//
// Two kinds of threads do that, with streams that no other process has. One waits in a
// level-triggered epoll set, which is the only one with the stream: epoll_wait() here makes the
// event of such a stream itself, or takes those of the kernel's away that stand for nothing. The
// other waits in its reads, of a stream that is in no set. Before a thread sleeps, and wherever
// else the kernel's readiness counts, links are *settled*. A program that looks past libc finds a
// link readable at most once too often.
//
// While such a thread is the only one that waits in its set, what it changes there about a link
// that it has left is *late*: the kernel is told when the link is settled. A program that wants to
// write, then to read, and so on, changes its set four times for each request.
//
// Thread rule: any thread.
#pragma once

#include "host_abi/streams/table.h"

#include <sys/epoll.h>

#include <cstdint>

namespace ib::host_abi::stream_switch {

// A thread leaves at most so many.
inline constexpr int kMostLeft = 64;

// The calling thread waits in this set. `looks`: as it is now, it will look before it sleeps; else
// its links are settled sooner than they are left.
void note_wait(int set, bool looks);

// An epoll_ctl() that needs no system call now; else returns false.
bool control_late(int set, int operation, int fd, const epoll_event* event);
// Around one that does, and has succeeded at the end.
void begin_control(int set, int operation, int fd, const epoll_event* event);
void end_control(int operation, int fd);
// The calling thread has changed a set since the last call, in a way that memory does not tell of.
bool take_changed();

// Before a read of `stream`: whether it may leave the link rung. It counts as left then.
bool may_leave_rung(int fd, Socket& stream, const streams::End& end);
// After that read.
void note_read(int fd, Socket& stream, bool left_rung);

bool is_any_left();
bool is_any_left_here(int set);  // by the calling thread
bool has_left_any();             // the same, in no matter which set
// Of how many streams that the calling thread has left in `set` memory has events. OfOne: `event`
// is it. OfMore: the kernel has them, and others besides.
enum class News : std::uint8_t { None, OfOne, OfMore };
News find_news(int set, epoll_event& event);
// Takes from the kernel's events those of links that are left rung without anything to read, and
// makes those of late changes what the program wants; links that others have left are settled.
struct Filtered {
  int kept = 0;
  bool has_told = false;    // a late change: the kernel may have another event now
  bool has_others = false;  // than those that the calling thread has left
};
Filtered filter_left(int set, epoll_event* events, int found);

// Returns false if something has come to one of them.
bool settle_left_here();
void settle_left(int fd);
// Of a number that was just found. Returns false if something has come to it.
bool settle_left(int fd, Socket& stream);
void settle_all_left();
// `set` is about to be closed.
void forget_set(int set);
// `set` is a new one; one that had its number was closed by system call.
void begin_set(int set, bool closes_at_exec);
void change_set_flags(int set, int flags);  // F_SETFD
// `set` has another number, or another process has it, or it is in another set: no link is left
// rung in it.
void share(int set);

}  // namespace ib::host_abi::stream_switch
