// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CmWorld: a ServicesWorld with the communication manager, and kernel clients of it.
#pragma once

#include "al/cm.h"
#include "services/cm/cm_device.h"
#include "services_world.h"

#include <fmt/format.h>

#include <memory>
#include <string>

namespace ib::services::test {

class CmWorld : public ServicesWorld {
 public:
  explicit CmWorld(verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand,
                   const cm::Limits& limits = {}, drivers::FabricTreeOptions tree_options = {})
      : ServicesWorld(link_layer, std::move(tree_options)),
        service(
            bench.executor, bench.fabric, *gsi, [this] { return ++seed_ * 2654435761u; }, limits),
        device(service) {
    system.cm = &device.device();
    service.set_on_drop([this](const std::string& line, std::uint32_t times) {
      EXPECT_GT(times, 0u);
      drops.push_back(line);
    });
  }

  // From port 1 of node `from` to that of node `to`.
  al::CmPath path(std::size_t from, std::size_t to) {
    al::CmPath path;
    path.sgid = port(from).gid();
    path.dgid = port(to).gid();
    if (port(from).is_ethernet()) {
      path.hop_limit = 64;
    } else {
      path.slid = port(from).lid;
      path.dlid = port(to).lid;
    }
    path.packet_lifetime = 10;
    return path;
  }
  // Of both nodes' engines; time-wait and what they finish alone included.
  std::size_t connections() {
    return service.manager_of(hca(0)).engine().connection_count() +
           service.manager_of(hca(1)).engine().connection_count();
  }
  std::size_t exchanges() {
    return service.manager_of(hca(0)).engine().sidr_count() +
           service.manager_of(hca(1)).engine().sidr_count();
  }
  bool is_over() { return connections() == 0 && exchanges() == 0; }

  CmService service;
  CmDevice device;

 private:
  std::uint32_t seed_ = 0;
};

// A kernel client on node `node` that has opened its HCA and the communication manager there.
class CmClient {
 public:
  CmClient(CmWorld& w, std::size_t node) : world(w), al(w.system, driver), ca(al), cm(ca) {
    EXPECT_EQ(run([&](io::IrpRef irp) { al.open(w.node(node).name, "test", std::move(irp)); }),
              Status::Ok);
    const std::string path = fmt::format("\\Device\\ibal\\{:016x}", w.hca(node).node_guid);
    EXPECT_EQ(run([&](io::IrpRef irp) { ca.open(path, std::move(irp)); }), Status::Ok);
    EXPECT_EQ(run([&](io::IrpRef irp) { cm.open(std::move(irp)); }), Status::Ok);
  }
  ~CmClient() { close(); }

  void close() {
    EXPECT_EQ(run([&](io::IrpRef irp) { cm.close(std::move(irp)); }), Status::Ok);
    EXPECT_EQ(run([&](io::IrpRef irp) { ca.close(std::move(irp)); }), Status::Ok);
    EXPECT_EQ(run([&](io::IrpRef irp) { al.close(std::move(irp)); }), Status::Ok);
  }

  // Sends one request and waits for its end. `last` has its reason and its information.
  template <class Send>
  Status run(const Send& send) {
    Outcome outcome;
    send(outcome.start());
    EXPECT_TRUE(world.comes([&] { return outcome.is_done(); })) << "a request is lost";
    last_reason = outcome.irp.reason;
    last_information = outcome.irp.information;
    return outcome.irp.status;
  }
  al::CmHandle listen(const al::CmListenIn& in) {
    EXPECT_EQ(run([&](io::IrpRef irp) { cm.listen(in, std::move(irp)); }), Status::Ok)
        << last_reason;
    return static_cast<al::CmHandle>(last_information);
  }
  al::CmHandle listen(std::uint64_t service_id,
                      al::CmServices services = al::CmServices::Connections) {
    al::CmListenIn in;
    in.service_id = service_id;
    in.services = services;
    return listen(in);
  }
  Status destroy(al::CmHandle handle) {
    const al::CmHandleIn in{handle};
    return run([&](io::IrpRef irp) { cm.destroy(in, std::move(irp)); });
  }
  Status establish(al::CmHandle handle) {
    al::CmMessageIn in;
    in.handle = handle;
    return run([&](io::IrpRef irp) { cm.establish(in, std::move(irp)); });
  }
  Status confirm(al::CmHandle handle) {
    al::CmMessageIn in;
    in.handle = handle;
    return run([&](io::IrpRef irp) { cm.confirm_disconnect(in, std::move(irp)); });
  }
  al::CmQueryOut query(al::CmHandle handle, verbs::QpState state, std::uint32_t psn = 0) {
    const al::CmQueryIn in{handle, state, psn};
    al::CmQueryOut out;
    EXPECT_EQ(run([&](io::IrpRef irp) { cm.query(in, out, std::move(irp)); }), Status::Ok);
    return out;
  }

  CmWorld& world;
  io::DriverObject driver{"test"};
  al::Al al;
  al::Ca ca;
  al::Cm cm;
  std::string last_reason;
  std::uint64_t last_information = 0;
};

// A request of a Cm that waits, with its buffers.
template <class In, class Out>
struct Waiting {
  In in;
  Out out;
  Outcome outcome;
  io::IrpRef start() {
    outcome.times = 0;
    return outcome.start();
  }
  bool is_done() const { return outcome.is_done(); }
  Status status() const { return outcome.irp.status; }
  const std::string& reason() const { return outcome.irp.reason; }
  void cancel() { outcome.irp.cancel(); }
};

struct Connect : Waiting<al::CmConnectIn, al::CmReply> {
  void begin(CmClient& c) { c.cm.connect(in, out, start()); }
};
struct Accept : Waiting<al::CmAcceptIn, al::CmEvent> {
  void begin(CmClient& c) { c.cm.accept(in, out, start()); }
};
struct GetRequest : Waiting<al::CmHandleIn, al::CmRequest> {
  void begin(CmClient& c, al::CmHandle handle) {
    in.handle = handle;
    c.cm.get_request(in, out, start());
  }
};
struct WaitEvent : Waiting<al::CmHandleIn, al::CmEvent> {
  void begin(CmClient& c, al::CmHandle handle) {
    in.handle = handle;
    c.cm.wait_event(in, out, start());
  }
};
struct Disconnect : Waiting<al::CmMessageIn, al::CmEvent> {
  void begin(CmClient& c, al::CmHandle handle) {
    in.handle = handle;
    c.cm.disconnect(in, out, start());
  }
};
struct Resolve : Waiting<al::CmResolveIn, al::CmResolved> {
  void begin(CmClient& c) { c.cm.resolve(in, out, start()); }
};
struct LoadPath : Waiting<al::CmLoadPathIn, al::CmPathAnswer> {
  void begin(CmClient& c) { c.cm.load_path(in, out, start()); }
};

constexpr std::uint64_t kService = 0x1000'ce00'0000'0001;

inline al::CmConnectIn connect_in(CmWorld& w, std::size_t from, std::size_t to,
                                  std::uint32_t qpn = 0x100, std::uint64_t service = kService) {
  al::CmConnectIn in;
  in.service_id = service;
  in.path = w.path(from, to);
  in.qpn = qpn;
  in.starting_psn = 0x123456;
  in.responder_resources = 4;
  in.initiator_depth = 4;
  in.remote_response_timeout = 10;  // 4 ms
  in.local_response_timeout = 10;
  in.max_retries = 3;
  return in;
}

// An established connection: its two ends.
struct Pair {
  al::CmHandle active = 0;
  al::CmHandle passive = 0;
};
inline Pair connect(CmClient& active, CmClient& passive, std::size_t from, std::size_t to,
                    std::uint32_t qpn = 0x100, std::uint8_t response_timeout = 10) {
  CmWorld& w = active.world;
  const al::CmHandle listener = passive.listen(kService);
  GetRequest request;
  request.begin(passive, listener);
  Connect req;
  req.in = connect_in(w, from, to, qpn);
  req.in.remote_response_timeout = req.in.local_response_timeout = response_timeout;
  req.begin(active);
  EXPECT_TRUE(w.comes([&] { return request.is_done(); }));
  Accept accept;
  accept.in.handle = request.out.handle;
  accept.in.qpn = qpn + 0x1000;
  accept.in.responder_resources = 4;
  accept.in.initiator_depth = 4;
  accept.begin(passive);
  EXPECT_TRUE(w.comes([&] { return req.is_done(); }));
  EXPECT_EQ(req.status(), Status::Ok) << req.reason();
  EXPECT_FALSE(accept.is_done());
  EXPECT_EQ(active.establish(req.out.handle), Status::Ok);
  EXPECT_TRUE(w.comes([&] { return accept.is_done(); }));
  EXPECT_EQ(accept.status(), Status::Ok) << accept.reason();
  EXPECT_EQ(passive.destroy(listener), Status::Ok);
  return {req.out.handle, request.out.handle};
}

}  // namespace ib::services::test
