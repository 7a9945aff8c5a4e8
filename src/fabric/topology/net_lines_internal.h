// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The two kinds of lines that files of ibnetdiscover and of ibsim share: the first line of an
// element, `Switch 24 "NAME" # "description" base port 0 lid 6 lmc 0`, and that of a port,
// `[1](GUID) "NAME"[10] # lid 4 lmc 0 "description" lid 6 4xSDR`; and the topology that follows.
#pragma once

#include "base/result.h"
#include "fabric/topology/text_line_internal.h"
#include "fabric/topology/topology.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ib::fabric {

struct ElementLine {
  std::string_view name;
  std::size_t name_column = 0;
  TopologyElement element;  // without GUIDs
  bool has_description = false;
};
// Whether the line is one of an element, which begins with Switch, Ca, Hca or Rt.
bool is_element_line(const TextLine& line);
Status parse_element_line(TextLine& line, ElementLine& result, std::string& reason);

struct PortLine {
  std::uint32_t port = 0;
  std::uint64_t guid = 0;  // 0: the line has none
  std::string_view peer;
  std::size_t peer_column = 0;
  std::uint32_t peer_port = 0;  // 0: the line has none
  std::uint16_t lid = 0;
  std::uint8_t lmc = 0;
  std::uint8_t width = 0;  // as the comment says; 0: it does not
  std::uint8_t speed = 0;
  std::uint8_t width_mask = 0;  // the options w= and s= of ibsim: what the port can be; 0: none
  std::uint8_t speed_mask = 0;
};
// `ports`: how many the element has.
Status parse_port_line(TextLine& line, std::uint32_t ports, PortLine& result, std::string& reason);

// Completes the port GUIDs of an element that has some: they follow each other. Leaves none if they
// are those that it has without.
void settle_port_guids(TopologyElement& element);

// Gathers elements and their ports, and joins those that name each other. Names are pieces of a
// text that outlives it.
class NetBuilder {
 public:
  // The element whose port lines follow.
  Status add_element(const TextLine& line, const ElementLine& parsed, std::string& reason);
  TopologyElement& last() { return topology_.elements.back(); }
  Status add_port(const TextLine& line, const PortLine& parsed, std::string& reason);
  // Another name for a port of the last element. A port that is named so need not name its peer.
  Status add_alias(const TextLine& line, std::string_view alias, std::uint32_t port,
                   std::string& reason);

  // For cables whose ends do not say their width and speed: masks.
  void set_default_link(std::uint8_t width, std::uint8_t speed) {
    width_ = width;
    speed_ = speed;
  }
  // Joins the ports, and checks all.
  Result<Topology> finish(std::string& reason);

 private:
  struct Record {
    TopologyEnd end;
    TopologyEnd peer;
    PortLine line;
    std::string_view file;
    std::uint32_t number = 0;
    std::uint8_t width = 0;  // the defaults where the line stands
    std::uint8_t speed = 0;
  };
  struct Named {
    TopologyEnd end;
    std::string_view file;
    std::uint32_t number = 0;
  };
  Status resolve(Record& record, std::string& reason) const;
  Status join(std::uint32_t index, std::string& reason);
  Status complain(const Record& record, const std::string& sentence, std::string& reason) const;
  std::uint32_t& slot(TopologyEnd end) { return slots_[first_[end.element] + end.port - 1]; }
  std::string_view name(std::uint32_t element) const { return names_[element]; }

  Topology topology_;
  std::vector<std::string_view> names_;  // by element
  std::vector<std::size_t> first_;       // by element: its first port in slots_
  std::vector<std::uint32_t> slots_;     // by port: its record, or kNoIndex
  std::vector<Record> records_;
  std::unordered_map<std::string_view, Named> elements_;
  std::unordered_map<std::string_view, Named> aliases_;
  std::uint8_t width_ = 2;
  std::uint8_t speed_ = 32;
};

}  // namespace ib::fabric
