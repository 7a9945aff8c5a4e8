// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections of kernel clients: one iteration connects two nodes (REQ, REP, RTU), disconnects them
// (DREQ, DREP) and destroys both ends, with its MADs over queue pairs 1. Time-wait is not waited
// for; virtual time costs none.
#include "cm_world.h"

#include <benchmark/benchmark.h>

namespace ib::services::test {
namespace {

void connections(benchmark::State& state) {
  CmWorld w;
  CmClient server(w, 1);
  CmClient client(w, 0);
  const al::CmHandle listener = server.listen(kService);
  std::uint32_t qpn = 0x1000;
  for (auto step : state) {
    static_cast<void>(step);
    GetRequest request;
    request.begin(server, listener);
    Connect connect;
    connect.in = connect_in(w, 0, 1, ++qpn);
    connect.begin(client);
    w.run(Duration{});
    Accept accept;
    accept.in.handle = request.out.handle;
    accept.in.qpn = qpn;
    accept.begin(server);
    w.run(Duration{});
    al::CmMessageIn message;
    message.handle = connect.out.handle;
    Outcome established;
    client.cm.establish(message, established.start());
    w.run(Duration{});
    WaitEvent event;
    event.begin(server, request.out.handle);
    Disconnect disconnect;
    disconnect.begin(client, connect.out.handle);
    w.run(Duration{});
    message.handle = request.out.handle;
    Outcome confirmed;
    server.cm.confirm_disconnect(message, confirmed.start());
    w.run(Duration{});
    if (!accept.is_done() || !disconnect.is_done() || disconnect.status() != Status::Ok) {
      state.SkipWithError("a connection was not made");
      break;
    }
    Outcome gone[2];
    const al::CmHandleIn ends[2]{{connect.out.handle}, {request.out.handle}};
    client.cm.destroy(ends[0], gone[0].start());
    server.cm.destroy(ends[1], gone[1].start());
    w.run(std::chrono::milliseconds(1));  // time-waits of earlier ones end
  }
  state.counters["connections"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(connections)->Name("connections a second, kernel clients");

}  // namespace
}  // namespace ib::services::test
