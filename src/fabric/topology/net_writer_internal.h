// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts that the files of ibnetdiscover and ibsim have in common when they are written.
#pragma once

#include "fabric/topology/topology.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ib::fabric {

// `S-0002c90200406d40`: the kind and the node GUID.
std::string net_name(const TopologyElement& element);
void append_element_ids(std::string& out, const TopologyElement& element);
// Without the end of the line.
void append_element_line(std::string& out, const TopologyElement& element);
std::uint32_t lid_of(const TopologyElement& element, std::uint32_t port);  // 0: none

// The cables of each element that are up, by their number of port there.
class CablesOf {
 public:
  struct Plug {
    std::uint32_t port = 0;
    TopologyEnd peer;
    std::uint32_t cable = 0;
  };
  explicit CablesOf(const Topology& topology);
  const Plug* begin(std::uint32_t element) const { return plugs_.data() + first_[element]; }
  const Plug* end(std::uint32_t element) const { return plugs_.data() + first_[element + 1]; }

 private:
  std::vector<Plug> plugs_;
  std::vector<std::size_t> first_;
};

}  // namespace ib::fabric
