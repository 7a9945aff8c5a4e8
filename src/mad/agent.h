// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet management agent of a port [IBA1 14.3]: answers SMPs, a question in, an answer out.
//
// Get of what a port is and has. Set belongs to a subnet manager and is refused in the answer's
// status until there is one. What other agents answer (performance, ...) is not here yet: the
// status says that the class is not supported.
#pragma once

#include "base/result.h"
#include "mad/header.h"
#include "verbs/control.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ib::mad {

// All that an answer can say.
struct PortFacts {
  std::string_view node_description;
  const verbs::control::CaAttr* ca = nullptr;
  const verbs::control::PortAttr* port = nullptr;
  std::uint64_t subnet_prefix = 0;
  std::uint64_t port_guid = 0;
  std::uint8_t number = 1;
  std::span<const std::uint16_t> pkeys;
};

// InvalidParameter and the reason: it is no request to an agent of this port (a response; a
// directed route with hops before it), so that nobody answers.
Status answer(const PortFacts& facts, const Mad& request, Mad& response, std::string& reason);

}  // namespace ib::mad
