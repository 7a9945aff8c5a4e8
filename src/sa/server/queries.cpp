// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Get and GetTable of records: which ones, and how many an answer may have [IBA1 15.4.6].
#include "sa/records/components.h"
#include "sa/records/node_record.h"
#include "sa/server/paths.h"
#include "sa/server/server.h"

namespace ib::sa {
namespace {

// Of PortInfoRecord: bits of the capability mask are to be set, others may be [15.2.5.3].
constexpr std::uint32_t kMatchCapabilityBits = 1u << 31;

std::size_t record_size_of(std::uint16_t attribute) {
  switch (attribute) {
    case attribute::kNodeRecord: return NodeRecord::kSize;
    case attribute::kPortInfoRecord: return PortInfoRecord::kSize;
    case attribute::kServiceRecord: return ServiceRecord::kSize;
    case attribute::kPathRecord: return PathRecord::kSize;
    case attribute::kMcMemberRecord: return McMemberRecord::kSize;
    default: return InformInfoRecord::kSize;
  }
}

bool names(const Request& request, std::uint64_t bits) {
  return (request.components & bits) == bits;
}

// Calls `each` with the ports that a request is about: the one at a LID, or all.
template <class Each>
void for_each_port(const Topology& topology, const Requester& requester, bool by_lid,
                   std::uint16_t lid, Each each) {
  if (by_lid) {
    const std::optional<EndPort> port = topology.find_lid(lid);
    if (port && requester.may_see(*port)) (void)each(*port);
    return;
  }
  for (std::uint32_t i = 0; i < topology.port_count(); ++i) {
    const std::optional<EndPort> port = topology.port(i);
    if (port && requester.may_see(*port) && !each(*port)) return;
  }
}

}  // namespace

Answer Server::query(const Requester& requester, const Request& request) const {
  Answer answer;
  answer.method = static_cast<std::uint8_t>(request.method | mad::method::kResponseBit);
  RecordList records(record_size_of(request.attribute), options_.limits.answer_bytes);
  answer.status = collect(requester, request, records);
  if (answer.status != sa_status::kOk) return answer;
  if (records.overflowed()) {
    answer.status = sa_status::kNoResources;
    return answer;
  }
  const bool is_table = request.method == method::kGetTable;
  if (!is_table && records.count() != 1) {
    answer.status = records.count() == 0 ? sa_status::kNoRecords : sa_status::kTooManyRecords;
    return answer;
  }
  answer.count = records.count();
  answer.stride = is_table ? static_cast<std::uint16_t>(records.stride()) : std::uint16_t{0};
  answer.bytes = records.take();
  return answer;
}

std::uint16_t Server::collect(const Requester& requester, const Request& request,
                              RecordList& records) const {
  const std::uint64_t components = request.components;
  switch (request.attribute) {
    case attribute::kPathRecord: return paths(requester, request, records);
    case attribute::kNodeRecord: nodes(requester, request, records); break;
    case attribute::kPortInfoRecord: port_infos(requester, request, records); break;
    case attribute::kServiceRecord:
      services_.find(requester, components, decode_some<ServiceRecord>(request.record), records);
      break;
    case attribute::kMcMemberRecord:
      groups_.find(requester, components, decode_some<McMemberRecord>(request.record), records);
      break;
    default:
      subscriptions_.find(requester, components, decode_some<InformInfoRecord>(request.record),
                          records);
      break;
  }
  return sa_status::kOk;
}

std::uint16_t Server::paths(const Requester& requester, const Request& request,
                            RecordList& records) const {
  PathQuery query{request.components,
                  decode_some<PathRecord>(request.record),
                  request.method == method::kGetTable,
                  {},
                  false};
  if (is_for_group(query)) {
    const McMemberRecord* group = groups_.find(query.wanted.dgid);
    if (group == nullptr) return sa_status::kNoRecords;
    const GroupRoute route{
        group->mlid, group->pkey, {group->sl, group->mtu, group->rate, group->life, false}};
    return find_group_path(topology_, requester, query, route, records);
  }
  const bool has_destination =
      (request.components & (path_component::kDgid | path_component::kDlid)) != 0;
  std::vector<verbs::Gid> gids;
  if (!has_destination && names(request, path_component::kServiceId)) {
    gids = services_.gids_of(query.wanted.service_id);
    query.by_service = true;
    query.service_gids = gids;
  }
  return find_paths(topology_, requester, query, records);
}

void Server::nodes(const Requester& requester, const Request& request, RecordList& records) const {
  const auto wanted = decode_some<NodeRecord>(request.record);
  const auto bytes_wanted = encode(wanted);
  for_each_port(topology_, requester, names(request, node_component::kLid), wanted.lid,
                [&](const EndPort& port) {
                  NodeRecord record = topology_.node_record(port);
                  // Any of a port's LIDs names it.
                  if (names(request, node_component::kLid)) record.lid = wanted.lid;
                  const auto bytes = encode(record);
                  return !matches(attribute::kNodeRecord, request.components, bytes_wanted,
                                  bytes) ||
                         records.add(bytes);
                });
}

void Server::port_infos(const Requester& requester, const Request& request,
                        RecordList& records) const {
  const auto wanted = decode_some<PortInfoRecord>(request.record);
  const auto bytes_wanted = encode(wanted);
  std::uint64_t components = request.components;
  std::uint32_t capabilities = 0;
  if ((request.modifier & kMatchCapabilityBits) != 0 &&
      names(request, port_info_component::kCapabilityMask)) {
    capabilities = wanted.info.capability_mask;
    components &= ~port_info_component::kCapabilityMask;
  }
  for_each_port(topology_, requester, names(request, port_info_component::kLid), wanted.lid,
                [&](const EndPort& port) {
                  PortInfoRecord record = topology_.port_info_record(port);
                  if (names(request, port_info_component::kLid)) record.lid = wanted.lid;
                  if (!requester.is_trusted) record.info.m_key = 0;
                  if ((capabilities & ~record.info.capability_mask) != 0) return true;
                  const auto bytes = encode(record);
                  return !matches(attribute::kPortInfoRecord, components, bytes_wanted, bytes) ||
                         records.add(bytes);
                });
}

}  // namespace ib::sa
