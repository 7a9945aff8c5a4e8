// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaWorld: a CmWorld with the subnet administrator, its client, and kernel clients of that
// (al/sa.h).
#pragma once

#include "administration.h"
#include "al/sa.h"
#include "cm_world.h"
#include "services/sa/sa_device.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

namespace ib::services::test {

class SaWorld : public CmWorld {
 public:
  explicit SaWorld(verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand)
      : CmWorld(link_layer) {
    administrator.emplace(*gsi, bench.fabric, bench.executor, SaService::Options{});
    client = make_sa_client(*this, *administrator);
    sa_device.emplace(*client, *gsi, bench.fabric, bench.executor);
    system.sa = &sa_device->device();
  }
  ~SaWorld() {
    run();  // no node is just being opened
    sa_device.reset();
    client.reset();
    administrator.reset();
  }
  verbs::Gid gid(std::size_t i) { return port(i).gid(); }
  static verbs::Gid mgid(std::uint8_t last = 1) {
    verbs::Gid result{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff};
    result[15] = last;
    return result;
  }
  // The number of records that the subnet administrator holds for all ports.
  std::size_t held() const {
    const sa::Server& server = administrator->server();
    return server.groups().membership_count() + server.services().count() +
           server.subscriptions().count();
  }

  std::optional<SaService> administrator;
  std::unique_ptr<SaClient> client;
  std::optional<SaDevice> sa_device;
};

// A kernel client on node `node` that has opened its HCA and the device there.
class SaClientOf {
 public:
  SaClientOf(SaWorld& w, std::size_t node) : world(w), al(w.system, driver), ca(al), sa(ca) {
    EXPECT_EQ(run([&](io::IrpRef irp) { al.open(w.node(node).name, "test", std::move(irp)); }),
              Status::Ok);
    const std::string device_name = fmt::format("\\Device\\ibal\\{:016x}", w.hca(node).node_guid);
    EXPECT_EQ(run([&](io::IrpRef irp) { ca.open(device_name, std::move(irp)); }), Status::Ok);
    EXPECT_EQ(run([&](io::IrpRef irp) { sa.open(std::move(irp)); }), Status::Ok);
  }
  ~SaClientOf() { close(); }
  void close() {
    EXPECT_EQ(run([&](io::IrpRef irp) { sa.close(std::move(irp)); }), Status::Ok);
    EXPECT_EQ(run([&](io::IrpRef irp) { ca.close(std::move(irp)); }), Status::Ok);
    EXPECT_EQ(run([&](io::IrpRef irp) { al.close(std::move(irp)); }), Status::Ok);
  }

  // Sends one request and waits for its end.
  template <class Send>
  Status run(const Send& send) {
    Outcome outcome;
    send(outcome.start());
    was_at_once = outcome.is_done();
    EXPECT_TRUE(world.comes([&] { return outcome.is_done(); }, std::chrono::seconds(20)))
        << "a request is lost";
    last_reason = outcome.irp.reason;
    last_handle = static_cast<al::SaHandle>(outcome.irp.information);
    return outcome.irp.status;
  }
  Status query(const al::SaPathIn& in) {
    return run([&](io::IrpRef irp) { sa.query_path(in, path, std::move(irp)); });
  }
  Status register_service(const al::SaServiceIn& in) {
    return run([&](io::IrpRef irp) { sa.register_service(in, std::move(irp)); });
  }
  Status subscribe(std::uint16_t trap = 0xffff) {
    const al::SaSubscribeIn in{1, trap};
    return run([&](io::IrpRef irp) { sa.subscribe(in, std::move(irp)); });
  }
  Status join(const verbs::Gid& mgid, std::uint32_t port_number = 1) {
    al::SaJoinIn in;
    in.port = port_number;
    in.mgid = mgid;
    in.may_create = true;
    in.qkey = 0x1234567;
    return run([&](io::IrpRef irp) { sa.join(in, group, std::move(irp)); });
  }
  Status destroy(al::SaHandle handle) {
    const al::SaHandleIn in{handle};
    return run([&](io::IrpRef irp) { sa.destroy(in, std::move(irp)); });
  }

  SaWorld& world;
  io::DriverObject driver{"test"};
  al::Al al;
  al::Ca ca;
  al::Sa sa;
  al::SaPath path;
  al::SaGroup group;
  bool was_at_once = false;
  std::string last_reason;
  al::SaHandle last_handle = 0;
};

}  // namespace ib::services::test
