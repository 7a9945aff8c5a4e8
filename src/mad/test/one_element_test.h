// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An element of one port for the tests of its agent.
#pragma once

#include "mad/agent.h"

#include <cstring>
#include <optional>

namespace ib::mad {

// An element of one port, and of port 0 if it is a switch.
class OneElement final : public AgentView {
 public:
  OneElement(const NodeFacts& node, const PortFacts& port) : node_(node), port_(port) {}
  NodeFacts node() const override { return node_; }
  std::optional<PortFacts> port(std::uint32_t number) const override {
    if (number != port_.number && !(number == 0 && forwarding())) return std::nullopt;
    PortFacts facts = port_;
    facts.number = static_cast<std::uint8_t>(number);
    return facts;
  }
  std::optional<SwitchFacts> forwarding() const override {
    if (node_.type != NodeType::Switch) return std::nullopt;
    return SwitchFacts{};
  }
  SmpData guids(std::uint32_t, std::uint32_t block) const override {
    SmpData data{};
    const Be64 guid = port_.guid;
    if (block == 0) std::memcpy(data.data(), &guid, sizeof guid);
    return data;
  }

 private:
  NodeFacts node_;
  PortFacts port_;
};

}  // namespace ib::mad
