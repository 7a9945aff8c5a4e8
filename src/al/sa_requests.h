// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of al/sa.h: inputs, which the caller fills in, and outputs, which are filled in when
// the request has succeeded. Programs have the same (verbs/services/sa_requests.h).
#pragma once

#include "al/cm_requests.h"
#include "verbs/services/sa_requests.h"

namespace ib::al {

using verbs::control::kSaCodes;
using verbs::control::SaCode;
using verbs::control::SaEvent;
using verbs::control::SaEventKind;
using verbs::control::SaGroup;
using verbs::control::SaHandle;
using verbs::control::SaHandleIn;
using verbs::control::SaJoinIn;
using verbs::control::SaPath;
using verbs::control::SaPathIn;
using verbs::control::SaServiceIn;
using verbs::control::SaSubscribeIn;

}  // namespace ib::al
