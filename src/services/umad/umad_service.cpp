// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Between files and queue pairs: what is sent goes to queue pair 0 or 1 by its class, and is kept
// until its response or its time; what comes goes to an agent by TID or by class.
#include "services/umad/umad_service.h"

#include "mad/gmp_answer.h"
#include "mad/mgmt_class.h"
#include "mad/rmpp_header.h"
#include "services/gsi/messages_internal.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace ib::services {
namespace {

UmadAgentNumber agent_of(const mad::MadHeader& header) {
  return static_cast<UmadAgentNumber>(header.transaction_id >> 32);
}

UmadHeader header_from(const GsiAddress& from) {
  UmadHeader header;
  header.qpn = from.remote.qpn;
  header.lid = from.remote.lid;
  header.sl = from.remote.sl;
  header.path_bits = from.remote.path_bits;
  header.pkey_index = from.remote.pkey_index;
  if (!from.remote.route) return header;
  const al::MadRoute& route = *from.remote.route;
  header.grh_present = 1;
  header.gid_index = route.sgid_index;
  header.hop_limit = route.hop_limit;
  header.traffic_class = route.traffic_class;
  header.gid = route.gid;
  header.flow_label = route.flow_label;
  return header;
}

}  // namespace

UmadService::UmadService(platform::Executor& executor, const fabric::Fabric& fabric, Gsi& gsi)
    : executor_(executor), fabric_(fabric), gsi_(gsi), transfers_(*this), files_(fabric) {
  gsi_.set_first(this);
}

UmadService::~UmadService() {
  IB_ASSERT(files_.all().empty());
  *alive_ = false;
  gsi_.set_first(nullptr);
}

// --- agents ---

Result<UmadAgentNumber> UmadService::add_agent(const UmadAgent& agent) {
  const fabric::Port* port = fabric_.graph().port(agent.port);
  const auto added = agents_.add(agent, port->is_ethernet());
  if (added || !files_.end_those_that_have_gone(agent.port)) return added;
  return agents_.add(agent, port->is_ethernet());
}

void UmadService::remove_agent(UmadAgentNumber number) {
  if (agents_.find(number) == nullptr) return;
  transfers_.cancel_all_of_agent(number);
  for (const UmadSends::Id id : sends_.of_agent(number)) sends_.end(id);
  agents_.remove(number);
  run();
}

GsiAddress UmadService::address_of(const UmadAgent& agent, const UmadHeader& header) {
  GsiAddress to;
  to.port = agent.port;
  to.remote.lid = header.lid;
  to.remote.sl = header.sl;
  to.remote.path_bits = header.path_bits;
  to.remote.qpn = header.qpn;
  to.remote.qkey = header.qkey;
  to.remote.pkey_index = header.pkey_index;
  if (header.grh_present == 0) return to;
  al::MadRoute route;
  route.gid = header.gid;
  route.sgid_index = header.gid_index;
  route.hop_limit = header.hop_limit;
  route.traffic_class = header.traffic_class;
  route.flow_label = header.flow_label & 0xfffff;
  to.remote.route = route;
  return to;
}

bool UmadService::has_source(const GsiAddress& to) const {
  if (!to.remote.route) return true;
  const fabric::Port* port = fabric_.graph().port(to.port);
  return to.remote.route->sgid_index < port->gids.size();
}

// --- sending ---

Status UmadService::send(UmadSend send) {
  const UmadAgent& agent = *agents_.find(send.agent);
  const mad::MadHeader header = header_of(send.message);
  const bool is_packet = mad::has_rmpp(header.mgmt_class) &&
                         send.message.size() >= mad::kRmppDataOffset && mad::is_rmpp(send.message);
  const bool is_cut_here = is_packet && agent.what.uses_rmpp();
  // The program's own packets of one message have one transaction id.
  if (!(is_packet && !is_cut_here) && sends_.has_like(send)) return Status::InvalidParameter;
  if (sends_.size_of(send.agent) >= UmadFile::kMostSends) {
    if (send.has_response_time()) agent.file->receive_timeout(agent, send);
    return Status::Ok;
  }
  if (!is_cut_here && !send.has_response_time()) {
    transmit(send);
    return Status::Ok;
  }
  const UmadSends::Id id = sends_.begin(std::move(send), executor_.now());
  if (is_cut_here) {
    sends_.suspend(id);
    if (transfers_.send(id, sends_.at(id), executor_.now()) != Status::Ok) time_out(id);
  } else {
    transmit(UmadSend(sends_.at(id)));  // the answer may come in the call
  }
  arm_timer();
  return Status::Ok;
}

void UmadService::transmit(const UmadSend& send) {
  transmit(send.to, first_packet(send.message));
}

// By the queue pair of the agents of its class.
void UmadService::transmit(const GsiAddress& to, const mad::Mad& mad) {
  const std::uint8_t mgmt_class = header_of(mad).mgmt_class;
  if (mgmt_class == mad::mgmt_class::kSubnLid || mgmt_class == mad::mgmt_class::kSubnDirected) {
    if (subnet_ != nullptr) subnet_->send(to, mad);
    return;
  }
  // One that the port does not take is lost, as on a cable.
  static_cast<void>(gsi_.transmit(to, mad));
}

void UmadService::on_sent(UmadSends::Id id) {
  if (id == 0) return;
  if (sends_.at(id).has_response_time()) return sends_.resume(id, executor_.now());
  sends_.end(id);
}

void UmadService::on_send_failed(UmadSends::Id id, bool is_late) {
  is_late ? time_out(id) : static_cast<void>(sends_.end(id));
}

void UmadService::on_answer_failed(UmadSends::Id request) {
  sends_.resume(request, executor_.now());
}

void UmadService::time_out(UmadSends::Id id) {
  const std::optional<UmadSend> send = sends_.end(id);
  if (!send) return;
  transfers_.cancel(id);
  if (const UmadAgent* agent = agents_.find(send->agent)) {
    agent->file->receive_timeout(*agent, *send);
  }
}

// --- receiving ---

bool UmadService::on_mad(const GsiAddress& from, const mad::Mad& mad) {
  return take(1, from, mad);
}

bool UmadService::on_smp(const GsiAddress& from, const mad::Mad& mad) {
  GsiAddress source = from;
  source.remote.qpn = 0;  // as of all SMPs
  return take(0, source, mad);
}

bool UmadService::take(std::uint32_t qpn, const GsiAddress& from, const mad::Mad& mad) {
  const mad::MadHeader header = header_of(mad);
  if (header.base_version != mad::kBaseVersion) return false;
  const bool is_response = is_umad_response(mad);
  UmadAgentNumber number = is_response ? agent_of(header) : agents_.match(from.port, qpn, mad);
  const UmadAgent* agent = agents_.find(number);
  if (agent != nullptr && (agent->port != from.port || agent->what.qpn != qpn)) agent = nullptr;
  if (agent == nullptr) {
    const bool is_ours = !is_response && qpn == 1 && agents_.serves(from.port, header.mgmt_class);
    if (is_ours) refuse(from, mad);
    return is_ours;
  }
  if (mad::is_rmpp(mad) && agent->what.uses_rmpp()) {
    take_packet(number, from, mad);
  } else if (is_response) {
    take_response(number, from, mad);
  } else {
    give(number, from, mad);
  }
  return true;
}

void UmadService::take_packet(UmadAgentNumber number, const GsiAddress& from, const mad::Mad& mad) {
  const mad::MadHeader header = header_of(mad);
  const UmadSends::Id request =
      is_umad_response(mad) ? sends_.find(header.transaction_id, header.mgmt_class) : 0;
  // Nothing is sent any more when a part of the answer has come.
  if (transfers_.on_packet(number, request, from, mad, executor_.now())) sends_.suspend(request);
  arm_timer();
}

void UmadService::take_response(UmadAgentNumber number, const GsiAddress& from,
                                const mad::Mad& mad) {
  const mad::MadHeader header = header_of(mad);
  const UmadSends::Id request = sends_.find(header.transaction_id, header.mgmt_class);
  if (request == 0) {
    // Nobody waits for it, unless it is a further packet of the program's own RMPP.
    if (mad::is_rmpp(mad)) give(number, from, mad);
    return;
  }
  give(number, from, mad);
  sends_.end(request);
  transfers_.cancel(request);
  run();
}

void UmadService::on_message(UmadAgentNumber number, UmadSends::Id request, const GsiAddress& from,
                             std::span<const std::byte> message) {
  if (is_umad_response(message)) {
    if (request == 0 || !sends_.end(request)) return;  // it was withdrawn
  }
  give(number, from, message);
}

void UmadService::give(UmadAgentNumber number, const GsiAddress& from,
                       std::span<const std::byte> mad) {
  if (const UmadAgent* agent = agents_.find(number)) {
    agent->file->receive(*agent, header_from(from), mad);
  }
}

// Of a class that a program serves here, with a method that it does not: softibd's own agents have
// given way.
void UmadService::refuse(const GsiAddress& to, const mad::Mad& request) {
  if (!mad::wants_refusal(header_of(request).method)) return;
  transmit(to, mad::gmp_answer(request, mad::mad_status::kMethodNotSupported));
}

// --- ports ---

void UmadService::on_port(const GsiPortEvent& event) {
  if (event.change != GsiPortChange::Closed) return;
  const fabric::Port* port = fabric_.graph().port(event.port);
  const fabric::Hca* hca = port != nullptr ? fabric_.hca_of(*port) : nullptr;
  if (hca == nullptr) return;
  executor_.post([this, alive = alive_, hca] {
    if (*alive && !hca->present) files_.end_those_of(*hca);
  });
}

void UmadService::on_removal_over(const fabric::Hca& hca) {
  if (!hca.present) files_.end_those_of(hca);
}

// --- time ---

void UmadService::run() {
  transfers_.run(executor_.now());
  arm_timer();
}

// A timer that is early is left as it is: most requests are answered long before their time is up.
void UmadService::arm_timer() {
  std::optional<Instant> due = sends_.next_deadline();
  const std::optional<Instant> other = transfers_.next_deadline();
  if (!due || (other && *other < *due)) due = other;
  if (!due || (timer_due_ && *timer_due_ <= *due)) return;
  timer_due_ = due;
  timer_ = executor_.at(*due, [this] { on_timer(); });
}

void UmadService::on_timer() {
  timer_due_.reset();
  const Instant now = executor_.now();
  while (const auto event = sends_.poll(now)) {
    if (event->due == UmadSends::Due::TimedOut) {
      time_out(event->id);
    } else {
      transmit(UmadSend(sends_.at(event->id)));
    }
  }
  run();
}

}  // namespace ib::services
