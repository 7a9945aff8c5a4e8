// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A topology for people: a line about all of it, a table of its elements, and a tree of its cables.
#pragma once

#include "fabric/topology/topology.h"

#include <string>

namespace ib::fabric {

// "648 HCAs, 54 switches, 1296 cables, 2 of them down"
std::string topology_summary(const Topology& topology);

// A row for each element: name, kind, node GUID, ports, how many have a cable, LIDs.
std::string topology_table(const Topology& topology);

// Each element once. Below a switch stand the elements at its cables that are nearer to the hosts;
// a line `also` has its other cables. So a fat tree begins with its spines, and a torus is a list
// of switches.
std::string topology_tree(const Topology& topology);

}  // namespace ib::fabric
