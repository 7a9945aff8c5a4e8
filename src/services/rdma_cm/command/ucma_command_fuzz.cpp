// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Commands as a hostile program writes them: two nodes with a file each, into which the input is
// written, one command after the other. Each is a byte for the file and what else happens, one for
// the length, and that many bytes. Whatever they are, the service stays consistent and ends with
// nothing.
#include "platform/virtual_executor.h"
#include "services/rdma_cm/service/service.h"
#include "services/rdma_cm/test/direct_connector_test.h"
#include "services/rdma_cm/test/direct_routes_test.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace ib::services::rdma_cm {
namespace {

// A client that may take what it is offered.
struct Offer final : EventOffer {
  bool offer(std::uint32_t) override { return !std::exchange(is_out, true); }
  bool is_taken() const override { return has_taken; }
  bool withdraw() override {
    IB_ASSERT(std::exchange(is_out, false));
    return !std::exchange(has_taken, false);
  }
  bool is_out = false;
  bool has_taken = false;
};

constexpr std::uint32_t kPid = 1;

struct World {
  fabric::Fabric fabric = *fabric::Fabric::create({.nodes = {"a", "b"}});
  platform::VirtualExecutor executor;
  DirectConnector connector{executor, fabric};
  DirectRoutes routes;
  std::uint32_t number = 0;
  Service service{fabric, connector, routes, {[this] { return ++number; }, {}}};
  std::array<std::uint32_t, 2> files{service.open({0, kPid, "a", [] {}}),
                                     service.open({1, kPid, "b", [] {}})};

  Offer offer;

  // `what`: bit 0 is the file, bit 1: an event may be offered, bit 2: it is taken, bit 3: notice of
  // events is due.
  void write(std::uint32_t what, std::span<const std::uint8_t> bytes) {
    const std::uint32_t file = what & 1;
    Service::Request request;
    if ((what & 2) != 0) request.offer = &offer;
    request.file = files[file];
    request.pid = kPid;
    request.from_file = files[(file + 1) % 2];
    request.bytes = bytes;
    request.size = bytes.size();
    request.option = bytes;
    const Service::Answer answer = service.command(request);
    IB_ASSERT(answer.data.size() <= 344);
    offer.has_taken = offer.is_out && (what & 4) != 0;
    if ((what & 8) != 0) static_cast<void>(service.give_notice(files[file]));
    static_cast<void>(service.list());
    executor.advance(std::chrono::milliseconds(1));
  }
  void end() {
    for (const std::uint32_t file : files) service.close(file);
    IB_ASSERT(service.id_count() == 0 && !offer.is_out);
    executor.advance(std::chrono::seconds(10));
  }
};

}  // namespace
}  // namespace ib::services::rdma_cm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ib::services::rdma_cm::World world;
  std::span<const std::uint8_t> input(data, size);
  while (input.size() > 2) {
    const std::uint8_t what = input[0];
    const std::size_t length = std::min<std::size_t>(input[1] * 2u, input.size() - 2);
    world.write(what, input.subspan(2, length));
    input = input.subspan(2 + length);
  }
  world.end();
  return 0;
}
