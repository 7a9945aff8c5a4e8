// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The open umad files of programs, for `softib status --json`.
#pragma once

#include "fabric/model.h"
#include "services/umad/umad_service.h"

#include <nlohmann/json.hpp>

namespace ib::softib {

nlohmann::ordered_json umad_json(const fabric::Fabric& fabric,
                                 const services::UmadService& service);

}  // namespace ib::softib
