// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two nodes in virtual time, and programs on them that write commands and get events.
#pragma once

#include "platform/virtual_executor.h"
#include "services/rdma_cm/service/service.h"
#include "services/rdma_cm/test/direct_connector_test.h"
#include "services/rdma_cm/test/direct_routes_test.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace ib::services::rdma_cm {

using ucma::Code;
using ucma::Event;

constexpr std::uint8_t kPacketLifeTime = 11;  // not the default

struct World {
  explicit World(verbs::LinkLayer link_layer)
      : fabric(*fabric::Fabric::create(
            {.nodes = {"a", "b"}, .link_layer = link_layer, .packet_life_time = kPacketLifeTime})) {
  }

  fabric::Fabric fabric;
  platform::VirtualExecutor executor;
  DirectConnector connector{executor, fabric};
  DirectRoutes routes;
  std::mt19937 random{7};
  std::vector<std::string> lines;
  QueuePairOwner owner = QueuePairOwner::Caller;  // of all numbers
  Service service{fabric,
                  connector,
                  routes,
                  {[this] { return static_cast<std::uint32_t>(random()); },
                   [this](std::string line, const File*, std::string_view) {
                     lines.push_back(std::move(line));
                   },
                   [this] { return executor.now(); },
                   [this](const fabric::Hca&, std::uint32_t, std::uint32_t) { return owner; }}};
  verbs::Gid address(std::uint32_t node) const { return fabric.nodes()[node].addresses[0].ip; }
};

// The word that a client shares with softibd.
class OfferWord final : public EventOffer {
 public:
  bool offer(std::uint32_t number) override {
    if (is_out) return false;
    is_out = true;
    word_ = number;
    return true;
  }
  bool is_taken() const override { return word_ == 0; }
  bool withdraw() override {
    EXPECT_TRUE(is_out);
    is_out = false;
    return std::exchange(word_, 0) != 0;
  }
  // The client's.
  bool take(std::uint32_t number) {
    if (word_ != number) return false;
    word_ = 0;
    return true;
  }

  bool is_out = false;

 private:
  std::uint32_t word_ = 0;
};

// An open file, as a program uses it.
struct Program {
  Program(World& w, std::uint32_t node) : Program(w, node, 100 + node) {}
  Program(World& w, std::uint32_t node, std::uint32_t process) : world(w), pid(process) {
    file = w.service.open({node, pid, "prog", [this] {
                             if (!is_late) notice();
                           }});
  }
  void notice() {
    const auto with_notice = world.service.give_notice(file);
    if (!with_notice) return;
    ++notices;
    ahead = *with_notice;
  }
  template <class Body>
  Service::Answer write(Code code, const Body& body, std::span<const std::uint8_t> option = {},
                        std::uint32_t from = 0) {
    const ucma::Header header{static_cast<std::uint32_t>(code), sizeof body, 1024};
    std::array<std::uint8_t, sizeof header + sizeof body> bytes;
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
    return world.service.command(
        {file, pid, bytes, bytes.size(), option, from, takes_ahead, offer});
  }
  template <class Out, class Body>
  Out query(Code code, const Body& body) {
    const Service::Answer answer = write(code, body);
    EXPECT_EQ(answer.error, Error::None);
    Out out{};
    EXPECT_EQ(answer.data.size(), sizeof out);
    std::memcpy(&out, answer.data.data(), std::min(sizeof out, answer.data.size()));
    return out;
  }
  std::uint32_t create(PortSpace space = PortSpace::Tcp, std::uint64_t uid = 1) {
    ucma::CreateId in;
    in.uid = uid;
    in.ps = static_cast<std::uint16_t>(space);
    if (space == PortSpace::Ib) in.qp_type = static_cast<std::uint8_t>(verbs::QpType::Rc);
    return query<ucma::IdOut>(Code::CreateId, in).id;
  }
  Error bind(std::uint32_t id, const verbs::Gid& ip, std::uint16_t port) {
    ucma::BindIp in;
    in.id = id;
    write_address(at(ip, port), in.addr);
    return write(Code::BindIp, in).error;
  }
  Error bind(std::uint32_t id, const EndpointAddress& address) {
    ucma::Bind in;
    in.id = id;
    in.addr_size = static_cast<std::uint16_t>(size_of(address.family));
    write_address(address, in.addr);
    return write(Code::Bind, in).error;
  }
  Error resolve(std::uint32_t id, const EndpointAddress& destination) {
    ucma::ResolveAddr in;
    in.id = id;
    in.dst_size = static_cast<std::uint16_t>(size_of(destination.family));
    write_address(destination, in.dst_addr);
    return write(Code::ResolveAddr, in).error;
  }
  ucma::QueryAddrOut ask(std::uint32_t id, ucma::QueryOption option) {
    return query<ucma::QueryAddrOut>(Code::Query, ucma::Query{0, id, option});
  }
  Error resolve(std::uint32_t id, const verbs::Gid& ip, std::uint16_t port) {
    ucma::ResolveIp in;
    in.id = id;
    write_address(at(ip, port), in.dst_addr);
    return write(Code::ResolveIp, in).error;
  }
  Error listen(std::uint32_t id, std::uint32_t backlog = 0) {
    return write(Code::Listen, ucma::Listen{id, backlog}).error;
  }
  Error connect(std::uint32_t id, std::uint32_t qpn, std::string_view data = "") {
    ucma::Connect in;
    in.id = id;
    in.conn_param = param(qpn, data);
    return write(Code::Connect, in).error;
  }
  Error accept(std::uint32_t id, std::uint32_t qpn, std::uint64_t uid, std::string_view data = "") {
    ucma::Accept in;
    in.id = id;
    in.uid = uid;
    in.conn_param = param(qpn, data);
    return write(Code::Accept, in).error;
  }
  Error make_ready(std::uint32_t id) {
    ucma::Accept in;
    in.id = id;
    return write(Code::Accept, in).error;
  }
  std::uint32_t destroy(std::uint32_t id) {
    ucma::DestroyId in;
    in.id = id;
    return query<ucma::EventsOut>(Code::DestroyId, in).events_reported;
  }
  std::optional<ucma::EventOut> event() {
    world.executor.advance(std::chrono::milliseconds(1));
    const Service::Answer answer = write(Code::GetEvent, ucma::GetEvent{});
    if (answer.error == Error::Again) return std::nullopt;
    EXPECT_EQ(answer.error, Error::None);
    is_drained = answer.is_drained;
    ucma::EventOut out;
    std::memcpy(&out, answer.data.data(), sizeof out);
    return out;
  }
  ucma::EventOut expect(Event kind) {
    const auto one = event();
    EXPECT_TRUE(one);
    if (!one) return {};
    EXPECT_EQ(one->event, kind);
    return *one;
  }
  ucma::QpAttrOut attributes(std::uint32_t id, verbs::QpState state) {
    ucma::InitQpAttr in;
    in.id = id;
    in.qp_state = static_cast<std::uint32_t>(state);
    return query<ucma::QpAttrOut>(Code::InitQpAttr, in);
  }
  static EndpointAddress at(const verbs::Gid& ip, std::uint16_t port) {
    EndpointAddress address = any_address(verbs::is_ipv4(ip) ? Family::Ipv4 : Family::Ipv6, port);
    address.ip = ip;
    return address;
  }
  static ucma::ConnParam param(std::uint32_t qpn, std::string_view data) {
    ucma::ConnParam param;
    param.valid = 1;
    param.qp_num = qpn;
    param.responder_resources = 4;
    param.initiator_depth = 3;
    param.retry_count = 7;
    param.rnr_retry_count = 7;
    param.private_data_len = static_cast<std::uint8_t>(data.size());
    std::memcpy(param.private_data.data(), data.data(), data.size());
    return param;
  }

  World& world;
  std::uint32_t pid;
  std::uint32_t file = 0;
  AnswersAhead ahead;  // of the last notice
  int notices = 0;
  bool is_drained = false;
  bool is_late = false;  // notice() is for the test to call
  bool takes_ahead = false;
  EventOffer* offer = nullptr;
};

template <class Param>
Param param_of(const ucma::EventOut& event) {
  Param param;
  std::memcpy(&param, event.param.data(), sizeof param);
  return param;
}
template <class Param>
std::string text_of(const Param& param, std::size_t size) {
  return {reinterpret_cast<const char*>(param.private_data.data()), size};
}

}  // namespace ib::services::rdma_cm
