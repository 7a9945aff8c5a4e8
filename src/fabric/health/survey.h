// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Survey: what an examination of a subnet looks at: elements, ports, cables, P_Keys and forwarding
// tables, as plain arrays that name each other by index. softibd makes one of its graph, and
// whoever examines it does so in another process, since that takes seconds in a large subnet.
// Tables come apart from the rest, a few switches at a time: softib computes its own when they are
// read.
#pragma once

#include "fabric/port.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ib::fabric::health {

struct SurveyElement {
  std::uint64_t guid = 0;
  std::uint32_t first_port = 0;
  std::uint32_t port_count = 0;  // port 0 of a switch too
  std::uint32_t name_at = 0;     // in Survey::names
  std::uint32_t name_size = 0;
  std::uint32_t is_switch = 0;
  std::uint32_t is_absent = 0;  // a switch without power; an HCA that was pulled out, or sleeps
  std::uint32_t is_gone = 0;    // a switch that was taken out of the fabric
  std::uint32_t reserved = 0;
};

struct SurveyPort {
  std::uint64_t guid = 0;
  std::uint32_t element = 0;
  std::uint32_t peer = kNoIndex;
  std::uint32_t subnet = 0;  // ports that cables join, up or not
  std::uint32_t pkeys_at = 0;
  std::uint32_t pkey_count = 0;
  std::uint16_t lid = 0;
  std::uint8_t lmc = 0;
  std::uint8_t number = 0;
  std::uint8_t state = 0;  // verbs::PortState
  std::uint8_t physical_state = 0;
  std::uint8_t width = 0;
  std::uint8_t speed = 0;
  std::uint8_t best_width = 0;
  std::uint8_t best_speed = 0;
  std::uint8_t is_ethernet = 0;
  std::uint8_t is_sm = 0;  // a subnet manager works here
};

struct Survey {
  std::vector<SurveyElement> elements;
  std::vector<SurveyPort> ports;
  std::vector<std::uint16_t> pkeys;
  std::string names;
  bool softib_manages = false;                    // subnets without another manager
  bool has_ideal_network = false;                 // joins adapters' ports without a cable
  std::vector<std::vector<std::uint8_t>> tables;  // by element; of switches: by LID

  std::string_view name(const SurveyElement& element) const {
    return std::string_view(names).substr(element.name_at, element.name_size);
  }
  const SurveyElement& element_of(const SurveyPort& port) const { return elements[port.element]; }
  const SurveyPort* peer_of(const SurveyPort& port) const {
    return port.peer != kNoIndex ? &ports[port.peer] : nullptr;
  }
  std::uint32_t index_of(const SurveyPort& port) const {
    return static_cast<std::uint32_t>(&port - ports.data());
  }
  // "port 3 of switch-1-0".
  std::string place(const SurveyPort& port) const;
  // Has LIDs and partitions of its own: an adapter's port, or port 0 of a switch.
  bool is_end_port(const SurveyPort& port) const {
    return element_of(port).is_switch == 0 || port.number == 0;
  }
  // Data crosses the cable of this port.
  bool carries(const SurveyPort& port) const;
  // An adapter's port that sends and receives data by a cable.
  bool is_data_end(const SurveyPort& port) const {
    return element_of(port).is_switch == 0 && port.lid != 0 && carries(port);
  }
  std::span<const SurveyPort> ports_of(const SurveyElement& element) const {
    return std::span(ports).subspan(element.first_port, element.port_count);
  }
  std::span<const std::uint16_t> pkeys_of(const SurveyPort& port) const {
    return std::span(pkeys).subspan(port.pkeys_at, port.pkey_count);
  }
};

// Without the tables.
std::string to_bytes(const Survey& survey);
// Returns nothing if that is no survey of this version, or one of its indexes leads nowhere.
std::optional<Survey> survey_from(std::string_view bytes);

// Of the tables of some switches in a row.
void append_table(std::string& bytes, std::uint32_t element, std::span<const std::uint8_t> table);
// Puts them into the survey. Returns the element after the last one, or nothing if they do not
// fit.
std::optional<std::uint32_t> take_tables(Survey& survey, std::string_view bytes);

}  // namespace ib::fabric::health
