// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ports: the addresses of the adapter's ports, by which the paths of REQs and LAPs are checked.
#pragma once

#include "cm/engine.h"
#include "cm/messages/rej.h"
#include "cm/reject_reason.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ib::cm {

// Why a REQ cannot be taken.
struct Fault {
  RejectReason reason{};
  AdditionalInfo info;
};

class Ports {
 public:
  // Replaces the facts of this port.
  void set(const PortFacts& facts);

  // Returns null if no port has this GID, or this number.
  const PortFacts* find(const Gid& gid) const;
  const PortFacts* find(std::uint8_t number) const;

  // A path of a message that has come, as this side has it.
  Path received_path(const Path& path, const MadAddress& from) const;
  // `path` is as this side has it. Returns nothing if it leads to a port, or no port has facts.
  std::optional<Fault> address_fault(const Path& path, bool is_primary, std::uint8_t port) const;

 private:
  std::vector<PortFacts> all_;
};

}  // namespace ib::cm
