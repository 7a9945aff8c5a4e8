// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections of kernel clients, `outstanding` of them at a time, with the steps of
// bench/connections.cpp: the path from the subnet administrator (it is cached), the queue pairs of
// both ends and their states, REQ, REP, RTU; then DREQ and DREP, and both ends are destroyed. Both
// clients and softibd's part run on the thread of the benchmark, one after the other. The clock of
// the timers is virtual, so no time is spent on waiting; the times that are measured are real.
//
// One iteration makes and ends `outstanding` connections. The counters p50_us and p99_us are of the
// time from a client's first call for a connection until establish() has ended.
#include "base/assert.h"
#include "sa_world.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ib::services::test {
namespace {

using verbs::QpState;

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A kernel client with what all of its queue pairs share.
class Client : public CmClient {
 public:
  Client(SaWorld& w, std::size_t node) : CmClient(w, node), sa_(ca) {
    require([&](io::IrpRef irp) { sa_.open(std::move(irp)); });
    require([&](io::IrpRef irp) { al::alloc_pd(ca, pd_, std::move(irp)); });
    require([&](io::IrpRef irp) { al::create_cq(ca, 16, cq_, std::move(irp)); });
  }
  ~Client() {
    require([&](io::IrpRef irp) { al::destroy(cq_, std::move(irp)); });
    require([&](io::IrpRef irp) { al::destroy(pd_, std::move(irp)); });
    require([&](io::IrpRef irp) { sa_.close(std::move(irp)); });
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  template <class Send>
  void require(const Send& send) {
    const Status status = run(send);
    IB_ASSERT(status == Status::Ok);
  }
  al::SaPath path_to(const verbs::Gid& gid) {
    const al::SaPathIn in{1, gid};
    al::SaPath path;
    require([&](io::IrpRef irp) { sa_.query_path(in, path, std::move(irp)); });
    return path;
  }
  // The smallest queue pair there is.
  void create(al::Qp& qp) {
    const verbs::control::QpCaps caps{1, 1, 1, 1, 0, 0};
    require([&](io::IrpRef irp) {
      al::create_qp(pd_, verbs::QpType::Rc, caps, cq_, cq_, qp, std::move(irp));
    });
  }
  void modify(al::Qp& qp, std::uint32_t mask, const verbs::control::QpAttr& attr) {
    require([&](io::IrpRef irp) { al::modify_qp(qp, mask, attr, std::move(irp)); });
  }
  // With the attributes that the communication manager gives.
  void go(al::Qp& qp, al::CmHandle connection, QpState state) {
    const al::CmQueryOut to = query(connection, state, kPsn);
    modify(qp, to.mask, to.attr);
  }
  // The end of a connection that is over.
  void destroy_end(al::CmHandle connection) {
    const Status status = destroy(connection);
    IB_ASSERT(status == Status::Ok);
  }
  void destroy_qp(al::Qp& qp) {
    require([&](io::IrpRef irp) { al::destroy(qp, std::move(irp)); });
  }

  static constexpr std::uint32_t kPsn = 0x123456;

 private:
  al::Sa sa_;
  al::Pd pd_;
  al::Cq cq_;
};

struct ActiveEnd {
  double begun_us = 0;
  al::Qp qp;
  Connect connect;
  Disconnect disconnect;
};

struct PassiveEnd {
  GetRequest request;
  al::Qp qp;
  Accept accept;
  WaitEvent event;
};

// Connections that are under way at the same time; each function takes the next step of all.
class Connections {
 public:
  Connections(SaWorld& world, Client& client, Client& server, al::CmHandle listener,
              std::size_t count)
      : world_(world), client_(client), server_(server), active_(count), passive_(count) {
    for (PassiveEnd& end : passive_) end.request.begin(server_, listener);
  }

  void connect() {
    for (ActiveEnd& end : active_) {
      end.begun_us = now_us();
      const al::SaPath path = client_.path_to(world_.gid(1));
      client_.create(end.qp);
      verbs::control::QpAttr init;
      init.state = QpState::Init;
      init.port = path.path.port;
      using namespace verbs::qp_attr;
      client_.modify(end.qp, kState | kPort | kPkeyIndex | kAccessFlags, init);
      end.connect.in = connect_in(world_, 0, 1, end.qp.made.qpn);
      end.connect.in.path = path.path;
      end.connect.in.path_mtu = path.mtu;
      end.connect.begin(client_);
    }
    deliver();
  }
  void accept() {
    for (PassiveEnd& end : passive_) {
      check(end.request);
      server_.create(end.qp);
      for (const QpState state : {QpState::Init, QpState::Rtr, QpState::Rts}) {
        server_.go(end.qp, end.request.out.handle, state);
      }
      end.accept.in.handle = end.request.out.handle;
      end.accept.in.qpn = end.qp.made.qpn;
      end.accept.in.starting_psn = Client::kPsn;
      end.accept.in.responder_resources = end.accept.in.initiator_depth = 1;
      end.accept.begin(server_);
    }
    deliver();
  }
  // Adds the time of each.
  void establish(std::vector<double>& times_us) {
    for (ActiveEnd& end : active_) {
      check(end.connect);
      const al::CmHandle connection = end.connect.out.handle;
      for (const QpState state : {QpState::Rtr, QpState::Rts}) {
        client_.go(end.qp, connection, state);
      }
      const Status status = client_.establish(connection);
      IB_ASSERT(status == Status::Ok);
      times_us.push_back(now_us() - end.begun_us);
    }
    deliver();
  }
  void disconnect() {
    for (PassiveEnd& end : passive_) {
      check(end.accept);
      end.event.begin(server_, end.request.out.handle);
    }
    for (ActiveEnd& end : active_) {
      end.disconnect.in.handle = end.connect.out.handle;
      end.disconnect.begin(client_, end.connect.out.handle);
      client_.destroy_qp(end.qp);
    }
    deliver();
    for (PassiveEnd& end : passive_) {
      check(end.event);
      IB_ASSERT(end.event.out.kind == al::CmEventKind::Disconnecting);
      const Status status = server_.confirm(end.request.out.handle);
      IB_ASSERT(status == Status::Ok);
      server_.destroy_qp(end.qp);
      server_.destroy_end(end.request.out.handle);
    }
    deliver();
    for (ActiveEnd& end : active_) {
      check(end.disconnect);
      client_.destroy_end(end.connect.out.handle);
    }
    // The time-waits of those before end: as many connections are in time-wait, whatever the count.
    world_.run(active_.size() * std::chrono::milliseconds(1));
  }

 private:
  // Does what softibd has to do.
  void deliver() { world_.run(Duration{}); }
  template <class Request>
  static void check(const Request& request) {
    IB_ASSERT(request.is_done() && request.status() == Status::Ok);
  }

  SaWorld& world_;
  Client& client_;
  Client& server_;
  std::vector<ActiveEnd> active_;
  std::vector<PassiveEnd> passive_;
};

void connections(benchmark::State& state) {
  SaWorld world;
  Client server(world, 1);
  Client client(world, 0);
  const al::CmHandle listener = server.listen(kService);
  const auto outstanding = static_cast<std::size_t>(state.range(0));
  std::vector<double> times_us;
  for (auto step : state) {
    static_cast<void>(step);
    Connections under_way(world, client, server, listener, outstanding);
    under_way.connect();
    under_way.accept();
    under_way.establish(times_us);
    under_way.disconnect();
  }
  std::sort(times_us.begin(), times_us.end());
  state.counters["p50_us"] = times_us[times_us.size() / 2];
  state.counters["p99_us"] = times_us[times_us.size() * 99 / 100];
  state.SetItemsProcessed(static_cast<std::int64_t>(times_us.size()));
}
BENCHMARK(connections)->ArgName("outstanding")->Arg(1)->Arg(50);

}  // namespace
}  // namespace ib::services::test
