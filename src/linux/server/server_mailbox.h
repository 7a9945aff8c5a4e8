// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd's side of a mailbox (linux/mailbox.h). The client is hostile: its words and its bytes may
// change at any time, and are read once.
#pragma once

#include "base/result.h"
#include "linux/mailbox.h"
#include "platform/control_channel.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ib::os {

class ServerMailbox {
 public:
  // `file`: the page, for the client.
  static Result<std::unique_ptr<ServerMailbox>> create(platform::NativeHandle& file,
                                                       std::string& reason);
  explicit ServerMailbox(MailboxPage* page) : page_(page) {}
  ServerMailbox(const ServerMailbox&) = delete;
  ServerMailbox& operator=(const ServerMailbox&) = delete;
  ~ServerMailbox();

  // Whether the client sent its last request from the core that this thread is on.
  bool is_on_same_core() const {
    return page_->client_core.load(std::memory_order_relaxed) == core_hint();
  }
  // While it is watched, a request needs no bell. Ends with a look by the caller.
  void set_watched(bool on) { page_->watched.store(on ? 1 : 0, std::memory_order_seq_cst); }
  bool has_request() const {
    return !pending_ && page_->asked.load(std::memory_order_seq_cst) != taken_;
  }
  // Copies the request into `buffer`, which has room for any, and returns it.
  std::span<const std::byte> take(std::span<std::byte> buffer);

  // Offers something under this number, which is not 0, until withdraw_offer().
  void offer(std::uint32_t number) { page_->offered.store(number, std::memory_order_seq_cst); }
  // Returns false if the client has taken what had this number. It may do so a moment later.
  // Relaxed: nothing of the client's goes with it, and a request that was sent after it shows it.
  bool has_offer(std::uint32_t number) const {
    return page_->offered.load(std::memory_order_relaxed) == number;
  }
  // The same, and it is offered no more.
  bool withdraw_offer(std::uint32_t number) {
    return page_->offered.exchange(0, std::memory_order_seq_cst) == number;
  }

  // Whether this message is the answer to the request that was taken.
  bool is_answer(std::span<const std::byte> message) const;
  static bool fits(std::span<const std::byte> message) {
    return message.size() <= MailboxPage::kAnswerBytes;
  }
  // Returns true if the client needs a bell.
  bool put(std::span<const std::byte> answer);
  void answer_elsewhere();  // through the socket

 private:
  void finish(std::size_t length);

  MailboxPage* page_;
  std::uint32_t taken_ = 0;  // the number of the last request that was taken
  bool pending_ = false;     // it has no answer yet
  std::uint64_t tag_ = 0;    // its
};

}  // namespace ib::os
