// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The IBNL files of ibutils: of which switch chips and adapters a product consists, how they are
// wired, and which of their ports are connectors of the product.
//
// `TOPSYSTEM NAME,NAME` begins a product, `SYSTEM NAME,NAME` a board that products of the same file
// use. `NODE SW 24 MT47396 U1` and `SUBSYSTEM LEAF leaf1` are their parts, each with lines for its
// ports: `1 -4x-5G-> P1` leads to a connector, `1 -> U2 8` to a port of another part.
#pragma once

#include "base/result.h"
#include "fabric/topology/text_line_internal.h"
#include "fabric/topology/topology.h"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ib::fabric {

// `-4x-5G->`; 0: it does not say.
struct WireRate {
  std::uint8_t width = 0;
  std::uint8_t speed = 0;
};

struct SystemWire {
  std::string port;  // of the part where the line stands
  WireRate rate;
  std::string peer_part;  // empty: a connector of the system
  std::string peer_port;
};

struct SystemPart {
  std::string name;
  std::string type;           // of a board; empty: it is an element
  TopologyElement element{};  // kind and number of ports
  std::vector<SystemWire> wires{};
};

struct SystemDefinition {
  std::vector<SystemPart> parts;
  // Where its boards are looked up: the systems of its file.
  const std::map<std::string, SystemDefinition*, std::less<>>* boards = nullptr;
};

class SystemLibrary {
 public:
  // Adds the products of an IBNL file. Returns Malformed if the text is none; `reason` then has the
  // file, the line, the column and what was expected there.
  Status add(std::string_view text, std::string_view file, std::string& reason);
  // Returns nullptr if no file has it.
  const SystemDefinition* find(std::string_view product) const;

 private:
  using Boards = std::map<std::string, SystemDefinition*, std::less<>>;
  std::deque<Boards> boards_;  // by file; do not move
  std::deque<SystemDefinition> definitions_;
  std::map<std::string, SystemDefinition*, std::less<>> products_;
};

// `->`, with a width and a speed or without.
Status take_arrow(TextLine& line, WireRate& rate, std::string& reason);

}  // namespace ib::fabric
