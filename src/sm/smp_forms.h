// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SMPs as a subnet manager sends them.
#pragma once

#include "mad/smp.h"
#include "sm/subnet/subnet.h"

#include <cstdint>
#include <optional>

namespace ib::sm {

struct Outgoing {
  mad::Smp smp;
  std::uint16_t lid = mad::kPermissiveLid;  // where to; permissive: a directed route
};

// A request along a directed route.
mad::Smp directed_smp(std::uint8_t method, std::uint16_t attribute, std::uint32_t modifier,
                      std::uint64_t m_key, const Route& route, const mad::SmpData& data);
// The answer to a request, to where that came from. `source`: its LID; permissive: by a directed
// route.
Outgoing answer_to(const mad::Smp& request, std::uint16_t source, std::uint16_t status,
                   const mad::SmpData& data);
// Another request, to the sender of one. Returns nothing if no way leads there.
std::optional<Outgoing> request_back(const mad::Smp& request, std::uint16_t source,
                                     std::uint8_t method, std::uint32_t modifier,
                                     const mad::SmpData& data);

}  // namespace ib::sm
