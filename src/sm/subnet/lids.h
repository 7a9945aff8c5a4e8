// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lids: gives end ports their LIDs [IBA1 4.1.3, 14.4.2].
//
// A port keeps what it has, if that is a whole range of its LMC and no other port has a part of it.
// Of two that have the same LID the one keeps it that this manager gave it to. A port that comes
// back gets the LID it had, if that is free still.
#pragma once

#include "sm/subnet/problems.h"
#include "sm/subnet/subnet.h"

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ib::sm {

class Lids {
 public:
  // Port 0 of switches has an LMC of 0.
  void assign(Subnet& subnet, std::uint8_t lmc, Problems& problems);
  std::uint16_t top() const { return top_; }  // the highest in use
  // The port that has it; kNone if none does.
  std::uint32_t holder(std::uint16_t lid) const {
    return lid < holders_.size() ? holders_[lid] : kNone;
  }

 private:
  bool take(Subnet& subnet, std::uint32_t index, std::uint16_t lid, std::uint8_t lmc);
  std::uint16_t find_free(std::uint8_t lmc);

  std::vector<std::uint32_t> holders_;                      // by LID; kNone: it is free
  std::unordered_map<std::uint64_t, std::uint16_t> given_;  // by port GUID
  std::array<std::uint32_t, 8> candidates_{};               // by LMC: no lower one is free
  std::uint16_t top_ = 0;
};

}  // namespace ib::sm
