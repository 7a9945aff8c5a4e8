// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// LidTable: the ports that have a LID. In each subnet another port may have it, so a LID has a list
// of ports; one with an LMC is in the list of its first LID.
#pragma once

#include "fabric/port.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace ib::fabric {

class LidTable {
 public:
  void append_port() { next_.push_back(0); }
  bool is_used(std::uint32_t lid) const { return lid < first_.size() && first_[lid] != 0; }
  // The first port of a LID, and the one after a port: indexes in the graph, or kNoIndex.
  std::uint32_t first(std::uint32_t lid) const {
    return lid < first_.size() ? first_[lid] - 1 : kNoIndex;
  }
  std::uint32_t next(std::uint32_t port) const { return next_[port] - 1; }

  void add(std::uint32_t port, std::uint32_t lid) {
    if (first_.size() <= lid) first_.resize(std::size_t{lid} + 1);
    next_[port] = std::exchange(first_[lid], port + 1);
  }
  void remove(std::uint32_t port, std::uint32_t lid) {
    std::uint32_t* at = &first_[lid];
    while (*at != port + 1) at = &next_[*at - 1];
    *at = std::exchange(next_[port], 0);
  }
  // There is one as long as there are no more ports than unicast LIDs.
  std::uint16_t find_free() {
    while (is_used(candidate_)) {
      candidate_ = static_cast<std::uint16_t>(candidate_ % kLastUnicastLid + 1);
    }
    return candidate_;
  }

 private:
  std::vector<std::uint32_t> first_;  // by LID: 1 + index; 0: none; up to the highest in use
  std::vector<std::uint32_t> next_;   // by port: the same
  std::uint16_t candidate_ = 1;
};

}  // namespace ib::fabric
