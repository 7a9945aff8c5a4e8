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
// Thread rule: any thread.
#pragma once

#include "host_abi/streams/table.h"

#include <sys/epoll.h>

#include <cstdint>

namespace ib::host_abi::stream_switch {

// The calling thread waits in this set. `looks`: as it is now, it will look before it sleeps; else
// its links are settled sooner than they are left.
void note_wait(int set, bool looks);

// Around an epoll_ctl() that changes what is wanted of `fd`.
void begin_control(int fd, int operation, const epoll_event* event);
void end_control(int fd);
// The calling thread has changed a set since the last call, in a way that memory does not tell of.
bool take_changed();

// Before a read of `stream`: whether it may leave the link rung. It counts as left then.
bool may_leave_rung(int fd, Socket& stream, const streams::End& end);
// After that read.
void note_read(Socket& stream, bool left_rung);

bool is_any_left();
bool is_any_left_here(int set);  // by the calling thread
// To how many streams that the calling thread has left in `set` something has come. OfOne: `event`
// is its event.
enum class News : std::uint8_t { None, OfOne, OfMore };
News find_news(int set, epoll_event& event);
// Takes from the kernel's events those of links that are left rung without anything to read; links
// that others have left are settled. Returns how many events stay.
int filter_left(int set, epoll_event* events, int found);

// Returns false if something has come to one of them.
bool settle_left_here();
void settle_left(int fd);
// Of a number that was just found. Returns false if something has come to it.
bool settle_left(int fd, Socket& stream);
void settle_all_left();
// `set` is about to be closed.
void forget_set(int set);

}  // namespace ib::host_abi::stream_switch
