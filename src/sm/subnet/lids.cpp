// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/subnet/lids.h"

#include <algorithm>

namespace ib::sm {

bool Lids::take(Subnet& subnet, std::uint32_t index, std::uint16_t lid, std::uint8_t lmc) {
  const std::uint32_t count = 1u << lmc;
  if (lid == 0 || lid % count != 0 || lid + count - 1 > kLastUnicastLid) return false;
  for (std::uint32_t i = lid; i < lid + count; ++i) {
    if (holders_[i] != kNone) return false;
  }
  for (std::uint32_t i = lid; i < lid + count; ++i) holders_[i] = index;
  Port& port = subnet.port(index);
  port.lid = lid;
  port.lmc = lmc;
  given_[port.guid] = lid;
  top_ = std::max(top_, static_cast<std::uint16_t>(lid + count - 1));
  return true;
}

// 0: none is free.
std::uint16_t Lids::find_free(std::uint8_t lmc) {
  const std::uint32_t count = 1u << lmc;
  std::uint32_t& lid = candidates_[lmc];
  for (lid = std::max(lid, count); lid + count - 1 <= kLastUnicastLid; lid += count) {
    const auto first = holders_.begin() + static_cast<std::ptrdiff_t>(lid);
    const bool is_free =
        std::all_of(first, first + count, [](std::uint32_t i) { return i == kNone; });
    if (is_free) return static_cast<std::uint16_t>(lid);
  }
  return 0;
}

void Lids::assign(Subnet& subnet, std::uint8_t lmc, Problems& problems) {
  holders_.assign(kLastUnicastLid + 1, kNone);
  candidates_ = {};
  top_ = 0;
  std::vector<std::uint32_t> ports;  // without a LID still
  for (std::uint32_t i = 0; i < subnet.ports().size(); ++i) {
    Port& port = subnet.port(i);
    port.lid = 0;
    if (subnet.is_served(port)) ports.push_back(i);
  }
  const auto lmc_of = [&](const Port& port) {
    return subnet.node_of(port).is_switch() ? std::uint8_t{0} : lmc;
  };
  const auto give = [&](const auto& lid_for) {
    std::erase_if(ports, [&](std::uint32_t i) {
      const Port& port = subnet.port(i);
      return take(subnet, i, lid_for(port), lmc_of(port));
    });
  };
  const auto given = [&](const Port& port) {
    const auto found = given_.find(port.guid);
    return found != given_.end() ? found->second : std::uint16_t{0};
  };
  give([&](const Port& port) {
    return port.info.lid == given(port) ? given(port) : std::uint16_t{0};
  });
  give([&](const Port& port) { return std::uint16_t{port.info.lid}; });
  give([&](const Port& port) { return given(port); });
  give([&](const Port& port) { return find_free(lmc_of(port)); });
  for (const std::uint32_t i : ports) {
    const Port& port = subnet.port(i);
    problems.add({ProblemKind::NoLids, subnet.node_of(port).guid(), port.number,
                  subnet.name_of(port) + " gets no LID: all of 1 to 49151 are in use"});
  }
}

}  // namespace ib::sm
