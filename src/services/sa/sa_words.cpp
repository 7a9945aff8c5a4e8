// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_words.h"

#include "sa/records/status_text.h"
#include "sa/server/partitions.h"
#include "verbs/gid.h"

#include <fmt/format.h>

namespace ib::services {
namespace {

// Where the subnet administrator is, and what is wrong with it if something is.
std::string administrator_text(const fabric::Fabric& fabric, const FabricTopology& topology,
                               const fabric::Port* asker) {
  const fabric::Port* manager = asker != nullptr ? topology.manager_of(*asker) : topology.manager();
  if (manager == nullptr) return "the subnet administrator is nowhere: no port has its LID";
  const std::string_view why = out_of_service(fabric, *manager);
  return fmt::format("the subnet administrator (LID {}, {}) does not answer{}", manager->lid,
                     port_text(fabric, *manager),
                     why.empty() ? std::string() : fmt::format(": that port {}", why));
}

std::string silence(const fabric::Fabric& fabric, const FabricTopology& topology,
                    const sa::Outcome& outcome, std::string_view what,
                    const fabric::Port* asker = nullptr) {
  if (outcome.status != Status::Timeout) return fmt::format("{}: {}", what, outcome.reason);
  return fmt::format("{}: {}", what, administrator_text(fabric, topology, asker));
}

// The destination as the query names it.
std::string destination_text(const SaClient::PathQuery& query) {
  if (!verbs::is_zero(query.dgid)) return verbs::address_text(query.dgid);
  if (query.dlid != 0) return fmt::format("LID {}", query.dlid);
  return fmt::format("service {:#x}", query.service_id);
}

std::string no_path_text(const fabric::Fabric& fabric, const SaClient::PathQuery& query) {
  const fabric::Port* from = fabric.graph().find_port(query.sgid);
  const bool by_lid = verbs::is_zero(query.dgid) && query.dlid != 0;
  const bool by_service = verbs::is_zero(query.dgid) && query.dlid == 0;
  if (by_service) return "no port that is reached from there has registered it";
  const fabric::Port* to =
      by_lid ? fabric.graph().find_port(query.dlid) : fabric.graph().find_port(query.dgid);
  if (to == nullptr) {
    return fmt::format("no port of the fabric has the {}{}", by_lid ? "" : "GID ",
                       destination_text(query));
  }
  if (to->is_ethernet()) {
    return fmt::format("{} is an Ethernet port, which an InfiniBand port does not reach",
                       port_text(fabric, *to));
  }
  if (const std::string_view why = out_of_service(fabric, *to); !why.empty()) {
    return fmt::format("{} {}", port_text(fabric, *to), why);
  }
  if (from != nullptr && !sa::share_pkey(from->pkeys, to->pkeys, query.pkey)) {
    return fmt::format(
        "{} and {} do not share the partition of P_Key {:#x} ({} P_Keys in {}'s "
        "table); one of the two has to be a full member",
        port_text(fabric, *from), port_text(fabric, *to), query.pkey, to->pkeys.size(),
        port_text(fabric, *to));
  }
  return "no route there has the MTU, rate, SL or packet life time that was asked for";
}

}  // namespace

Status status_of_answer(std::uint16_t sa_status) {
  switch (sa_status) {
    case sa::sa_status::kOk: return Status::Ok;
    case sa::sa_status::kNoResources: return Status::InsufficientResources;
    case sa::sa_status::kNoRecords:
    case sa::sa_status::kInvalidGid: return Status::NotFound;
    case sa::sa_status::kRequestInvalid:
    case sa::sa_status::kInsufficientComponents:
    case mad::mad_status::kBadField: return Status::InvalidParameter;
    case sa::sa_status::kRequestDenied: return Status::AccessDenied;
    case mad::mad_status::kBadVersion:
    case mad::mad_status::kMethodNotSupported:
    case mad::mad_status::kAttributeNotSupported: return Status::NotSupported;
    default: return Status::Malformed;
  }
}

SaOutcome explain_outcome(const fabric::Fabric& fabric, const FabricTopology& topology,
                          const sa::Outcome& outcome, std::string_view what) {
  if (outcome.status != Status::Ok) {
    return {outcome.status, silence(fabric, topology, outcome, what)};
  }
  if (outcome.sa_status == sa::sa_status::kOk) return {};
  return {status_of_answer(outcome.sa_status),
          fmt::format("{}: the subnet administrator answers: {} (status {:#06x})", what,
                      sa::status_text(outcome.sa_status), outcome.sa_status)};
}

SaOutcome explain_path(const fabric::Fabric& fabric, const FabricTopology& topology,
                       const sa::Outcome& outcome, const SaClient::PathQuery& query) {
  const std::string what = fmt::format("the path from {} to {}", verbs::address_text(query.sgid),
                                       destination_text(query));
  const bool is_nowhere =
      outcome.status == Status::Ok && (outcome.sa_status == sa::sa_status::kNoRecords ||
                                       outcome.sa_status == sa::sa_status::kInvalidGid);
  if (outcome.status != Status::Ok) {
    const fabric::Port* from = fabric.graph().find_port(query.sgid);
    return {outcome.status, silence(fabric, topology, outcome, what, from)};
  }
  if (!is_nowhere) return explain_outcome(fabric, topology, outcome, what);
  return {Status::NotFound, fmt::format("{}: {}", what, no_path_text(fabric, query))};
}

}  // namespace ib::services
