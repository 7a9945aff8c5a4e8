// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiDispatch: MADs that come: responses go to the requests that wait for them, requests to their
// agents; and the answers that need no agent [IBA1 13.4.7, 13.4.8.1, 13.5.2].
#pragma once

#include "services/gsi/agents_internal.h"
#include "services/gsi/gsi.h"
#include "services/gsi/requests_internal.h"
#include "services/gsi/sender_internal.h"
#include "services/gsi/transfers_internal.h"

#include <cstdint>
#include <span>
#include <string>

namespace ib::services {

// The parts of Gsi that MADs go to.
struct GsiParts {
  GsiAgents& agents;
  GsiSender& sender;
  GsiTransfers& transfers;
  GsiRequests& requests;
};

class GsiDispatch final : private GsiTransfers::Handler {
 public:
  using OnDrop = decltype(Gsi::Options::on_drop);

  GsiDispatch(const fabric::Fabric& fabric, const GsiParts& to, GsiCounters& counters,
              OnDrop on_drop);

  void set_first(GsiFirst* first) { first_ = first; }
  GsiFirst* first() const { return first_; }
  void on_mad(std::uint32_t port, const al::MadAddress& from, const mad::Mad& mad);

 private:
  // GsiTransfers::Handler
  void on_request_sent(mad::TransactionId request) override;
  void on_answer_begins(mad::TransactionId request) override;
  void on_request_failed(mad::TransactionId request, Status status,
                         const std::string& reason) override;
  void on_answer(mad::TransactionId request, const GsiMessage& answer) override;
  void on_request(const GsiMessage& request) override;

  void on_packet(const GsiAddress& from, const mad::MadHeader& header, const mad::Mad& mad);
  void on_response(const GsiMessage& response);
  void refuse(const GsiAddress& to, std::span<const std::byte> request, std::uint16_t status);
  void drop(std::uint64_t& counter, const char* why, const GsiAddress& from,
            const mad::MadHeader& header);

  const fabric::Fabric& fabric_;
  GsiParts to_;
  GsiCounters& counters_;
  OnDrop on_drop_;
  GsiFirst* first_ = nullptr;
};

}  // namespace ib::services
