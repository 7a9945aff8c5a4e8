// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether an address vector of a consumer makes sense on a port [IBA1 11.2.2.1].
#pragma once

#include "verbs/types.h"

#include <cstdint>
#include <string>

namespace ib::verbs {

// The ports of one HCA (numbered from 1) and of its fabric, as far as the check needs them.
class AddressBook {
 public:
  struct Owner {
    LinkLayer link_layer = LinkLayer::Unspecified;  // of no port: nobody has the GID
    std::uint16_t lid = 0;
    std::uint32_t segment = 0;
  };
  virtual ~AddressBook() = default;
  virtual std::uint32_t ports() const = 0;
  virtual LinkLayer link_layer(std::uint32_t port) const = 0;
  // Two ports reach each other if theirs are equal.
  virtual std::uint32_t segment(std::uint32_t port) const = 0;
  // At `index` of the port's GID table; zero: none is there.
  virtual Gid gid(std::uint32_t port, std::uint32_t index) const = 0;
  virtual Owner owner_of(const Gid& gid) const = 0;
};

// Returns what is wrong with `av`, for a person; empty if nothing is. A global address without a
// LID gets that of the port with its GID, which is a subnet manager's job elsewhere; on Ethernet,
// which has no LIDs, any LID is dropped. The upper 12 bits of the flow label go, as in adapters.
std::string check_address(const AddressBook& book, AddressVector& av);

}  // namespace ib::verbs
