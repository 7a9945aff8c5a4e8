// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of al/cm.h: inputs, which the caller fills in, and outputs, which the communication
// manager does when the request has succeeded. Programs have the same
// (verbs/services/cm_requests.h).
#pragma once

#include "verbs/services/cm_requests.h"

namespace ib::al {

using verbs::control::CmAcceptIn;
using verbs::control::CmAnswerPathIn;
using verbs::control::CmCode;
using verbs::control::CmConnectIn;
using verbs::control::CmData;
using verbs::control::CmEndedBy;
using verbs::control::CmEvent;
using verbs::control::CmEventKind;
using verbs::control::CmHandle;
using verbs::control::CmHandleIn;
using verbs::control::CmListenIn;
using verbs::control::CmLoadPathIn;
using verbs::control::CmMessageIn;
using verbs::control::CmPath;
using verbs::control::CmPathAnswer;
using verbs::control::CmQueryIn;
using verbs::control::CmQueryOut;
using verbs::control::CmRejectIn;
using verbs::control::CmReply;
using verbs::control::CmRequest;
using verbs::control::CmResolved;
using verbs::control::CmResolveIn;
using verbs::control::CmRespondIn;
using verbs::control::CmServices;
using verbs::control::kCmCodes;
namespace cm_room = verbs::control::cm_room;

}  // namespace ib::al
