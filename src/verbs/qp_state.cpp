// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/qp_state.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstddef>

namespace ib::verbs {
namespace {

using namespace qp_attr;

// Types by bit, so that a rule can name several.
constexpr std::uint32_t kRc = 1;
constexpr std::uint32_t kUc = 2;
constexpr std::uint32_t kUd = 4;
constexpr std::uint32_t kXrcSend = 8;
constexpr std::uint32_t kXrcRecv = 16;
constexpr std::uint32_t kSpecial = 32;  // queue pairs 0 and 1: their port is given
constexpr std::uint32_t kXrc = kXrcSend | kXrcRecv;
constexpr std::uint32_t kConnected = kRc | kUc | kXrc;
constexpr std::uint32_t kReliable = kRc | kXrc;
constexpr std::uint32_t kResponder = kRc | kXrcRecv;  // reliable, and answers requests
constexpr std::uint32_t kRequester = kRc | kXrcSend;  // reliable, and sends requests
constexpr std::uint32_t kDatagram = kUd | kSpecial;
constexpr std::uint32_t kOrdinary = kConnected | kUd;
constexpr std::uint32_t kAll = kConnected | kDatagram;

constexpr std::uint32_t type_bit(QpType type) {
  switch (type) {
    case QpType::Rc: return kRc;
    case QpType::Uc: return kUc;
    case QpType::Ud: return kUd;
    case QpType::Smi:
    case QpType::Gsi: return kSpecial;
    case QpType::XrcSend: return kXrcSend;
    case QpType::XrcRecv: return kXrcRecv;
  }
  return 0;
}

// The rules of one transition add up: every rule that names a type contributes its attributes.
struct Rule {
  QpState from;
  QpState to;
  std::uint32_t types;
  std::uint32_t required;
  std::uint32_t optional;
};

using enum QpState;
constexpr std::uint32_t kPath = kAltPath | kAccessFlags | kPathMigState;

constexpr auto kRules = std::to_array<Rule>({
    {Reset, Reset, kAll, 0, 0},
    {Reset, Init, kAll, kPkeyIndex, 0},
    {Reset, Init, kOrdinary, kPort, 0},
    {Reset, Init, kConnected, kAccessFlags, 0},
    {Reset, Init, kDatagram, kQkey, 0},

    {Init, Init, kAll, 0, kPkeyIndex},
    {Init, Init, kOrdinary, 0, kPort},
    {Init, Init, kConnected, 0, kAccessFlags},
    {Init, Init, kDatagram, 0, kQkey},
    {Init, Rtr, kConnected, kAv | kPathMtu | kDestQpn | kRqPsn,
     kAltPath | kAccessFlags | kPkeyIndex},
    {Init, Rtr, kResponder, kMaxDestRdAtomic | kMinRnrTimer, 0},
    {Init, Rtr, kDatagram, 0, kPkeyIndex | kQkey},
    // A sender answers no requests, but perftest sets these on it and adapters let that pass.
    {Init, Rtr, kXrcSend, 0, kMaxDestRdAtomic | kMinRnrTimer},

    {Rtr, Rts, kAll, kSqPsn, kCurState},
    {Rtr, Rts, kReliable, kTimeout, 0},
    {Rtr, Rts, kRequester, kRetryCnt | kRnrRetry | kMaxQpRdAtomic, 0},
    {Rtr, Rts, kConnected, 0, kPath},
    {Rtr, Rts, kResponder, 0, kMinRnrTimer},
    {Rtr, Rts, kDatagram, 0, kQkey},
    {Rtr, Rts, kXrcRecv, 0, kRetryCnt | kRnrRetry | kMaxQpRdAtomic},  // likewise

    {Rts, Rts, kAll, 0, kCurState},
    {Rts, Rts, kConnected, 0, kPath},
    {Rts, Rts, kResponder, 0, kMinRnrTimer},
    {Rts, Rts, kDatagram, 0, kQkey},
    {Rts, Sqd, kAll, 0, kEnSqdAsyncNotify},

    {Sqd, Rts, kAll, 0, kCurState},
    {Sqd, Rts, kConnected, 0, kPath},
    {Sqd, Rts, kResponder, 0, kMinRnrTimer},
    {Sqd, Rts, kDatagram, 0, kQkey},
    {Sqd, Sqd, kAll, 0, kPkeyIndex},
    {Sqd, Sqd, kDatagram, 0, kQkey},
    {Sqd, Sqd, kConnected, 0, kAv | kPath},
    {Sqd, Sqd, kReliable, 0, kPort | kTimeout},
    {Sqd, Sqd, kRequester, 0, kRetryCnt | kRnrRetry | kMaxQpRdAtomic},
    {Sqd, Sqd, kResponder, 0, kMaxDestRdAtomic | kMinRnrTimer},

    {Sqe, Rts, kAll, 0, 0},
    {Sqe, Rts, kDatagram, 0, kCurState | kQkey},
    {Sqe, Rts, kUc, 0, kCurState | kAccessFlags},
});

constexpr QpTransition look_up(QpType type, QpState from, QpState to) {
  QpTransition found;
  // A queue pair that has left Reset can be reset or put into error, with only the state.
  if (from != Reset && (to == Reset || to == Error)) found.legal = true;
  for (const Rule& rule : kRules) {
    if (rule.from != from || rule.to != to || (rule.types & type_bit(type)) == 0) continue;
    found.legal = true;
    found.required |= rule.required;
    found.optional |= rule.optional;
  }
  return found;
}

static_assert(!look_up(QpType::Rc, Reset, Rts).legal, "no shortcut");
static_assert(!look_up(QpType::Rc, Reset, Error).legal, "as in Linux");
static_assert(look_up(QpType::Rc, Error, Reset).legal && !look_up(QpType::Rc, Error, Init).legal);
static_assert(look_up(QpType::Rc, Reset, Init).required == (kPkeyIndex | kPort | kAccessFlags));
static_assert(look_up(QpType::Ud, Reset, Init).required == (kPkeyIndex | kPort | kQkey));
static_assert(look_up(QpType::Smi, Reset, Init).required == (kPkeyIndex | kQkey));
static_assert(look_up(QpType::Rc, Init, Rtr).required ==
              (kAv | kPathMtu | kDestQpn | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer));
static_assert(look_up(QpType::XrcSend, Init, Rtr).required == (kAv | kPathMtu | kDestQpn | kRqPsn));
static_assert(look_up(QpType::Ud, Init, Rtr).required == 0);
static_assert(look_up(QpType::Rc, Rtr, Rts).required ==
              (kTimeout | kRetryCnt | kRnrRetry | kSqPsn | kMaxQpRdAtomic));
static_assert(look_up(QpType::XrcRecv, Rtr, Rts).required == (kTimeout | kSqPsn));

struct AttrName {
  std::uint32_t bit;
  const char* name;
};
constexpr auto kAttrNames = std::to_array<AttrName>({
    {kState, "IBV_QP_STATE"},
    {kCurState, "IBV_QP_CUR_STATE"},
    {kEnSqdAsyncNotify, "IBV_QP_EN_SQD_ASYNC_NOTIFY"},
    {kAccessFlags, "IBV_QP_ACCESS_FLAGS"},
    {kPkeyIndex, "IBV_QP_PKEY_INDEX"},
    {kPort, "IBV_QP_PORT"},
    {kQkey, "IBV_QP_QKEY"},
    {kAv, "IBV_QP_AV"},
    {kPathMtu, "IBV_QP_PATH_MTU"},
    {kTimeout, "IBV_QP_TIMEOUT"},
    {kRetryCnt, "IBV_QP_RETRY_CNT"},
    {kRnrRetry, "IBV_QP_RNR_RETRY"},
    {kRqPsn, "IBV_QP_RQ_PSN"},
    {kMaxQpRdAtomic, "IBV_QP_MAX_QP_RD_ATOMIC"},
    {kAltPath, "IBV_QP_ALT_PATH"},
    {kMinRnrTimer, "IBV_QP_MIN_RNR_TIMER"},
    {kSqPsn, "IBV_QP_SQ_PSN"},
    {kMaxDestRdAtomic, "IBV_QP_MAX_DEST_RD_ATOMIC"},
    {kPathMigState, "IBV_QP_PATH_MIG_STATE"},
    {kCap, "IBV_QP_CAP"},
    {kDestQpn, "IBV_QP_DEST_QPN"},
    {kRateLimit, "IBV_QP_RATE_LIMIT"},
});

constexpr bool may_name_current(QpState state) {
  return state == Rtr || state == Rts || state == Sqd || state == Sqe;
}

}  // namespace

QpTransition qp_transition(QpType type, QpState from, QpState to) {
  return look_up(type, from, to);
}

QpModifyCheck check_qp_modify(QpType type, QpState from, QpState to, std::uint32_t mask) {
  const QpTransition rule = look_up(type, from, to);
  if (!rule.legal) return {QpModifyVerdict::NoSuchTransition, 0};
  if ((mask & kCurState) != 0 && !may_name_current(from)) {
    return {QpModifyVerdict::ExtraAttributes, kCurState};
  }
  if (const std::uint32_t missing = rule.required & ~mask; missing != 0) {
    return {QpModifyVerdict::MissingAttributes, missing};
  }
  if (const std::uint32_t extra = mask & ~(rule.required | rule.optional | kState); extra != 0) {
    return {QpModifyVerdict::ExtraAttributes, extra};
  }
  return {};
}

const char* qp_state_name(QpState state) {
  switch (state) {
    case Reset: return "RESET";
    case Init: return "INIT";
    case Rtr: return "RTR";
    case Rts: return "RTS";
    case Sqd: return "SQD";
    case Sqe: return "SQE";
    case Error: return "ERROR";
  }
  return "an unknown state";
}

const char* qp_type_name(QpType type) {
  switch (type) {
    case QpType::Rc: return "RC";
    case QpType::Uc: return "UC";
    case QpType::Ud: return "UD";
    case QpType::Smi: return "SMI";
    case QpType::Gsi: return "GSI";
    case QpType::XrcSend: return "XRC_SEND";
    case QpType::XrcRecv: return "XRC_RECV";
  }
  return "unknown";
}

std::string qp_attr_names(std::uint32_t mask) {
  std::string text;
  const auto add = [&text](const std::string& name) {
    if (!text.empty()) text += ", ";
    text += name;
  };
  for (const AttrName& attr : kAttrNames) {
    if ((mask & attr.bit) != 0) add(attr.name);
    mask &= ~attr.bit;
  }
  for (; mask != 0; mask &= mask - 1) add(fmt::format("bit {}", std::countr_zero(mask)));
  return text;
}

std::string explain_qp_modify(QpType type, QpState from, QpState to, const QpModifyCheck& check) {
  std::string what = std::string(qp_type_name(type)) + " queue pair from " + qp_state_name(from) +
                     " to " + qp_state_name(to);
  switch (check.verdict) {
    case QpModifyVerdict::Ok: return what + ": legal";
    case QpModifyVerdict::NoSuchTransition:
      return what +
             ": there is no such transition (RESET, INIT, RTR, RTS in this order; any "
             "state but RESET may go to ERROR; ERROR is left by RESET)";
    case QpModifyVerdict::MissingAttributes:
      return what + ": the mask also needs " + qp_attr_names(check.attributes);
    case QpModifyVerdict::ExtraAttributes:
      return what + ": the mask may not have " + qp_attr_names(check.attributes);
  }
  return what;
}

}  // namespace ib::verbs
