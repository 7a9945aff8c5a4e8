// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet management agent of a port [IBA1 14.3]: turns an SMP into its answer.
//
// It answers Get of the attributes of a port. Set belongs to a subnet manager and is refused in the
// answer's status. Classes of other agents (performance, ...) get the status "class not supported".
#pragma once

#include "base/result.h"
#include "mad/header.h"
#include "verbs/control.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ib::mad {

// The state of a port that answers are made from.
struct PortFacts {
  std::string_view node_description;
  const verbs::control::CaAttr* ca = nullptr;
  const verbs::control::PortAttr* port = nullptr;
  std::uint64_t subnet_prefix = 0;
  std::uint64_t port_guid = 0;
  std::uint8_t number = 1;
  std::span<const std::uint16_t> pkeys;
};

// Returns InvalidParameter and the reason if it is no request to an agent of this port (a response;
// a directed route with hops left) and gets no answer.
Status answer(const PortFacts& facts, const Mad& request, Mad& response, std::string& reason);

}  // namespace ib::mad
