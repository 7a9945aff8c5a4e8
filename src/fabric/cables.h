// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Changes of a subnet while it is in use: cables that are plugged in and pulled out, switches that
// come, go, and lose their power. Links follow, and so does softib where it manages the subnet:
// LIDs, the place of the administrator, tables. Another subnet manager gets traps, and sweeps.
//
// Thread rule: as the fabric's.
#pragma once

#include "fabric/model.h"
#include "fabric/port_states.h"

#include <cstdint>
#include <string>

namespace ib::fabric {

// "port 3 of switch-1", "port 1 of softib0 on node0".
std::string port_words(const Fabric& fabric, const Port& port);

// Whether a cable can join two ports. If not, why, in words: AlreadyExists, NotFound (an element
// that is out), InvalidParameter.
Status check_cable(const Fabric& fabric, const Port& a, const Port& b, std::string& reason);
struct CableKind {
  std::uint8_t width = 2;   // Port::width
  std::uint8_t speed = 32;  // Port::speed
};
// Plugs it in; check_cable() has let it pass. Ports that were up on the ideal network go down
// first, by lose_link(), which the caller makes known before.
void plug(Fabric& fabric, Port& a, Port& b, CableKind kind, PortChanges& changes);
// Pulls out the cable of a port, which has one, at both ends. The same goes for its link.
void unplug(Fabric& fabric, Port& port, PortChanges& changes);

// A switch without a cable: one of this name that was removed comes back, or it is a new one.
// `what`: name, number of ports, and a GUID or 0.
Result<Element*> add_switch(Fabric& fabric, const TopologyElement& what, std::string& reason);
// Takes it out with all its cables.
void remove_switch(Fabric& fabric, Element& element, PortChanges& changes);
// Without power all its links go. With power again all that a subnet manager has set is lost.
void set_power(Fabric& fabric, Element& element, bool has_power, PortChanges& changes);

}  // namespace ib::fabric
