// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How tools name the elements of a subnet and their ports: a switch by its description or GUID, an
// HCA as NODE/HCA or by its GUID, the first HCA of a node by the name of the node.
#pragma once

#include "fabric/model.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ib::drivers {

// Each returns nullptr, and the reason in words, if there is none.
fabric::Element* find_switch(fabric::Fabric& fabric, std::string_view name, std::string& reason);
fabric::Element* find_element(fabric::Fabric& fabric, std::string_view name, std::string& reason);
// One that takes a cable: not port 0 of a switch.
fabric::Port* find_outer_port(fabric::Fabric& fabric, const fabric::Element& element,
                              std::uint32_t number, std::string& reason);

}  // namespace ib::drivers
