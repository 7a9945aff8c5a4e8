// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Commands as a hostile program writes them: two nodes with a file each, into which the input is
// written, one command after the other. Each is a byte for the file, one for the length, and that
// many bytes. Whatever they are, the service stays consistent and ends with nothing.
#include "platform/virtual_executor.h"
#include "services/rdma_cm/service/service.h"
#include "services/rdma_cm/test/direct_connector_test.h"
#include "services/rdma_cm/test/direct_routes_test.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace ib::services::rdma_cm {
namespace {

struct World {
  fabric::Fabric fabric = *fabric::Fabric::create({.nodes = {"a", "b"}});
  platform::VirtualExecutor executor;
  DirectConnector connector{executor, fabric};
  DirectRoutes routes;
  std::uint32_t number = 0;
  Service service{fabric, connector, routes, {[this] { return ++number; }, {}}};
  std::array<std::uint32_t, 2> files{service.open({0, 1, "a", {}}), service.open({1, 2, "b", {}})};

  void write(std::uint32_t file, std::span<const std::uint8_t> bytes) {
    Service::Request request;
    request.file = files[file % 2];
    request.from_file = files[(file + 1) % 2];
    request.bytes = bytes;
    request.size = bytes.size();
    request.option = bytes;
    const Service::Answer answer = service.command(request);
    IB_ASSERT(answer.data.size() <= 344);
    executor.advance(std::chrono::milliseconds(1));
  }
  void end() {
    for (const std::uint32_t file : files) service.close(file);
    IB_ASSERT(service.id_count() == 0);
    executor.advance(std::chrono::seconds(10));
  }
};

}  // namespace
}  // namespace ib::services::rdma_cm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ib::services::rdma_cm::World world;
  std::span<const std::uint8_t> input(data, size);
  while (input.size() > 2) {
    const std::uint8_t file = input[0];
    const std::size_t length = std::min<std::size_t>(input[1] * 2u, input.size() - 2);
    world.write(file, input.subspan(2, length));
    input = input.subspan(2 + length);
  }
  world.end();
  return 0;
}
