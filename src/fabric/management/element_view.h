// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An element of the graph as its subnet management agent reads it (mad/agent.h): of channel
// adapters and switches alike.
#pragma once

#include "fabric/graph.h"
#include "mad/agent.h"

namespace ib::fabric {

class ElementView final : public mad::AgentView {
 public:
  ElementView(const Graph& graph, const Element& element) : graph_(graph), element_(element) {}

  mad::NodeFacts node() const override;
  std::optional<mad::PortFacts> port(std::uint32_t number) const override;
  std::optional<mad::SwitchFacts> forwarding() const override;
  mad::SmpData guids(std::uint32_t port, std::uint32_t block) const override;
  mad::SmpData linear(std::uint32_t block) const override;
  mad::SmpData multicast(std::uint32_t block, std::uint32_t position) const override;
  mad::SmpData sl_to_vl(std::uint32_t in, std::uint32_t out) const override;
  mad::SmpData arbitration(std::uint32_t port, std::uint32_t part) const override;
  mad::SmpData led() const override;

 private:
  std::uint32_t index_of(std::uint32_t number) const;

  const Graph& graph_;
  const Element& element_;
};

}  // namespace ib::fabric
