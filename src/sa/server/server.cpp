// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which request goes where; changes of the topology.
#include "sa/server/server.h"

#include "base/buffers.h"
#include "mad/class_port_info.h"
#include "sa/records/header.h"

namespace ib::sa {
namespace {

using mad::mad_status::kAttributeNotSupported;
using mad::mad_status::kMethodNotSupported;

// Attributes that can be queried, and what else can be done with them.
bool has_records(std::uint16_t attribute) {
  switch (attribute) {
    case attribute::kNodeRecord:
    case attribute::kPortInfoRecord:
    case attribute::kSlToVlRecord:
    case attribute::kSwitchInfoRecord:
    case attribute::kLinearForwardingRecord:
    case attribute::kMulticastForwardingRecord:
    case attribute::kSmInfoRecord:
    case attribute::kLinkRecord:
    case attribute::kGuidInfoRecord:
    case attribute::kServiceRecord:
    case attribute::kPkeyTableRecord:
    case attribute::kPathRecord:
    case attribute::kVlArbitrationRecord:
    case attribute::kMcMemberRecord:
    case attribute::kInformInfoRecord: return true;
    default: return false;
  }
}
bool is_stored(std::uint16_t attribute) {
  return attribute == attribute::kServiceRecord || attribute == attribute::kMcMemberRecord;
}

// A Set is answered as a Get is, a GetTraceTable as a GetTable is [15.4, table 198].
std::uint8_t response_to(std::uint8_t method) {
  switch (method) {
    case method::kSet: return method::kGetResp;
    case method::kGetTraceTable: return method::kGetTableResp;
    default: return static_cast<std::uint8_t>(method | mad::method::kResponseBit);
  }
}

// Requests that are answered, if only with an error. Reports, traps and responses are not.
bool is_request(std::uint8_t method) {
  switch (method) {
    case method::kGet:
    case method::kSet:
    case method::kGetTable:
    case method::kGetTraceTable:
    case method::kGetMulti:
    case method::kDelete: return true;
    default: return false;
  }
}

Answer refuse(const Request& request, std::uint16_t status) {
  return {response_to(request.method), status, 0, 0, {}};
}

template <std::size_t N>
Answer one_record(const Request& request, const std::array<std::byte, N>& record) {
  Answer answer{response_to(request.method), sa_status::kOk, 0, 1, {}};
  answer.bytes.assign(record.begin(), record.end());
  return answer;
}

}  // namespace

Server::Server(const Topology& topology, const ServerOptions& options)
    : topology_(topology),
      options_(options),
      groups_(topology, options.limits.groups),
      services_(topology, options.limits.services),
      subscriptions_(options.limits.subscriptions) {}

std::optional<Requester> Server::requester_of(const Request& request) const {
  std::optional<EndPort> port;
  if (request.gid) port = topology_.find_gid(*request.gid);
  if (!port) port = topology_.find_lid(request.lid);
  if (!port) return std::nullopt;
  const bool is_trusted = options_.sm_key != 0 && request.sm_key == options_.sm_key;
  return Requester{*port, request.qpn, is_trusted};
}

std::optional<Answer> Server::handle(const Request& request, Instant now) {
  on_time(now);
  if (!is_request(request.method)) return std::nullopt;
  if (request.sm_key != 0 && request.sm_key != options_.sm_key) return std::nullopt;
  const std::optional<Requester> requester = requester_of(request);
  if (!requester) return refuse(request, sa_status::kRequestDenied);
  Answer answer = dispatch(*requester, request, now);
  publish_groups();
  return answer;
}

Answer Server::dispatch(const Requester& requester, const Request& request, Instant now) {
  const std::uint8_t method = request.method;
  const std::uint16_t attribute = request.attribute;
  if (method == method::kGetTraceTable) return refuse(request, kMethodNotSupported);
  if (method == method::kGetMulti && attribute == attribute::kMultiPathRecord) {
    return query(requester, request);
  }
  if (method == method::kGet && attribute == attribute::kClassPortInfo) {
    return class_port_info(request);
  }
  if (method == method::kSet && attribute == attribute::kInformInfo) {
    return inform_info(requester, request);
  }
  if ((method == method::kGet || method == method::kGetTable) && has_records(attribute)) {
    return query(requester, request);
  }
  if ((method == method::kSet || method == method::kDelete) && is_stored(attribute)) {
    return attribute == attribute::kServiceRecord ? service(requester, request, now)
                                                  : mc_member(requester, request);
  }
  return refuse(request, kAttributeNotSupported);
}

Answer Server::class_port_info(const Request& request) const {
  // [15.2.5.1]. Not all optional records are there (bit 8), nor is a path traced.
  constexpr std::uint16_t kUdMulticast = 1u << 9;              // MCMemberRecord
  constexpr std::uint16_t kMultiPath = 1u << 10;               // MultiPathRecord
  constexpr std::uint16_t kCapabilityMaskMatching = 1u << 13;  // of PortInfoRecord
  constexpr std::uint32_t kMulticastTop = 1u << 3;             // of SwitchInfo
  constexpr std::uint32_t kFullPortInfo = 1u << 6;
  constexpr std::uint32_t kExtendedSpeeds = 1u << 7;
  constexpr std::uint32_t kCapabilityMask2Matching = 1u << 10;
  constexpr std::uint32_t kSendOnlyFullMember = 1u << 12;
  constexpr unsigned kResponseTimeBits = 5;
  mad::ClassPortInfo info;
  info.class_version = kClassVersion;
  info.capability_mask = kUdMulticast | kMultiPath | kCapabilityMaskMatching;
  constexpr std::uint32_t kMask2 = kMulticastTop | kFullPortInfo | kExtendedSpeeds |
                                   kCapabilityMask2Matching | kSendOnlyFullMember;
  info.capability_mask2_response_time = kMask2 << kResponseTimeBits | options_.response_time;
  Answer answer{response_to(request.method), sa_status::kOk, 0, 1, {}};
  const auto bytes = bytes_of(info);
  answer.bytes.assign(bytes.begin(), bytes.end());
  return answer;
}

Answer Server::inform_info(const Requester& requester, const Request& request) {
  auto info = decode_some<InformInfo>(request.record);
  const std::uint16_t status = subscriptions_.set(requester, info);
  return status == sa_status::kOk ? one_record(request, encode(info)) : refuse(request, status);
}

Answer Server::mc_member(const Requester& requester, const Request& request) {
  auto record = decode_some<McMemberRecord>(request.record);
  const std::uint16_t status = request.method == method::kSet
                                   ? groups_.join(requester, request.components, record)
                                   : groups_.leave(requester, request.components, record);
  return status == sa_status::kOk ? one_record(request, encode(record)) : refuse(request, status);
}

Answer Server::service(const Requester& requester, const Request& request, Instant now) {
  auto record = decode_some<ServiceRecord>(request.record);
  const std::uint16_t status = request.method == method::kSet
                                   ? services_.set(requester, request.components, record, now)
                                   : services_.remove(requester, request.components, record);
  return status == sa_status::kOk ? one_record(request, encode(record)) : refuse(request, status);
}

void Server::publish(std::uint16_t trap, const verbs::Gid& gid,
                     std::span<const std::uint16_t> pkeys) {
  const std::optional<EndPort> manager = topology_.manager_port();
  if (!manager) return;
  subscriptions_.publish(gid_notice(trap, gid, manager->lid, manager->gids[0]), pkeys, topology_);
}

void Server::publish_groups() {
  for (const Groups::Change& change : groups_.take_changes()) {
    publish(change.is_created ? trap::kGroupCreated : trap::kGroupDeleted, change.mgid,
            std::span(&change.pkey, 1));
  }
}

void Server::on_port_up(const EndPort& port) {
  for (const verbs::Gid& gid : port.gids) publish(trap::kGidInService, gid, port.pkeys);
}

void Server::on_port_down(std::span<const verbs::Gid> gids, std::span<const std::uint16_t> pkeys) {
  for (const verbs::Gid& gid : gids) {
    subscriptions_.drop(gid);
    services_.drop(gid);
    groups_.drop(gid);
  }
  for (const verbs::Gid& gid : gids) publish(trap::kGidOutOfService, gid, pkeys);
  publish_groups();
}

void Server::on_notice(const Notice& notice) {
  subscriptions_.publish(notice, {}, topology_);
}

}  // namespace ib::sa
