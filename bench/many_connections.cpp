// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many connections between two processes at the same time, by librdmacm.
//   bench_many_connections server ADDRESS PORT               until it is killed
//   bench_many_connections client ADDRESS PORT COUNT OUTSTANDING
// The client prints a line of JSON for each phase and then waits for a line on stdin, so that
// memory can be measured:
//   none       no connection
//   connected  COUNT connections are established: us, the time of all divided by COUNT
//   gone       it has disconnected and destroyed all: us
#include "rdma_end.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ib::bench;

class Client {
 public:
  Client(const sockaddr_in& to, std::size_t count) : to_(to), count_(count) {}

  void connect_all(std::size_t outstanding) {
    while (begun_ < std::min(outstanding, count_)) begin();
    while (established_.size() < count_) step();
  }
  void end_all() {
    for (rdma_cm_id* id : established_) require(rdma_disconnect(id) == 0, "rdma_disconnect");
    for (std::size_t ended = 0; ended < count_;) {
      if (end_.next_event().type == RDMA_CM_EVENT_DISCONNECTED) ++ended;
    }
    for (rdma_cm_id* id : established_) RdmaEnd::destroy(id);
  }

 private:
  void begin() {
    ++begun_;
    rdma_cm_id* id = end_.create_id(nullptr);
    require(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to_), kTimeoutMs) == 0,
            "rdma_resolve_addr");
  }
  void step() {
    const RdmaEnd::Event event = end_.next_event();
    if (end_.goes_on(event)) return;
    if (event.type == RDMA_CM_EVENT_ESTABLISHED) {
      established_.push_back(event.id);
      if (begun_ < count_) begin();
    } else {
      fail(rdma_event_str(event.type));
    }
  }

  RdmaEnd end_;
  sockaddr_in to_;
  std::size_t count_;
  std::size_t begun_ = 0;
  std::vector<rdma_cm_id*> established_;
};

std::string us_of(double start, std::size_t count) {
  return ", \"us\": " + std::to_string((now_us() - start) / static_cast<double>(count));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view role = argc > 1 ? argv[1] : "";
  if (argc == 4 && role == "server") serve_rdma(argv[2], argv[3]);
  if (argc != 6 || role != "client") fail("bad arguments");
  const auto count = static_cast<std::size_t>(std::max(1, std::atoi(argv[4])));
  Client client(address_of(argv[2], argv[3]), count);
  phase("none");
  double start = now_us();
  client.connect_all(static_cast<std::size_t>(std::max(1, std::atoi(argv[5]))));
  phase("connected", us_of(start, count));
  start = now_us();
  client.end_all();
  phase("gone", us_of(start, count));
  return 0;
}
