// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The attributes of subnet management [IBA1 14.2.5], made from the facts of an element, and the
// rules that a Set of each has to keep.
#pragma once

#include "mad/agent.h"

#include <cstdint>

namespace ib::mad {

struct Attribute {
  std::uint16_t status = mad_status::kOk;
  SmpData data{};
};

Attribute get_attribute(const AgentView& element, std::uint8_t arrival, std::uint16_t attribute,
                        std::uint32_t modifier);
// Returns the status of its refusal, or kOk. The data is that of the request.
std::uint16_t check_set(const AgentView& element, std::uint8_t arrival, std::uint16_t attribute,
                        std::uint32_t modifier, const SmpData& data);

}  // namespace ib::mad
