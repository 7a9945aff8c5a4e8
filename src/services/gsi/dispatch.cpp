// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MADs that come: responses to the requests that wait for them, requests to their agents; and the
// answers that need no agent [IBA1 13.4.7, 13.4.8.1, 13.5.2].
#include "mad/mgmt_class.h"
#include "services/gsi/gsi_state_internal.h"
#include "verbs/report_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::services {
namespace {

// The request with another method and status, as one packet.
mad::Mad answer_to(std::span<const std::byte> request, std::uint16_t status) {
  mad::Mad answer{};
  std::copy_n(request.begin(), std::min(request.size(), answer.size()), answer.begin());
  mad::MadHeader header;
  std::memcpy(&header, answer.data(), sizeof header);
  header.method = mad::method::kGetResp;
  header.status = status;
  std::memcpy(answer.data(), &header, sizeof header);
  if (mad::has_rmpp(header.mgmt_class)) mad::set_rmpp_header(answer, {});
  return answer;
}

}  // namespace

void Gsi::State::on_mad(std::uint32_t port, const al::MadAddress& remote, const mad::Mad& mad) {
  if (closed_) return;
  ++counters.received;
  GsiAddress from{port, remote};
  from.remote.qkey = verbs::kGsiQkey;  // [13.5.1.1]
  mad::MadHeader header;
  std::memcpy(&header, mad.data(), sizeof header);
  if (!mad::is_general_class(header.mgmt_class)) {
    return drop(counters.malformed, "which queue pair 1 does not take", from, header);
  }
  if (mad::is_rmpp(mad)) return on_packet(from, header, mad);
  mad::is_response(header.method) ? on_response(from, header, mad) : on_request(from, header, mad);
}

// Counted, and told now and then: any peer can cause as many as it likes.
void Gsi::State::drop(std::uint64_t& counter, const char* why, const GsiAddress& from,
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

void Gsi::State::on_response(const GsiAddress& from, const mad::MadHeader& header,
                             std::span<const std::byte> bytes) {
  const mad::TransactionId id = header.transaction_id;
  if (!transactions_.is_awaited(id, header.mgmt_class, peer_of(from.port, from.remote))) {
    return drop(counters.late_responses, "for which nobody waits any more", from, header);
  }
  if ((header.status & mad::mad_status::kRedirect) != 0 && follow_redirection(id, bytes)) return;
  const GsiMessage answer{from, header, bytes};
  finish(id, Status::Ok, "", &answer);
  arm_timer();
}

// Returns false if there is nowhere to go, or the request has been redirected before: then the
// answer is that of the request.
bool Gsi::State::follow_redirection(mad::TransactionId id, std::span<const std::byte> answer) {
  Request& request = requests_.at(id);
  if (request.is_redirected) return false;
  const auto mgmt_class =
      std::to_integer<std::uint8_t>(answer[offsetof(mad::MadHeader, mgmt_class)]);
  mad::ClassPortInfo info;
  std::memcpy(&info, answer.data() + mad::attribute_offset(mgmt_class), sizeof info);
  const std::uint32_t qpn = info.redirect_qpn & 0xff'ffff;
  const bool by_gid = info.redirect_gid != verbs::Gid{};
  const bool is_unicast = info.redirect_lid != 0 && info.redirect_lid <= fabric::kLastUnicastLid;
  if (qpn == 0 || (!by_gid && !is_unicast)) return false;
  const fabric::Port* port = fabric_.graph().port(request.to.port);
  const std::uint32_t route = info.redirect_tclass_sl_flow;
  al::MadAddress& to = request.to.remote;
  al::MadRoute global = to.route.value_or(al::MadRoute{});
  to = {};
  to.lid = is_unicast && !port->is_ethernet() ? std::uint16_t{info.redirect_lid} : std::uint16_t{0};
  to.sl = static_cast<std::uint8_t>(route >> 20 & 15);
  to.qpn = qpn;
  to.qkey = info.redirect_qkey;
  const auto pkey = std::ranges::find(port->pkeys, std::uint16_t{info.redirect_pkey});
  if (pkey != port->pkeys.end()) {
    to.pkey_index = static_cast<std::uint16_t>(pkey - port->pkeys.begin());
  }
  if (by_gid) {
    global.gid = info.redirect_gid;
    global.traffic_class = static_cast<std::uint8_t>(route >> 24);
    global.flow_label = route & 0xfffff;
    to.route = global;
  }
  request.is_redirected = true;
  transactions_.redirect(id, peer_of(request.to.port, to), system_.executor.now());
  transmit(id, request);
  arm_timer();
  return true;
}

void Gsi::State::on_request(const GsiAddress& from, const mad::MadHeader& header,
                            std::span<const std::byte> bytes) {
  const mad::AgentTable::Match match = table_.match(from.port, bytes);
  if (match.agent == 0) {
    if (!mad::wants_refusal(header.method)) {
      return drop(counters.to_nobody, "which no service takes", from, header);
    }
    return refuse(from, bytes, match.refusal);
  }
  const AgentRef agent = find_agent(match.agent);
  const bool is_info =
      header.method == mad::method::kGet && header.attribute == mad::kClassPortInfo;
  if (agent->class_port_info && is_info) {
    mad::ClassPortInfo info = *agent->class_port_info;
    info.base_version = mad::kBaseVersion;
    info.class_version = agent->class_version;
    return answer_class_port_info(from, info, bytes);
  }
  if (!agent->methods.has(header.method)) {  // Get is ours alone
    return refuse(from, bytes, mad::mad_status::kAttributeNotSupported);
  }
  agent->on_message({from, header, bytes});
}

void Gsi::State::answer_class_port_info(const GsiAddress& to, const mad::ClassPortInfo& info,
                                        std::span<const std::byte> request) {
  mad::Mad answer = answer_to(request, mad::mad_status::kOk);
  const auto mgmt_class =
      std::to_integer<std::uint8_t>(answer[offsetof(mad::MadHeader, mgmt_class)]);
  const std::size_t offset = mad::attribute_offset(mgmt_class);
  std::fill(answer.begin() + static_cast<std::ptrdiff_t>(offset), answer.end(), std::byte{0});
  std::memcpy(answer.data() + offset, &info, sizeof info);
  transmit(to, answer);
}

void Gsi::State::refuse(const GsiAddress& to, std::span<const std::byte> request,
                        std::uint16_t status) {
  ++counters.refused;
  transmit(to, answer_to(request, status));
}

}  // namespace ib::services
