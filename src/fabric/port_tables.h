// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tables of ports that hardly ever differ from what they are at power-on: from service level to
// virtual lane [IBA1 14.2.5.8], and of the arbitration between lanes [IBA1 14.2.5.9]. Only those
// that were written take room.
#pragma once

#include "mad/agent.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace ib::fabric {

class PortTables {
 public:
  // `port`: index in the graph. `from`: of a switch the port by which a packet comes, else 0.
  mad::SmpData sl_to_vl(std::uint32_t port, std::uint32_t from) const {
    return find(key(port, from, kSlToVl), default_sl_to_vl());
  }
  void set_sl_to_vl(std::uint32_t port, std::uint32_t from, const mad::SmpData& data) {
    written_[key(port, from, kSlToVl)] = data;
  }
  // `part`: 1, 2: of the low priority; 3, 4: of the high one.
  mad::SmpData arbitration(std::uint32_t port, std::uint32_t part) const {
    return find(key(port, part, kArbitration), default_arbitration(part));
  }
  void set_arbitration(std::uint32_t port, std::uint32_t part, const mad::SmpData& data) {
    written_[key(port, part, kArbitration)] = data;
  }

  // The port begins again with the tables of power-on.
  void forget(std::uint32_t port) {
    std::erase_if(written_, [&](const auto& table) { return table.first >> 16 == port; });
  }

  static constexpr std::size_t kArbitrationEntries = 8;

 private:
  enum Kind : std::uint64_t { kSlToVl, kArbitration };
  static std::uint64_t key(std::uint32_t port, std::uint32_t place, Kind kind) {
    return std::uint64_t{port} << 16 | std::uint64_t{place} << 8 | kind;
  }
  mad::SmpData find(std::uint64_t key, const mad::SmpData& otherwise) const {
    const auto found = written_.find(key);
    return found != written_.end() ? found->second : otherwise;
  }
  // Level n to lane n, of eight lanes; half a byte each.
  static mad::SmpData default_sl_to_vl() {
    return {0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67};
  }
  // Each lane once, with the weight 1: pairs of lane and weight.
  static mad::SmpData default_arbitration(std::uint32_t part) {
    mad::SmpData data{};
    if (part != 1) return data;
    for (std::size_t lane = 0; lane < kArbitrationEntries; ++lane) {
      data[lane * 2] = static_cast<std::uint8_t>(lane);
      data[lane * 2 + 1] = 1;
    }
    return data;
  }

  std::unordered_map<std::uint64_t, mad::SmpData> written_;
};

}  // namespace ib::fabric
