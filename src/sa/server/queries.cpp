// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Get, GetTable and GetMulti of records: which ones, and how many an answer may have
// [IBA1 15.4.6].
#include "sa/records/multi_path_record.h"
#include "sa/records/node_record.h"
#include "sa/records/table_records.h"
#include "sa/server/multi_paths.h"
#include "sa/server/paths.h"
#include "sa/server/port_records.h"
#include "sa/server/server.h"
#include "sa/server/subnet_records.h"

namespace ib::sa {
namespace {

std::size_t record_size_of(std::uint16_t attribute) {
  switch (attribute) {
    case attribute::kNodeRecord: return NodeRecord::kSize;
    case attribute::kPortInfoRecord: return PortInfoRecord::kSize;
    case attribute::kSlToVlRecord: return SlToVlRecord::kSize;
    case attribute::kSwitchInfoRecord: return SwitchInfoRecord::kSize;
    case attribute::kLinearForwardingRecord: return LinearForwardingRecord::kSize;
    case attribute::kMulticastForwardingRecord: return MulticastForwardingRecord::kSize;
    case attribute::kSmInfoRecord: return SmInfoRecord::kSize;
    case attribute::kLinkRecord: return LinkRecord::kSize;
    case attribute::kGuidInfoRecord: return GuidInfoRecord::kSize;
    case attribute::kServiceRecord: return ServiceRecord::kSize;
    case attribute::kPkeyTableRecord: return PkeyTableRecord::kSize;
    case attribute::kVlArbitrationRecord: return VlArbitrationRecord::kSize;
    case attribute::kMcMemberRecord: return McMemberRecord::kSize;
    case attribute::kInformInfoRecord: return InformInfoRecord::kSize;
    default: return PathRecord::kSize;  // also of the answer to a MultiPathRecord
  }
}

}  // namespace

Answer Server::query(const Requester& requester, const Request& request) const {
  Answer answer;
  answer.method = static_cast<std::uint8_t>(request.method | mad::method::kResponseBit);
  const bool is_table = request.method != method::kGet;
  const std::size_t size = record_size_of(request.attribute);
  // That there are two is all that a Get has to find out.
  RecordList records(size, is_table ? options_.limits.answer_bytes / stride_of(size) : 2);
  answer.status = collect(requester, request, records);
  if (answer.status != sa_status::kOk) return answer;
  if (is_table && records.overflowed()) {
    answer.status = sa_status::kNoResources;
    return answer;
  }
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
  const Search search{topology_, requester, request, records};
  switch (request.attribute) {
    case attribute::kPathRecord: return paths(requester, request, records);
    case attribute::kMultiPathRecord:
      return find_multi_paths(topology_, requester, request, records);
    case attribute::kNodeRecord: find_nodes(search); break;
    case attribute::kPortInfoRecord: find_port_infos(search); break;
    case attribute::kGuidInfoRecord: find_guid_infos(search); break;
    case attribute::kSlToVlRecord: find_sl_to_vl_tables(search); break;
    case attribute::kVlArbitrationRecord: find_vl_arbitrations(search); break;
    case attribute::kPkeyTableRecord:
      // Only a trusted requester is told who is in which partition [15.4.1.2].
      if (!requester.is_trusted) return sa_status::kRequestInvalid;
      find_pkey_tables(search);
      break;
    case attribute::kLinkRecord: find_links(search); break;
    case attribute::kSwitchInfoRecord: find_switch_infos(search); break;
    case attribute::kLinearForwardingRecord: find_linear_tables(search); break;
    case attribute::kMulticastForwardingRecord: find_multicast_tables(search); break;
    case attribute::kSmInfoRecord: find_managers(search); break;
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
  const auto names = [&](std::uint64_t bits) { return (request.components & bits) == bits; };
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
  if (!has_destination && names(path_component::kServiceId)) {
    gids = services_.gids_of(query.wanted.service_id);
    query.by_service = true;
    query.service_gids = gids;
  }
  return find_paths(topology_, requester, query, records);
}

}  // namespace ib::sa
