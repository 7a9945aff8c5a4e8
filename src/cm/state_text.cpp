// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/types.h"

namespace ib::cm {

const char* state_text(State state) {
  switch (state) {
    case State::ReqSent: return "REQ sent";
    case State::ReqSentMraReceived: return "REQ sent, MRA received";
    case State::ReqReceived: return "REQ received";
    case State::ReqReceivedMraSent: return "REQ received, MRA sent";
    case State::RepSent: return "REP sent";
    case State::RepSentMraReceived: return "REP sent, MRA received";
    case State::RepReceived: return "REP received";
    case State::RepReceivedMraSent: return "REP received, MRA sent";
    case State::Established: return "established";
    case State::DreqSent: return "DREQ sent";
    case State::DreqReceived: return "DREQ received";
    case State::TimeWait: return "time-wait";
    case State::Closed: return "closed";
  }
  return "unknown state";
}

}  // namespace ib::cm
