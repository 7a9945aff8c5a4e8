// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/class_port_info.h"
#include "mad/gmp_answer.h"
#include "mad/mgmt_class.h"
#include "services/gsi/dispatch_internal.h"
#include "services/gsi/messages_internal.h"
#include "verbs/report_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::services {

GsiDispatch::GsiDispatch(const fabric::Fabric& fabric, const GsiParts& to, GsiCounters& counters,
                         OnDrop on_drop)
    : fabric_(fabric), to_(to), counters_(counters), on_drop_(std::move(on_drop)) {
  to_.transfers.set_handler(*this);
}

void GsiDispatch::on_mad(std::uint32_t port, const al::MadAddress& remote, const mad::Mad& mad) {
  ++counters_.received;
  GsiAddress from{port, remote};
  from.remote.qkey = verbs::kGsiQkey;  // [13.5.1.1]
  if (first_ != nullptr && first_->on_mad(from, mad)) return;
  const mad::MadHeader header = header_of(mad);
  if (!mad::is_general_class(header.mgmt_class)) {
    return drop(counters_.malformed, "which queue pair 1 does not take", from, header);
  }
  if (mad::is_rmpp(mad)) return on_packet(from, header, mad);
  const GsiMessage message{from, header, mad};
  mad::is_response(header.method) ? on_response(message) : on_request(message);
}

void GsiDispatch::on_packet(const GsiAddress& from, const mad::MadHeader& header,
                            const mad::Mad& mad) {
  const bool may_begin = mad::is_response(header.method)
                             ? to_.requests.is_awaited(from, header)
                             : to_.agents.match(from.port, mad).agent != 0;
  to_.transfers.on_packet(from, header, mad, may_begin);
}

// Counted, and told now and then: any peer can cause as many as it likes.
void GsiDispatch::drop(std::uint64_t& counter, const char* why, const GsiAddress& from,
                       const mad::MadHeader& header) {
  constexpr std::uint64_t kMost = 0xffff'ffff;
  const std::uint32_t times =
      verbs::report_count(static_cast<std::uint32_t>(std::min(++counter, kMost)));
  const fabric::Port* port = fabric_.graph().port(from.port);
  if (times == 0 || !on_drop_ || port == nullptr) return;
  const fabric::Hca& hca = *fabric_.hca_of(*port);
  on_drop_(fmt::format("port {} of {} of {} dropped a MAD {}: class {:#04x}, method {:#04x}, "
                       "attribute {:#06x}, from {}",
                       port->number, hca.name, fabric_.node_of(hca).name, why, header.mgmt_class,
                       header.method, std::uint16_t{header.attribute}, text_of(from.remote)),
           times);
}

void GsiDispatch::on_response(const GsiMessage& response) {
  if (!to_.requests.is_awaited(response.from, response.header)) {
    return drop(counters_.late_responses, "for which nobody waits any more", response.from,
                response.header);
  }
  to_.requests.on_answer(response.header.transaction_id, response);
}

void GsiDispatch::on_request(const GsiMessage& request) {
  const auto& [from, header, bytes] = request;
  const mad::AgentTable::Match match = to_.agents.match(from.port, bytes);
  if (match.agent == 0) {
    if (!mad::wants_refusal(header.method)) {
      return drop(counters_.to_nobody, "which no service takes", from, header);
    }
    return refuse(from, bytes, match.refusal);
  }
  const GsiAgents::Ref agent = to_.agents.find(match.agent);
  const bool is_info =
      header.method == mad::method::kGet && header.attribute == mad::kClassPortInfo;
  if (agent->class_port_info && is_info) {
    mad::ClassPortInfo info = *agent->class_port_info;
    info.base_version = mad::kBaseVersion;
    info.class_version = agent->class_version;
    return to_.sender.transmit(from, mad::gmp_answer_with(bytes, info));
  }
  if (!agent->methods.has(header.method)) {  // Get is ours alone
    return refuse(from, bytes, mad::mad_status::kAttributeNotSupported);
  }
  agent->on_message(request);
}

void GsiDispatch::refuse(const GsiAddress& to, std::span<const std::byte> request,
                         std::uint16_t status) {
  ++counters_.refused;
  to_.sender.transmit(to, mad::gmp_answer(request, status));
}

void GsiDispatch::on_request_sent(mad::TransactionId request) {
  to_.requests.resume(request);
}
void GsiDispatch::on_answer_begins(mad::TransactionId request) {
  to_.requests.suspend(request);
}
void GsiDispatch::on_request_failed(mad::TransactionId request, Status status,
                                    const std::string& reason) {
  to_.requests.give_up(request, status, reason);
}
void GsiDispatch::on_answer(mad::TransactionId request, const GsiMessage& answer) {
  to_.requests.finish(request, Status::Ok, "", &answer);
}

}  // namespace ib::services
