// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet administrator over fat trees: paths for a thousand requesters in turn, and the largest
// tables. CPU time of the server; MADs are left out.
#include "fabric/topology/node_names.h"
#include "fabric/topology/presets.h"
#include "sa/records/path_record.h"
#include "sa/server/server.h"
#include "services/sa/fabric_topology.h"

#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

namespace ib::services {
namespace {

fabric::Fabric make_fabric(std::int64_t hcas) {
  std::string reason;
  auto topology =
      fabric::preset_topology("fat-tree:hcas=" + std::to_string(hcas) + ",ports=36", reason);
  IB_ASSERT(topology);
  fabric::Shape shape;
  shape.nodes = fabric::nodes_of(*topology);
  shape.topology = *std::move(topology);
  auto fabric = fabric::Fabric::create(shape);
  IB_ASSERT(fabric);
  return *std::move(fabric);
}

struct World {
  explicit World(std::int64_t hcas) : fabric(make_fabric(hcas)) {
    for (std::uint32_t i = 0; i < topology.port_count(); ++i) {
      const auto end = topology.port(i);
      if (end && !end->is_switch()) ends.push_back(*end);
    }
  }
  sa::Answer ask(const sa::EndPort& from, std::uint8_t method, std::uint16_t attribute,
                 std::uint64_t components, std::span<const std::byte> record) {
    sa::Request request;
    request.lid = from.lid;
    request.method = method;
    request.attribute = attribute;
    request.components = components;
    request.record = record;
    auto answer = server.handle(request, Instant{});
    IB_ASSERT(answer && answer->status == sa::sa_status::kOk);
    return *std::move(answer);
  }

  fabric::Fabric fabric;
  FabricTopology topology{fabric};
  sa::Server server{topology, {}};
  std::vector<sa::EndPort> ends;
};

// Of each of 1,000 ports in turn, to any other port.
void paths_of_a_thousand(benchmark::State& state) {
  constexpr std::size_t kRequesters = 1000;
  World world(state.range(0));
  std::mt19937 random(1);
  std::size_t turn = 0;
  const auto next = [&] {
    const sa::EndPort& from = world.ends[turn++ % kRequesters];
    sa::PathRecord wanted;
    wanted.sgid = from.gids[0];
    wanted.dgid = world.ends[random() % world.ends.size()].gids[0];
    const auto bytes = sa::encode(wanted);
    (void)world.ask(from, sa::method::kGet, sa::attribute::kPathRecord,
                    sa::path_component::kSgid | sa::path_component::kDgid, bytes);
  };
  // The tables of the switches are computed when they are read first.
  for (std::size_t i = 0; i < 4 * kRequesters; ++i) next();
  for (auto _ : state) next();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(paths_of_a_thousand)->Arg(1024)->Arg(8192);

void table(benchmark::State& state, std::uint16_t attribute) {
  World world(state.range(0));
  std::size_t records = 0, bytes = 0;
  // Not counted, as it may compute the tables of all switches.
  (void)world.ask(world.ends[0], sa::method::kGetTable, attribute, 0, {});
  for (auto _ : state) {
    const sa::Answer answer = world.ask(world.ends[0], sa::method::kGetTable, attribute, 0, {});
    records = answer.count;
    bytes = answer.bytes.size();
  }
  state.counters["records"] = static_cast<double>(records);
  state.counters["bytes"] = static_cast<double>(bytes);
}
void all_port_infos(benchmark::State& state) {
  table(state, sa::attribute::kPortInfoRecord);
}
BENCHMARK(all_port_infos)->Arg(1024)->Arg(8192)->Unit(benchmark::kMillisecond);
void all_links(benchmark::State& state) {
  table(state, sa::attribute::kLinkRecord);
}
BENCHMARK(all_links)->Arg(8192)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ib::services
