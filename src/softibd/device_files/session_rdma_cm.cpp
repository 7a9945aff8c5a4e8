// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/device_files/session_rdma_cm.h"

#include "softibd/daemon_request.h"
#include "verbs/control.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ib::softib {

namespace control = verbs::control;

// Of an event of one file, in the mailbox.
class SessionRdmaCm::Offer final : public services::rdma_cm::EventOffer {
 public:
  explicit Offer(os::ServerConnection& connection) : connection_(connection) {}

  bool offer(std::uint32_t number) override {
    if (number_ != 0) return false;
    number_ = number;
    connection_.offer(number);
    return true;
  }
  bool is_taken() const override { return !connection_.has_offer(number_); }
  bool withdraw() override { return connection_.withdraw_offer(std::exchange(number_, 0)); }

 private:
  os::ServerConnection& connection_;
  std::uint32_t number_ = 0;  // 0: none
};

SessionRdmaCm::SessionRdmaCm(os::ServerConnection& connection) : connection_(connection) {}
SessionRdmaCm::~SessionRdmaCm() = default;

void SessionRdmaCm::use_mailbox() {
  offer_ = std::make_unique<Offer>(connection_);
}

services::rdma_cm::EventOffer* SessionRdmaCm::offer() {
  return offer_.get();
}

void SessionRdmaCm::send_notice(std::span<const std::byte> ahead) {
  std::array<std::byte, sizeof(control::ReplyHeader) + control::kMostRdmaCmAhead> message;
  std::copy(ahead.begin(), ahead.end(), message.begin() + sizeof(control::ReplyHeader));
  const auto used = std::span(message).first(sizeof(control::ReplyHeader) + ahead.size());
  finish_reply({}, used);
  connection_.send(used);
}

}  // namespace ib::softib
