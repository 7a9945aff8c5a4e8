// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The findings of an examination.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ib::fabric::health {

enum class Severity : std::uint8_t {
  Fault,    // something does not work, or would not on adapters of hardware
  Warning,  // may be meant
};

struct Finding {
  Severity severity = Severity::Fault;
  std::string check;  // "ways", "ports" ...: those of examine.cpp
  std::string where;  // the element or port
  std::string what;
  std::string remedy;
};
using Findings = std::vector<Finding>;

// How much was looked at.
struct Counts {
  std::uint64_t switches = 0;
  std::uint64_t adapters = 0;
  std::uint64_t cables = 0;
  std::uint64_t subnets = 0;         // with a cable
  std::uint64_t ideal_ports = 0;     // ports without a cable that the ideal network joins
  std::uint64_t ethernet_ports = 0;  // not looked at
  std::uint64_t ways = 0;            // from an adapter's port to a LID of another one
  std::uint64_t ways_cut_off = 0;
  std::uint64_t channels = 0;     // from switch to switch, which lead on to others
  std::uint64_t pairs = 0;        // of adapters' ports, for a common partition,
  std::uint64_t pairs_apart = 0;  // which these do not have
};

struct Report {
  Findings findings;
  Counts counts;
};

}  // namespace ib::fabric::health
