// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/sa/sa_service.h"

#include "services/sa/sa_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::services {
namespace {

// The broadcast group of IPoIB in the default partition [RFC 4391 4], which programs that join
// groups read the attributes of theirs from. MTU and rate are what every adapter can do.
sa::McMemberRecord broadcast_group() {
  constexpr std::uint16_t kDefaultPkey = 0xffff;
  sa::McMemberRecord group;
  group.mgid = sa::ipoib_broadcast_mgid(kDefaultPkey);
  group.pkey = kDefaultPkey;
  group.qkey = 0x0b1b;
  group.mtu = static_cast<std::uint8_t>(verbs::Mtu::B2048);
  group.rate = 3;  // 10 Gb/s
  group.life = 18;
  return group;
}

}  // namespace

SaService::SaService(Gsi& gsi, fabric::Fabric& fabric, platform::Executor& executor,
                     const Options& options)
    : gsi_(gsi),
      fabric_(fabric),
      executor_(executor),
      options_(options),
      topology_(fabric),
      server_(topology_, options.server) {
  server_.add_permanent_group(broadcast_group());
  for (std::uint32_t i = 0; i < fabric_.graph().port_count(); ++i) look_at(i);
  changes_.clear();
  telling_.reset();
  fabric_.set_on_change([this](const fabric::Hca& hca) {
    for (const fabric::Port& port : hca.ports) look_at(fabric_.graph().index_of(port));
  });
}

SaService::~SaService() {
  fabric_.set_on_change({});
  if (agent_ != 0) gsi_.remove_agent(agent_);
}

void SaService::open(io::IrpRef irp) {
  const fabric::Port* port = topology_.manager();
  if (port == nullptr) {
    return std::move(irp).fail(Status::NotFound,
                               "the fabric has no InfiniBand port for a subnet manager");
  }
  std::string reason;
  if (const Status added = start(reason); added != Status::Ok) {
    return std::move(irp).fail(added, std::move(reason));
  }
  const fabric::Hca* hca = fabric_.hca_of(*port);
  if (hca == nullptr) {
    return std::move(irp).fail(Status::NotFound, "the subnet manager is at a switch");
  }
  gsi_.ensure(fabric_.node_of(*hca).name, std::move(irp));
}

Status SaService::start(std::string& reason) {
  if (agent_ != 0) return Status::Ok;
  GsiAgent agent;
  agent.name = "subnet administrator";
  agent.mgmt_class = sa::kMgmtClass;
  agent.class_version = sa::kClassVersion;
  agent.methods = {sa::method::kGet,           sa::method::kSet,      sa::method::kGetTable,
                   sa::method::kGetTraceTable, sa::method::kGetMulti, sa::method::kDelete};
  agent.on_message = [this](const GsiMessage& message) { on_message(message); };
  const Result<AgentId> added = gsi_.add_agent(std::move(agent), reason);
  if (!added) return added.error();
  agent_ = *added;
  return Status::Ok;
}

void SaService::on_message(const GsiMessage& message) {
  const fabric::Port* port = fabric_.graph().port(message.from.port);
  if (port == nullptr || topology_.manager_of(*port) != port) return;  // not its to answer
  topology_.look_from(port);
  const std::optional<sa::Answer> answer = server_.handle(sa_request_of(message), executor_.now());
  topology_.look_from(nullptr);
  tell_members();
  if (answer) respond(message, *answer);
  send_reports();
  arm();
}

void SaService::tell_members() {
  const std::uint64_t version = server_.groups().version();
  if (std::exchange(listeners_.members_told, version) != version && listeners_.on_members) {
    listeners_.on_members(server_.groups());
  }
}

// Long answers under way have a limit: one more is refused with a short one, so that the requester
// tries again later, as it does without any answer.
void SaService::respond(const GsiMessage& request, const sa::Answer& answer) {
  const Status sent = gsi_.respond(agent_, request.from, sa_response(request.header, answer));
  if (sent != Status::LimitExceeded) return;
  const sa::Answer busy{answer.method, mad::mad_status::kBusy, 0, 0, {}};
  (void)gsi_.respond(agent_, request.from, sa_response(request.header, busy));
}

void SaService::arm() {
  const std::optional<Instant> deadline = server_.deadline();
  timer_.reset();
  if (!deadline) return;
  timer_ = executor_.at(*deadline, [this] {
    server_.on_time(executor_.now());
    arm();
  });
}

void SaService::send_reports() {
  if (agent_ == 0) return;
  while (const std::optional<sa::Report> report = server_.take_report()) {
    const fabric::Port* subscriber = fabric_.graph().find_port(report->lid);
    const fabric::Port* manager =
        subscriber == nullptr ? nullptr : topology_.manager_of(*subscriber);
    if (manager == nullptr) {
      server_.on_report_done(report->subscription, false);
      continue;
    }
    GsiRequest request;
    request.to.port = fabric_.graph().index_of(*manager);
    request.to.remote.lid = report->lid;
    request.to.remote.qpn = report->qpn;
    const mad::Mad mad = sa_report(report->notice);
    request.message = mad;
    request.timeout = options_.report_timeout;
    request.retries = options_.report_retries;
    const std::uint64_t subscription = report->subscription;
    const auto sent = gsi_.request(
        agent_, request, [this, subscription](Status status, std::string_view, const GsiMessage*) {
          server_.on_report_done(subscription, status == Status::Ok);
          send_reports();
        });
    if (!sent) server_.on_report_done(subscription, false);
  }
}

// A change comes in the middle of a driver's work: the server takes note of it at once, but nothing
// is sent or called back before that work is done.
void SaService::tell_later() {
  if (telling_ == nullptr) telling_ = executor_.at(executor_.now(), [this] { tell(); });
}

void SaService::tell() {
  const std::unique_ptr<platform::Timer> done = std::move(telling_);
  for (const Change& change : std::exchange(changes_, {})) {
    if (listeners_.on_port)
      listeners_.on_port(*fabric_.graph().port(change.port), change.gid, change.is_up);
  }
  tell_members();
  send_reports();
}

// Compares a port with what it was, and reports the difference.
void SaService::look_at(std::uint32_t index) {
  if (known_.size() <= index)
    known_.resize(std::max<std::size_t>(index + 1, fabric_.graph().port_count()));
  std::optional<Known>& known = known_[index];
  const fabric::Port& port = *fabric_.graph().port(index);
  const std::optional<sa::EndPort> now = topology_.port(index);
  // Another GID or LID is another port for those that hold paths to it.
  const bool is_other = known && now && (known->gid != now->gids[0] || known->lid != now->lid);
  if (known && (!now || is_other)) {
    const Known gone = *std::exchange(known, std::nullopt);
    server_.on_port_down(std::span(&gone.gid, 1), gone.pkeys);
    changes_.push_back({index, gone.gid, false});
    tell_later();
  }
  if (!now) return;
  const bool is_new = !known;
  if (!is_new && known->capabilities != port.capability_mask) {
    server_.on_notice(sa::capability_notice(port.lid, now->gids[0], port.capability_mask));
    tell_later();
  }
  const bool is_changed = is_new || !std::equal(known->pkeys.begin(), known->pkeys.end(),
                                                now->pkeys.begin(), now->pkeys.end());
  known =
      Known{now->gids[0], now->lid, {now->pkeys.begin(), now->pkeys.end()}, port.capability_mask};
  if (is_new) server_.on_port_up(*now);
  if (!is_changed) return;
  changes_.push_back({index, now->gids[0], true});
  tell_later();
}

}  // namespace ib::services
