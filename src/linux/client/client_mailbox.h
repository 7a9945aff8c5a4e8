// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The client's side of a mailbox (linux/mailbox.h). It allocates nothing, and receives by what it
// is given.
#pragma once

#include "linux/mailbox.h"
#include "linux/process/client_relax.h"
#include "platform/brief_polling.h"

#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <span>

namespace ib::os {

class ClientMailbox {
 public:
  ClientMailbox() = default;  // none
  explicit ClientMailbox(MailboxPage* page) : page_(page) {}

  MailboxPage* page() const { return page_; }
  // Not while the answer to an earlier request is due, whose caller left by longjmp().
  bool takes(std::size_t size) const {
    return page_ != nullptr && size <= MailboxPage::kRequestBytes && has_answer();
  }
  std::byte* request() { return page_->request; }
  // Returns false if softibd needs a bell, as far as one can tell beforehand (relaxed: a guess).
  bool is_watched() const { return page_->watched.load(std::memory_order_relaxed) != 0; }
  // Sends the request that has been written. Returns true if softibd needs a bell.
  bool post(std::size_t size) {
    page_->request_length.store(static_cast<std::uint32_t>(size), std::memory_order_relaxed);
    page_->client_core.store(core_hint(), std::memory_order_relaxed);
    page_->asked.store(page_->asked.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
    return page_->watched.load(std::memory_order_seq_cst) == 0;
  }
  // Relaxed for `asked`, which is this side's.
  bool has_answer() const {
    return page_->answered.load(std::memory_order_seq_cst) ==
           page_->asked.load(std::memory_order_relaxed);
  }
  // Returns false if softibd has withdrawn its offer of this number, or made it elsewhere.
  bool take_offer(std::uint32_t number) {
    return page_ != nullptr &&
           page_->offered.compare_exchange_strong(number, 0, std::memory_order_seq_cst);
  }
  // Empty: it comes through the socket.
  std::span<const std::byte> answer() const {
    const std::uint32_t length = page_->answer_length.load(std::memory_order_relaxed);
    return {page_->answer, std::min<std::size_t>(length, MailboxPage::kAnswerBytes)};
  }

  struct Waited {
    bool in_mailbox = false;
    ssize_t got =
        0;  // else the result of receive(): a message that is no bell, or why there is none
  };
  // Waits for the answer to the request that was posted: polls, then sleeps in receive(flags), one
  // recvmsg() of the socket with these flags besides its own.
  template <class Receive>
  Waited wait(platform::BriefPolling& polling, Receive&& receive);
  // The same for an answer that softibd holds back: it is another program that has something to do
  // first, so each look yields the core.
  template <class Receive>
  Waited wait_long(Duration budget, Receive&& receive);

 private:
  // Returns true if it is right to sleep: there is no answer, or its bell is on its way.
  bool announce_sleep() {
    page_->client_sleeps.store(1, std::memory_order_seq_cst);
    return !has_answer() || !withdraw();
  }
  // Returns false if the other side was faster, and rings.
  bool withdraw() { return page_->client_sleeps.exchange(0, std::memory_order_seq_cst) != 0; }
  bool shares_core() const {
    return page_->server_core.load(std::memory_order_relaxed) == core_hint();
  }
  bool poll() const;
  bool poll_yielding(Duration budget) const;
  template <class Receive>
  Waited sleep(bool answered, Receive&& receive);

  MailboxPage* page_ = nullptr;
};

inline bool ClientMailbox::poll() const {
  constexpr int kLooksPerTime = 16;
  if (shares_core()) return poll_yielding(platform::BriefPolling::kYieldingBudget);
  const Instant first_yield = monotonic_now() + platform::BriefPolling::kPatienceOfClient;
  do {
    for (int look = 0; look < kLooksPerTime; ++look) {
      if (has_answer()) return true;
      relax_thread(0);
    }
  } while (monotonic_now() < first_yield);
  // softibd may wait for this core.
  return poll_yielding(platform::BriefPolling::kYieldingBudget);
}

inline bool ClientMailbox::poll_yielding(Duration budget) const {
  const Instant end = monotonic_now() + budget;
  do {
    if (has_answer()) return true;
  } while (yield_core() && monotonic_now() < end);
  return has_answer();
}

template <class Receive>
ClientMailbox::Waited ClientMailbox::wait_long(Duration budget, Receive&& receive) {
  return sleep(poll_yielding(budget), receive);
}

template <class Receive>
ClientMailbox::Waited ClientMailbox::wait(platform::BriefPolling& polling, Receive&& receive) {
  bool answered = false;
  if (polling.should_poll()) {
    answered = poll();
    answered ? polling.hit() : polling.missed();
  }
  const Instant start = monotonic_now();
  const bool sleeps = !answered;
  const Waited waited = sleep(answered, receive);
  if (sleeps) polling.slept(monotonic_now() - start);
  return waited;
}

template <class Receive>
ClientMailbox::Waited ClientMailbox::sleep(bool answered, Receive&& receive) {
  while (!answered && announce_sleep()) {
    const ssize_t got = receive(0);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(kBellBytes)) {
      static_cast<void>(withdraw());
      return {false, got};
    }
    answered = has_answer();
  }
  if (!answer().empty()) return {true, 0};
  ssize_t got = 0;
  do {
    got = receive(0);
  } while ((got < 0 && errno == EINTR) || got == static_cast<ssize_t>(kBellBytes));
  return {false, got};
}

}  // namespace ib::os
