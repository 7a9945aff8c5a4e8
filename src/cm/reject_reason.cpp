// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One total table for each vocabulary; numbers that it does not have are a peer's own.
#include "cm/reject_reason.h"

#include <array>

namespace ib::cm {
namespace {

using Row = NumberedText;

constexpr ReasonText kUnknown{"unknown", "the other side gave a number that has no meaning",
                              "the other side's software, and whether it is a newer one"};

constexpr const char* kCheckPath =
    "the path that was given to the connection, or whether the address has changed since it was "
    "resolved";
constexpr const char* kCheckAlternate =
    "the alternate path that was given to the connection, or connect without one";
constexpr const char* kCheckLimits = "the limits of the other side: ibv_devinfo -v";

constexpr std::array kRejectRows = {
    Row{1, {"no QP available", "the other side has no queue pair left", kCheckLimits}},
    Row{2, {"no EEC available", "the other side has no end-to-end context left", kCheckLimits}},
    Row{3,
        {"no resources available", "the other side cannot take another connection now",
         "the backlog of the listener, and how fast it accepts"}},
    Row{4,
        {"timeout", "the other side waited for an answer of this side, which did not come in time",
         "whether this program answers requests and replies at once, and the CM response timeout"}},
    Row{5,
        {"unsupported request", "the other side does not support what was asked for",
         "the version of the other side's software"}},
    Row{6,
        {"invalid communication ID", "the other side has no connection with this number",
         "whether the other program ended or was started again meanwhile"}},
    Row{7,
        {"invalid communication instance",
         "the numbers of the connection do not belong together at the other side",
         "whether the other program ended or was started again meanwhile"}},
    Row{8,
        {"invalid service ID", "nobody listens for this service at the other side",
         "whether the server runs, and its address and port"}},
    Row{9,
        {"invalid transport service type",
         "the other side does not support this kind of connection",
         "whether both sides use the same kind of queue pair (RC, UC, XRC)"}},
    Row{10,
        {"stale connection", "the other side still has an older connection of this queue pair",
         "whether a queue pair is connected again before time-wait is over; once in a while this "
         "is "
         "nothing"}},
    Row{11, {"RDC does not exist", "the other side has no reliable datagram channel", kCheckPath}},
    Row{12,
        {"primary remote port GID rejected",
         "the address of the primary path is not one of the port", kCheckPath}},
    Row{13,
        {"primary remote port LID rejected", "the LID of the primary path is not one of the port",
         kCheckPath}},
    Row{14,
        {"invalid primary SL", "the other side refuses the service level of the primary path",
         kCheckPath}},
    Row{15,
        {"invalid primary traffic class", "the other side refuses the traffic class", kCheckPath}},
    Row{16,
        {"invalid primary hop limit", "the other side refuses the hop limit of the primary path",
         kCheckPath}},
    Row{17,
        {"invalid primary packet rate", "the other side refuses the rate of the primary path",
         kCheckPath}},
    Row{18,
        {"alternate remote port GID rejected",
         "the address of the alternate path is not one of the other side's", kCheckAlternate}},
    Row{19,
        {"alternate remote port LID rejected",
         "the LID of the alternate path is not one of the other side's", kCheckAlternate}},
    Row{20,
        {"invalid alternate SL", "the other side refuses the service level of the alternate path",
         kCheckAlternate}},
    Row{21,
        {"invalid alternate traffic class",
         "the other side refuses the traffic class of the alternate path", kCheckAlternate}},
    Row{22,
        {"invalid alternate hop limit",
         "the other side refuses the hop limit of the alternate path", kCheckAlternate}},
    Row{23,
        {"invalid alternate packet rate", "the other side refuses the rate of the alternate path",
         kCheckAlternate}},
    Row{24,
        {"port and CM redirection",
         "the service is at another port, and another communication manager has to be asked",
         "the address in the additional information, to connect to it"}},
    Row{25,
        {"port redirection", "the service is at another port",
         "the address in the additional information, to connect to it"}},
    Row{26,
        {"invalid path MTU", "the other side cannot use the MTU of the path",
         "the active MTU of both ports: ibv_devinfo"}},
    Row{27,
        {"insufficient responder resources",
         "the other side cannot have that many RDMA READs and atomics open",
         "responder_resources and initiator_depth of the connection"}},
    Row{28,
        {"consumer reject", "the program at the other side has refused the connection",
         "the other program's log; it may be full, or of another version"}},
    Row{29,
        {"RNR retry count reject", "the other side refuses the RNR retry count",
         "rnr_retry_count of the connection"}},
    Row{30,
        {"duplicate local communication ID",
         "the other side has another connection with the same number of this side",
         "whether two communication managers have the same CA GUID"}},
    Row{31,
        {"unsupported class version", "the other side has another version of the CM protocol",
         "the version of the other side's software"}},
    Row{32,
        {"invalid primary flow label", "the other side refuses the flow label of the primary path",
         kCheckPath}},
    Row{33,
        {"invalid alternate flow label",
         "the other side refuses the flow label of the alternate path", kCheckAlternate}},
    Row{65535,
        {"service handoff", "the other side hands the connection over to another service",
         "the version of the other side's software: this is no part of the specification any "
         "more"}},
};

constexpr std::array kPathRows = {
    Row{0, {"loaded", "the alternate path is in use for failover", "nothing"}},
    Row{1,
        {"invalid communication ID", "the other side has no connection with this number",
         "whether the connection still exists"}},
    Row{2,
        {"APM not supported", "the other side cannot change the alternate path",
         "whether this side is the one that connected, and the other adapter's abilities"}},
    Row{3,
        {"rejected", "the program at the other side has refused the alternate path",
         "the other program's log"}},
    Row{4,
        {"redirect", "the alternate path leads to another port of the other side",
         "the address in the additional information"}},
    Row{5,
        {"path is current", "the alternate path is the primary path",
         "that another path is given"}},
    Row{6,
        {"invalid QPN", "the queue pair is not the one of the connection",
         "the other side's software"}},
    Row{7, {"LID rejected", "the LID is not one of the other side's", kCheckAlternate}},
    Row{8, {"GID rejected", "the address is not one of the other side's", kCheckAlternate}},
    Row{9, {"flow label rejected", "the other side refuses the flow label", kCheckAlternate}},
    Row{10,
        {"traffic class rejected", "the other side refuses the traffic class", kCheckAlternate}},
    Row{11, {"hop limit rejected", "the other side refuses the hop limit", kCheckAlternate}},
    Row{12, {"packet rate rejected", "the other side refuses the rate", kCheckAlternate}},
    Row{13, {"SL rejected", "the other side refuses the service level", kCheckAlternate}},
};

constexpr std::array kSidrRows = {
    Row{0, {"valid", "the service has a queue pair", "nothing"}},
    Row{1,
        {"service ID not supported", "nobody has this service at the other side",
         "whether the server runs, and its address and port"}},
    Row{2,
        {"rejected", "the program at the other side has refused the request",
         "the other program's log; it may be busy"}},
    Row{3, {"no QP available", "the other side has no queue pair left", kCheckLimits}},
    Row{4,
        {"redirect", "the service is at another port",
         "the address in the additional information"}},
    Row{5,
        {"unsupported version", "the other side has another version of the CM protocol",
         "the version of the other side's software"}},
};

ReasonText find(std::span<const Row> rows, std::int32_t number) {
  for (const Row& row : rows) {
    if (row.number == number) return row.text;
  }
  return kUnknown;
}

}  // namespace

std::span<const NumberedText> reject_reasons() {
  return kRejectRows;
}
std::span<const NumberedText> path_statuses() {
  return kPathRows;
}
std::span<const NumberedText> sidr_statuses() {
  return kSidrRows;
}

ReasonText reason_text(RejectReason reason) {
  return find(kRejectRows, static_cast<std::int32_t>(reason));
}
ReasonText status_text(AlternatePathStatus status) {
  return find(kPathRows, static_cast<std::int32_t>(status));
}
ReasonText status_text(SidrStatus status) {
  return find(kSidrRows, static_cast<std::int32_t>(status));
}

}  // namespace ib::cm
