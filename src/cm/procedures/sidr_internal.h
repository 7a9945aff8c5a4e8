// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SidrExchanges: service ID resolution [IBA1 12.11]: SIDR_REQ of one side, SIDR_REP of the other.
#pragma once

#include "cm/admission_internal.h"
#include "cm/outbox_internal.h"
#include "cm/sidr_table_internal.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace ib::cm {

class SidrExchanges {
 public:
  SidrExchanges(const Config& config, Outbox& outbox, Admission& admission)
      : config_(config),
        outbox_(outbox),
        admission_(admission),
        exchanges_(config.seed ^ 0x5bd1'e995'5bd1'e995u) {}

  // As of the engine.
  Result<SidrId> resolve(const SidrRequest& request, Instant now);
  Status answer(SidrId id, const SidrReply& reply, Instant now);
  void destroy(SidrId id, Instant now);
  Waiting waiting(SidrId id) const;
  void on_sidr_req(const mad::Mad& mad, const MadAddress& from);
  void on_sidr_rep(const mad::Mad& mad, const MadAddress& from);

  void on_time(Instant now);
  std::optional<Instant> deadline() const { return exchanges_.deadline(); }
  std::size_t size() const { return exchanges_.size(); }
  // Null unless the consumer has it.
  SidrExchange* owned(SidrId id) const;

 private:
  void end(SidrExchange& exchange);
  void on_deadline(SidrExchange& exchange, Instant now);

  const Config& config_;
  Outbox& outbox_;
  Admission& admission_;
  SidrTable exchanges_;
  std::deque<std::uint32_t> answered_;  // exchanges that were Answered, the oldest first
};

}  // namespace ib::cm
