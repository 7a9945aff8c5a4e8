// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PortInterface: what its engine calls, and the answers of the services to it.
#include "ipoib/port_interface.h"
#include "user/services/service_channel.h"
#include "verbs/gid.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <array>
#include <cstring>

namespace ib::ipoib::driver {

namespace {

std::string text_of(const Gid& gid) {
  return verbs::address_text(gid.bytes);
}

}  // namespace

bool PortInterface::deliver(const VirtioHeader& header, std::span<const std::byte> frame) {
  std::array<std::byte, os::net::kVnetHeaderBytes> head{};
  std::memcpy(head.data(), &header, sizeof header);
  // writev() does not write there.
  const std::array<iovec, 2> parts{
      iovec{head.data(), head.size()},
      iovec{const_cast<std::byte*>(frame.data()), frame.size()}};  // NOLINT
  return ::writev(tap(), parts.data(), parts.size()) ==
         static_cast<ssize_t>(head.size() + frame.size());
}

void PortInterface::set_link(const LinkState& link) {
  link_ = link;
  show_link();
}

void PortInterface::show_link() {
  if (link_.mtu != 0 && link_.mtu != mtu_) {
    mtu_ = link_.mtu;
    if (kernel_->set_mtu({mtu_}) != Status::Ok) log(fmt::format("cannot set the MTU to {}", mtu_));
  }
  const bool carrier = link_.carrier && !port_.is_asleep;
  if (carrier == kernel_->has_carrier()) return;
  (void)kernel_->set_carrier(carrier);
  announce_ = carrier;
  log(carrier ? "carrier on" : "carrier off");
}

bool PortInterface::send_datagram(const AddressVector& to, Qpn qpn, Qkey qkey,
                                  const Outgoing& message) {
  if (capture_ != nullptr) capture_sent(to, qpn, qkey, message);
  return datagrams_->send(*transmitter_, to, qpn, qkey, message);
}

bool PortInterface::send_on_connection(ConnectionId connection, const Outgoing& message) {
  if (connections_ == nullptr) return false;
  if (capture_ != nullptr) capture_connection(connection, message);
  return connections_->send(connection, message);
}

void PortInterface::query_path(RequestId id, const Gid& destination) {
  subnet_->query_path(id, destination);
}

void PortInterface::join(RequestId id, const JoinRequest& request) {
  subnet_->join(id, request);
}

void PortInterface::attach(const Gid& mgid, Lid mlid) {
  if (datagrams_->attach(mgid, mlid) == Status::Ok) return;
  log(fmt::format("cannot attach to {}: {}", text_of(mgid), user::last_reason()));
}

void PortInterface::detach(const Gid& mgid, Lid mlid) {
  (void)datagrams_->detach(mgid, mlid);
}

void PortInterface::connect(ConnectionId id, const ConnectRequest& request) {
  if (connections_ != nullptr) connections_->connect(id, request);
}

void PortInterface::disconnect(ConnectionId id) {
  if (connections_ != nullptr) connections_->disconnect(id);
}

void PortInterface::report(const Report& report) {
  // Most groups that the kernel sends to have no member anywhere: neighbours that have no
  // interest, no trouble.
  const bool is_group = report.gid.is_multicast();
  if (is_group && report.status == Status::NotFound) return;
  const std::string where = report.gid == Gid{} ? "the port" : text_of(report.gid);
  if (report.trouble == Trouble::None) return log(where + ": reachable again");
  std::string line = fmt::format("{}: {}", where, trouble_text(report.trouble));
  if (report.status != Status::Ok) line += fmt::format(" ({})", status_text(report.status));
  log(line);
  datagrams_->tell(report);
}

void PortInterface::on_subnet_open(const user::ServiceEnd& end) {
  if (end.status == Status::Ok) return give_port();
  log(fmt::format("no subnet administrator: {}", end.reason));
  reopen_later();
}

void PortInterface::on_path_answer(RequestId id, const Result<PathRecord>& answer) {
  engine_->on_path_answer(id, answer, now_);
}

void PortInterface::on_join_answer(RequestId id, const Result<GroupParameters>& answer) {
  // All groups of the interface have that of the broadcast group [RFC 4391 5].
  if (answer && datagrams_->set_qkey((*answer).qkey) != Status::Ok) {
    log("cannot set the Q_Key: " + user::last_reason());
  }
  engine_->on_join_answer(id, answer, now_);
}

void PortInterface::on_memberships_lost() {
  if (port_.state.active) engine_->on_port_event(PortEvent::ClientReregister, now_);
}

void PortInterface::on_path_changed(const Gid& destination) {
  engine_->on_path_changed(destination, now_);
}

void PortInterface::on_connections_open(const user::ServiceEnd& end) {
  if (end.status != Status::Ok) log(fmt::format("no connections: {}", end.reason));
}

void PortInterface::on_connected(ConnectionId id, std::span<const std::byte> private_data) {
  engine_->on_connected(id, private_data, now_);
}

void PortInterface::on_connection_lost(ConnectionId id, Status reason) {
  engine_->on_connection_lost(id, reason, now_);
}

Result<AcceptedConnection> PortInterface::on_connect_request(const IncomingConnection& request) {
  return engine_->on_connect_request(request, now_);
}

// -- What tshark is to see.

void PortInterface::capture_sent(const AddressVector& to, Qpn qpn, Qkey qkey,
                                 const Outgoing& message) {
  Capture::Route route = own_route();
  route.dlid = static_cast<std::uint16_t>(to.dlid);
  route.service_level = to.service_level;
  route.dest_qpn = static_cast<std::uint32_t>(qpn);
  route.datagram = {static_cast<std::uint32_t>(qkey),
                    static_cast<std::uint32_t>(datagrams_->qpn())};
  if (to.has_grh) route.gids = {port_.state.gid, to.dgid};
  capture_->add(route, message);
}

void PortInterface::capture_datagram(const DatagramEnd::Received& received,
                                     const user::Completion& completion) {
  Capture::Route route = own_route();
  route.dlid = route.slid;
  route.slid = static_cast<std::uint16_t>(received.source.slid);
  route.service_level = completion.sl;
  const bool is_group = received.source.has_grh && received.source.dgid.is_multicast();
  route.dest_qpn = static_cast<std::uint32_t>(is_group ? kMulticastQpn : datagrams_->qpn());
  route.datagram = {static_cast<std::uint32_t>(datagrams_->qkey()),
                    static_cast<std::uint32_t>(received.source.qpn)};
  if (received.source.has_grh) route.gids = {received.source.sgid, received.source.dgid};
  capture_->add(route, received.message.bytes);
}

void PortInterface::capture_connection(ConnectionId id, const Outgoing& message) {
  Capture::Route route = own_route();
  if (connections_ != nullptr) route.dest_qpn = connections_->peer_qpn(id);
  capture_->add(route, message);
}

Capture::Route PortInterface::own_route() const {
  Capture::Route route;
  route.slid = static_cast<std::uint16_t>(port_.state.lid);
  route.pkey = static_cast<std::uint16_t>(station_.pkey);
  return route;
}

}  // namespace ib::ipoib::driver
