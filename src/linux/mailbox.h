// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A mailbox: a page that a client and softibd share, through which requests and answers of the
// control socket (verbs/control.h) go without a system call while both sides are awake
// (docs/design/0020-mailboxes.md). One request at a time; what does not fit, or brings descriptors,
// goes through the socket, and so does each bell: a message of one byte that wakes the other side.
//
// The client may write to the whole page at any time. softibd reads only the words of the client,
// each once, copies a request before it looks at it, and reads back nothing that it wrote.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ib::os {

// The whole of a bell; shorter than any header.
inline constexpr std::size_t kBellBytes = 1;

struct MailboxPage {
  static constexpr std::size_t kBytes = 4096;
  static constexpr std::size_t kRequestBytes = 1472;  // RdmaCmIn and its header fit
  static constexpr std::size_t kAnswerBytes = 2496;

  // The client's.
  alignas(64) std::atomic<std::uint32_t> asked;  // the number of the last request
  std::atomic<std::uint32_t> request_length;
  // 1: the answer needs a bell, which is for the side to ring that finds 1 and sets 0.
  std::atomic<std::uint32_t> client_sleeps;
  // softibd's.
  alignas(64) std::atomic<std::uint32_t> answered;  // the number of the last request with an answer
  std::atomic<std::uint32_t> answer_length;         // 0: that answer comes through the socket
  std::atomic<std::uint32_t> watched;               // 0: a request needs a bell
  alignas(64) std::byte request[kRequestBytes];
  alignas(64) std::byte answer[kAnswerBytes];
};
static_assert(sizeof(MailboxPage) == MailboxPage::kBytes);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace ib::os
