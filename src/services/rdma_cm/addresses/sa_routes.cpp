// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/addresses/sa_routes.h"

#include <fmt/format.h>

#include <utility>

namespace ib::services::rdma_cm {
namespace {

using ucma::Error;

Error error_of(Status status) {
  if (status == Status::Ok) return Error::None;
  if (status == Status::Timeout) return Error::TimedOut;
  if (status == Status::DeviceRemoved) return Error::NoDevice;
  if (status == Status::InsufficientResources) return Error::NoMemory;
  return status == Status::InvalidState ? Error::NetDown : Error::HostUnreachable;
}

Path merge(Path path, const sa::PathRecord& record) {
  path.dlid = record.dlid;
  path.slid = record.slid;
  path.sl = record.sl;
  path.mtu = static_cast<verbs::Mtu>(record.mtu);
  path.rate = record.rate;
  path.packet_life_time = record.life;
  path.hop_limit = record.hop_limit;
  path.traffic_class = record.traffic_class;
  path.flow_label = record.flow_label;
  return path;
}

struct Question final : Routes::Share {
  std::unique_ptr<SaClient::Request> request;
  std::unique_ptr<platform::Timer> limit;
  Routes::OnPath on_path;

  // The first answer counts.
  void end(Error error, std::string_view reason, const Path& path) {
    limit.reset();
    const auto withdrawn = std::move(request);
    if (const auto then = std::exchange(on_path, nullptr)) then(error, reason, path);
  }
};
struct Member final : Routes::Share {
  std::unique_ptr<SaClient::Membership> membership;
};

}  // namespace

std::unique_ptr<Routes::Share> SaRoutes::find_path(const Way& way, std::uint8_t traffic_class,
                                                   Duration timeout, OnPath on_path) {
  const auto known = rdma_cm::find_path(way, traffic_class);
  if (!known) {
    on_path(Error::HostUnreachable, "the ports have no partition in common", {});
    return nullptr;
  }
  if (known->is_ethernet) {
    on_path(Error::None, {}, *known);
    return nullptr;
  }
  SaClient::PathQuery query;
  query.sgid = known->sgid;
  query.dgid = known->dgid;
  query.pkey = known->pkey;
  if (const auto cached = sa_.cached_path(query)) {
    on_path(Error::None, {}, merge(*known, *cached));
    return nullptr;
  }
  // A lost request is repeated as long as the program waits.
  if (timeout > query.patience.timeout) {
    query.patience.retries = static_cast<std::uint32_t>(timeout / query.patience.timeout);
  }
  auto question = std::make_unique<Question>();
  Question& asked = *question;
  asked.on_path = std::move(on_path);
  asked.request = sa_.query_path(
      query, [&asked, path = *known](const SaOutcome& outcome, const sa::PathRecord& record) {
        const Error error = error_of(outcome.status);
        asked.end(error, outcome.reason, error == Error::None ? merge(path, record) : path);
      });
  if (timeout == Duration::zero()) return question;
  asked.limit = executor_.at(executor_.now() + timeout, [&asked, timeout] {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
    asked.end(Error::TimedOut,
              fmt::format("the subnet administrator has not answered in the {} ms that the program "
                          "gives it",
                          ms),
              {});
  });
  return question;
}

std::unique_ptr<Routes::Share> SaRoutes::join(const fabric::Port& port, std::uint16_t pkey,
                                              const verbs::Gid& mgid, std::uint32_t qkey,
                                              bool send_only, OnGroup on_group) {
  if (port.is_ethernet()) {
    Group group;
    group.qkey = qkey;
    group.hop_limit = 64;
    on_group(Error::None, {}, group);
    return nullptr;
  }
  SaClient::JoinRequest request;
  request.components = sa::mc_component::kToCreate;
  request.record.mgid = mgid;
  request.record.port_gid = port.gid();
  request.record.qkey = qkey;
  request.record.pkey = pkey;
  request.record.join_state =
      send_only ? sa::join_state::kSendOnlyFullMember : sa::join_state::kFullMember;
  auto member = std::make_unique<Member>();
  member->membership = sa_.join(
      request,
      [then = std::move(on_group)](const SaOutcome& outcome, const sa::McMemberRecord& record) {
        Group group;
        group.mlid = record.mlid;
        group.qkey = record.qkey;
        group.sl = record.sl;
        group.hop_limit = record.hop_limit;
        group.traffic_class = record.traffic_class;
        group.flow_label = record.flow_label;
        then(error_of(outcome.status), outcome.reason, group);
      });
  return member;
}

}  // namespace ib::services::rdma_cm
