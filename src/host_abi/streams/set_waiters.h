// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which thread waits in an epoll set. One that is the only one to do so, in a set that this program
// has made and nobody else has, may tell the kernel later what it has changed there (left_rung.h).
// A program that is executed has the sets that are not closed then.
//
// Thread rule: any thread.
#pragma once

namespace ib::host_abi::stream_switch {

// epoll_create() has made it just now.
void note_made(int set, bool closes_at_exec);
// FD_CLOEXEC was changed. Returns false if it is open at exec now, and was not.
bool note_closes_at_exec(int set, bool on);
// Something was added to it.
void note_added(int set);
// Whether either was called for a set with this number.
bool is_set(int fd);
// The calling thread is about to wait there. Returns false if it is not the only one any more: then
// what others have not told has to be told.
bool note_waiter(int set);
bool is_only_waiter(int set);
// It has another number now, or another process has it, or it is in another set.
void share_set(int set);
bool is_shared_set(int set);
// Its number is about to be closed.
void forget_waiter(int set);

}  // namespace ib::host_abi::stream_switch
