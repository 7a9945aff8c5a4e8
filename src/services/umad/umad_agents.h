// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UmadAgents: the agents that programs have registered at the ports of a fabric, by the rules of
// Linux's ib_mad. An agent has a number, which is the upper half of the transaction ids of what it
// sends: by it responses find their way, whatever class they are of. Requests go to the agent that
// has registered their class, version, OUI and method at the port.
//
// Pure.
#pragma once

#include "base/result.h"
#include "mad/header.h"
#include "mad/method_set.h"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ib::services {

class UmadFile;

// A registration as a program wants it.
struct UmadRegistration {
  std::uint32_t qpn = 1;
  std::uint8_t mgmt_class = 0;  // 0: it only sends
  std::uint8_t class_version = 0;
  std::uint32_t oui = 0;     // of vendor classes 0x30 to 0x4f
  mad::MethodSet methods{};  // of requests; empty: it only sends
  std::uint8_t rmpp_version = 0;
  bool has_own_rmpp = false;  // the program puts the packets of long messages together

  bool uses_rmpp() const { return rmpp_version != 0 && !has_own_rmpp; }
};

struct UmadAgent {
  std::uint32_t port = 0;
  UmadRegistration what;
  UmadFile* file = nullptr;
  std::uint32_t id = 0;  // in the file
};

using UmadAgentNumber = std::uint32_t;  // 0: none

// A response, as ib_mad has it: a TrapRepress is one, and some of baseboard management.
bool is_umad_response(std::span<const std::byte> mad);

class UmadAgents {
 public:
  // InvalidParameter: a class, version or RMPP version that there is not, or together, or taken;
  // NotSupported: queue pair 0 of an Ethernet port.
  Result<UmadAgentNumber> add(const UmadAgent& agent, bool is_ethernet);
  void remove(UmadAgentNumber number);
  const UmadAgent* find(UmadAgentNumber number) const;

  // The agent that a request is for, by its number; 0: none takes it. `mad`: with the headers of
  // its class.
  UmadAgentNumber match(std::uint32_t port, std::uint32_t qpn,
                        std::span<const std::byte> mad) const;
  // Whether requests of this class go to agents of programs there, with whatever method.
  bool serves(std::uint32_t port, std::uint8_t mgmt_class) const;
  std::size_t size() const { return agents_.size(); }

 private:
  static Status check(const UmadRegistration& what, bool is_ethernet);
  bool is_taken(const UmadAgent& agent) const;

  // Those of softibd's own agents (services/gsi) count from 1.
  static constexpr UmadAgentNumber kFirst = 0x8000'0000;

  UmadAgentNumber last_ = kFirst - 1;
  std::map<UmadAgentNumber, UmadAgent> agents_;
  std::map<std::uint32_t, std::vector<UmadAgentNumber>> servers_;  // with methods, by port
};

}  // namespace ib::services
