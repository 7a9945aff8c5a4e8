// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The values that attributes of a queue pair may have [IBA1 11.2.5.2], as far as they depend on
// nothing else: ports, P_Keys and addresses are of the HCA.
#pragma once

#include "verbs/control.h"

#include <cstdint>
#include <string>

namespace ib::verbs {

// Of the attributes that are in `mask` (qp_attr). Returns false and the reason if one is beyond its
// bounds.
bool check_qp_values(std::uint32_t mask, const control::QpAttr& attr, std::string& reason);

}  // namespace ib::verbs
