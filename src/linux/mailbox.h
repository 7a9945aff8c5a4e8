// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A mailbox: a page that a client and softibd share, through which requests and answers of the
// control socket (verbs/control.h) go without a system call while both sides are awake
// (docs/design/0020-mailboxes.md). One request at a time; what does not fit, or brings descriptors,
// goes through the socket, and so does each bell: a message of one byte that wakes the other side.
//
// The client may write to the whole page at any time. softibd reads only the words of the client,
// each once, copies a request before it looks at it, and reads back nothing that it wrote, but for
// the word by which both sides agree on who has what was offered.
//
// Order: `asked` is stored after the request and all words that go with it, `answered` after the
// answer, so these are relaxed; whoever has read one of the two may use the other's place again.
// Two stores each meet a load of the other side in the one order of all seq_cst operations: `asked`
// and `watched`, so that a request finds softibd looking or rings; `client_sleeps` and `answered`,
// so that an answer finds the client looking or rings (tests/models/mailbox_model_test.cpp).
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ib::os {

// The whole of a bell; shorter than any header.
inline constexpr std::size_t kBellBytes = 1;

// The core that this thread is on, counted from 1; 0: not known. Of two sides on one core, the one
// that waits has to yield it before anything can come.
inline std::uint32_t core_hint() {
  return static_cast<std::uint32_t>(::sched_getcpu() + 1);
}

struct MailboxPage {
  static constexpr std::size_t kBytes = 4096;
  static constexpr std::size_t kRequestBytes = 1472;  // RdmaCmIn and its header fit
  static constexpr std::size_t kAnswerBytes = 2496;

  // The client's.
  alignas(64) std::atomic<std::uint32_t> asked;  // the number of the last request
  std::atomic<std::uint32_t> request_length;
  // 1: the answer needs a bell, which is for the side to ring that finds 1 and sets 0.
  std::atomic<std::uint32_t> client_sleeps;
  std::atomic<std::uint32_t> client_core;  // where it sent the last request: core_hint(), a guess
  // The number of what softibd offers, besides an answer, to the side that sets this to 0. 0: none.
  std::atomic<std::uint32_t> offered;
  // softibd's.
  alignas(64) std::atomic<std::uint32_t> answered;  // the number of the last request with an answer
  std::atomic<std::uint32_t> answer_length;         // 0: that answer comes through the socket
  std::atomic<std::uint32_t> watched;               // 0: a request needs a bell
  std::atomic<std::uint32_t> server_core;           // where the last answer was written, a guess
  alignas(64) std::byte request[kRequestBytes];
  alignas(64) std::byte answer[kAnswerBytes];
};
static_assert(sizeof(MailboxPage) == MailboxPage::kBytes);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace ib::os
