// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The survey of a fabric that runs, for its examination.
#pragma once

#include "fabric/health/survey.h"
#include "fabric/model.h"

namespace ib::fabric::health {

// Its tables are empty.
Survey take_survey(const Fabric& fabric);
// The tables of a few switches, from an element on; empty: there is none any more.
std::string table_bytes(const Graph& graph, std::uint32_t first_element);

}  // namespace ib::fabric::health
