// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/service_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <utility>

namespace ib::conformance {

std::unique_ptr<ServiceClient> ServiceClient::start(const HostSettings& settings,
                                                    std::string& reason) {
  std::unique_ptr<ServiceClient> self(new ServiceClient(settings));
  auto process =
      user::Process::attach(self->host_, {settings.node, settings.program}, *self, reason);
  if (!process) return nullptr;
  self->process_ = *std::move(process);
  auto hca = self->process_->open_hca(self->process_->info().cas[0].node_guid);
  auto channel = user::ServiceChannel::connect(*self->process_);
  if (!hca || !channel) {
    reason = user::last_reason();
    return nullptr;
  }
  self->hca_ = *std::move(hca);
  self->channel_ = *std::move(channel);
  self->sa_ = std::make_unique<user::Sa>(*self->channel_);
  self->cm_ = std::make_unique<user::Cm>(*self->channel_);
  Done sa;
  Done cm;
  const bool are_sent = self->sa_->open(*self->hca_, sa.take()) == Status::Ok &&
                        self->cm_->open(*self->hca_, cm.take()) == Status::Ok;
  if (are_sent && self->end_of(sa) == Status::Ok && self->end_of(cm) == Status::Ok) return self;
  reason = "the services: " + sa.reason + cm.reason + user::last_reason();
  return nullptr;
}

ServiceClient::~ServiceClient() {
  cm_.reset();
  sa_.reset();
  channel_.reset();
  for (const auto& qp : qps_) (void)qp->destroy();
  qps_.clear();
  if (cq_ != nullptr) (void)cq_->destroy();
  cq_.reset();
  if (pd_ != nullptr) (void)pd_->destroy();
}

verbs::Gid ServiceClient::gid() {
  const auto out = hca_->query_gid(1, 0);
  return out ? out->gid : verbs::Gid{};
}

bool ServiceClient::comes(const std::function<bool()>& is_so, std::uint32_t milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (!is_so()) {
    if (!is_up_) return false;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waiting{channel_->descriptor(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) {
      return is_so();
    }
    is_up_ = channel_->process();
  }
  return true;
}

user::QueuePair* ServiceClient::make_qp() {
  if (pd_ == nullptr) {
    auto pd = hca_->alloc_pd();
    control::CreateCqIn in;
    in.cqe = 64;
    auto cq = hca_->create_cq(in);
    if (!pd || !cq) return nullptr;
    pd_ = *std::move(pd);
    cq_ = *std::move(cq);
  }
  user::QpOptions options;
  options.pd = pd_.get();
  options.send_cq = cq_.get();
  options.recv_cq = cq_.get();
  options.caps = {8, 8, 1, 1, 0};
  auto qp = hca_->create_qp(options);
  if (!qp) return nullptr;
  qps_.push_back(*std::move(qp));
  return qps_.back().get();
}

bool ServiceClient::completes() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeLimitMs);
  user::Completion done;
  while (std::chrono::steady_clock::now() < end) {
    cq_->lock();
    const bool taken = cq_->take(done);
    cq_->unlock();
    if (taken) return done.status == WcStatus::Success;
    std::this_thread::yield();
  }
  return false;
}

Status ServiceClient::to_state(user::QueuePair& qp, control::CmHandle connection, QpState state,
                               std::uint32_t psn) {
  Answered<control::CmQueryOut> asked;
  const Status sent = cm_->query({connection, state, psn}, asked.take());
  if (sent != Status::Ok) return sent;
  if (end_of(asked) != Status::Ok) return asked.status;
  control::QpAttr attr = asked.out.attr;
  attr.access = access::kRemoteAny | access::kLocalWrite;
  const auto changed = qp.modify(asked.out.mask, attr);
  return changed ? Status::Ok : changed.error();
}

Result<control::SaPath> ServiceClient::path_to(const verbs::Gid& gid) {
  control::SaPathIn in;
  in.dgid = gid;
  Answered<control::SaPath> path;
  const Status sent = sa_->query_path(in, path.take());
  if (sent != Status::Ok) return sent;
  if (end_of(path) != Status::Ok) return path.status;
  return path.out;
}

control::CmConnectIn connect_in(const control::SaPath& path, std::uint32_t qpn,
                                std::uint64_t service) {
  control::CmConnectIn in;
  in.service_id = service;
  in.path = path.path;
  in.path_mtu = path.mtu;
  in.qpn = qpn;
  in.starting_psn = 0x123456;
  in.responder_resources = 4;
  in.initiator_depth = 4;
  return in;
}

verbs::Gid group(std::uint8_t number) {
  verbs::Gid mgid{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff};
  mgid[15] = number;
  return mgid;
}

int run_service_peer(const HostSettings& settings, int socket) {
  std::string reason;
  const auto self = ServiceClient::start(settings, reason);
  if (self == nullptr) return 1;
  control::SaJoinIn join;
  join.mgid = group(kPeersGroup);
  join.may_create = true;
  Answered<control::SaGroup> joined;
  control::CmListenIn listen;
  listen.service_id = kService;
  Done listening;
  if (self->sa().join(join, joined.take()) != Status::Ok ||
      self->cm().listen(listen, listening.take()) != Status::Ok ||
      self->end_of(joined) != Status::Ok || self->end_of(listening) != Status::Ok) {
    return 1;
  }
  Answered<control::CmRequest> request;
  if (self->cm().get_request(listening.handle, request.take()) != Status::Ok) return 1;
  const std::uint8_t byte = 1;
  if (::send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return 1;
  if (self->end_of(request) != Status::Ok) return 1;
  user::QueuePair* qp = self->make_qp();
  if (qp == nullptr) return 1;
  for (const QpState state : {QpState::Init, QpState::Rtr, QpState::Rts}) {
    if (self->to_state(*qp, request.out.handle, state, 7) != Status::Ok) return 1;
  }
  control::CmAcceptIn accept;
  accept.handle = request.out.handle;
  accept.qpn = qp->qpn();
  accept.starting_psn = 7;
  Answered<control::CmEvent> accepted;
  if (self->cm().accept(accept, accepted.take()) != Status::Ok ||
      self->end_of(accepted) != Status::Ok || ::send(socket, &byte, 1, MSG_NOSIGNAL) != 1) {
    return 1;
  }
  std::uint8_t end = 0;
  while (::recv(socket, &end, 1, 0) > 0) {}
  return 0;
}

}  // namespace ib::conformance
