// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ways that end before the peer, in words: where, why, and who mends it.
#include "drivers/trace/explain.h"

#include <fmt/format.h>

#include <array>

namespace ib::drivers {
namespace {

using verbs::control::Cause;

// With the LID and the end.
struct Reason {
  Cause cause;
  const char* text;
};
constexpr std::array kReasons{
    Reason{Cause::WayMissing,
           "the way to LID {0} ends at {1}: the table of that switch has no port for it, or leads "
           "to an adapter without this LID; the subnet manager writes it, and `softib path` "
           "follows it"},
    Reason{Cause::WayDown,
           "the way to LID {0} ends at {1}, which has no cable that is up, or is not in state "
           "Active; `softib cable up`, or a sweep of the subnet manager, mends that"},
    Reason{Cause::WayInCircle,
           "the tables of the switches send LID {0} in a circle, which passes {1}; the subnet "
           "manager has to write others"},
    Reason{Cause::WayPartition,
           "the way to LID {0} ends at {1}, which enforces partitions and is not in that of the "
           "P_Key of the queue pair; the subnet manager writes its P_Key table (`smpquery pkeys`)"},
    Reason{Cause::WayLane,
           "the way to LID {0} has no virtual lane for the service level, at {1}; use the SL of "
           "the path record (`smpquery sl2vl` shows the table)"},
};

}  // namespace

std::string explain_way(const verbs::control::TraceErrorIn& e, const std::string& end) {
  if (e.cause == Cause::WayMtu) {
    return fmt::format(
        "a link on the way carries packets of {} bytes, and this message has some of up to {}; use "
        "the MTU of the path record on both sides",
        e.detail & 0xffff'ffff, e.detail >> 32);
  }
  for (const Reason& reason : kReasons) {
    if (reason.cause != e.cause) continue;
    return fmt::format(fmt::runtime(reason.text), e.detail & 0xffff,
                       end.empty() ? "a switch" : end);
  }
  return {};
}

}  // namespace ib::drivers
