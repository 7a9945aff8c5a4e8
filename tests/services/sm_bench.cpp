// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet manager brings up fat trees, over the fabric's subnet management interface: CPU time,
// SMPs, and sweeps afterwards.
#include "fabric/management/smi.h"
#include "fabric/port_states.h"
#include "fabric/topology/node_names.h"
#include "fabric/topology/presets.h"
#include "services/smi/traps.h"
#include "sm/manager.h"

#include <benchmark/benchmark.h>

#include <bit>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ib::services {
namespace {

std::string tree_of(std::int64_t hcas) {
  return "fat-tree:hcas=" + std::to_string(hcas) + ",ports=" + (hcas > 11'664 ? "64" : "36");
}

fabric::Fabric make_fabric(std::int64_t hcas) {
  std::string reason;
  auto topology = fabric::preset_topology(tree_of(hcas), reason);
  IB_ASSERT(topology);
  fabric::Shape shape;
  shape.nodes = fabric::nodes_of(*topology);
  shape.topology = *std::move(topology);
  shape.management = fabric::SubnetManagement::Programs;
  auto fabric = fabric::Fabric::create(shape);
  IB_ASSERT(fabric);
  return *std::move(fabric);
}

constexpr Duration kTooLong = std::chrono::seconds(60);

class Bench : private fabric::Smi::Receiver {
 public:
  explicit Bench(std::int64_t hcas) : fabric_(make_fabric(hcas)) {
    smi_.set_receiver(this);
    port_ = fabric_.graph().index_of(fabric_.nodes()[0].hcas[0].ports[0]);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() override = default;

  // Time passes only where the manager waits for an answer that a lost link has cost.
  void run() {
    const Instant begin = now_;
    while (true) {
      while (const auto out = manager_.poll(now_)) {
        ++sent_;
        smi_.send(port_, {}, std::bit_cast<mad::Mad>(out->smp));
      }
      if (manager_.is_settled()) break;
      const auto deadline = manager_.deadline();
      IB_ASSERT(deadline && *deadline > now_ && *deadline < begin + kTooLong);
      now_ = *deadline;
    }
    waited_ = now_ - begin;
  }
  void react() {
    sent_ = 0;
    run();
  }
  void sweep(bool is_full) {
    sent_ = 0;
    manager_.request_sweep(is_full);
    run();
  }
  // A cable between the first leaf and a spine goes, or comes back; both tell the manager by trap
  // 128, which may get lost on the way.
  void set_uplink(bool is_up) {
    fabric::Graph& graph = fabric_.graph();
    const fabric::Element& leaf = graph.element_of(*graph.peer_of(*graph.port(port_)));
    fabric::PortChanges changes;
    for (std::uint32_t i = leaf.first_port; i <= leaf.first_port + leaf.port_count; ++i) {
      fabric::Port& port = *graph.port(i);
      const fabric::Port* peer = graph.peer_of(port);
      if (peer == nullptr || !graph.element_of(*peer).is_switch()) continue;
      fabric::set_enabled(fabric_, port, is_up, changes);
      break;
    }
    for (const fabric::PortChange& change : changes) send_trap(*graph.port(change.port));
  }
  void set_groups(std::vector<sm::MulticastGroup> groups) {
    sent_ = 0;
    manager_.set_groups(std::move(groups));
    run();
  }
  std::uint64_t guid(std::size_t node) const { return fabric_.nodes()[node].hcas[0].ports[0].guid; }
  std::size_t nodes() const { return fabric_.nodes().size(); }
  std::size_t sent() const { return sent_; }
  double waited_ms() const { return std::chrono::duration<double, std::milli>(waited_).count(); }
  bool has_problems() const { return !manager_.problems().all().empty(); }
  std::size_t ports() const { return manager_.subnet().ports().size(); }

 private:
  void send_trap(const fabric::Port& port) {
    const fabric::Port& from = fabric_.graph().end_port_of(port);
    smi_.send(fabric_.graph().index_of(from), {from.lid, from.sm_lid},
              trap_smp(link_state_notice(from.lid), ++traps_));
  }
  bool on_smp(std::uint32_t, const fabric::PacketLids& lids, const mad::Mad& mad) override {
    return manager_.on_smp(std::bit_cast<mad::Smp>(mad), lids.source, now_);
  }
  void on_bad_key(std::uint32_t, const fabric::PacketLids&, const mad::Mad&) override {}

  fabric::Fabric fabric_;
  Instant now_{};
  Duration waited_{};
  fabric::Smi smi_{fabric_, {.now = [this] { return now_; }, .on_changes = {}}};
  sm::Manager manager_{sm::Settings{}, 1};
  std::uint32_t port_ = 0;
  std::size_t sent_ = 0;
  std::uint64_t traps_ = 0;
};

void BM_BringUp(benchmark::State& state) {
  std::size_t sent = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto bench = std::make_unique<Bench>(state.range(0));
    state.ResumeTiming();
    bench->run();
    state.PauseTiming();
    IB_ASSERT(!bench->has_problems());
    sent = bench->sent();
    state.counters["ports"] = static_cast<double>(bench->ports());
    bench.reset();
    state.ResumeTiming();
  }
  state.counters["SMPs"] = static_cast<double>(sent);
}
// From the trap to the last Set after a cable between switches is gone.
void BM_LinkLoss(benchmark::State& state) {
  Bench bench(state.range(0));
  bench.run();
  for (auto _ : state) {
    state.PauseTiming();
    bench.set_uplink(false);
    state.ResumeTiming();
    bench.react();
    state.PauseTiming();
    state.counters["SMPs"] = static_cast<double>(bench.sent());
    state.counters["waited_ms"] = bench.waited_ms();
    bench.set_uplink(true);
    bench.react();
    IB_ASSERT(!bench.has_problems());
    state.ResumeTiming();
  }
}
BENCHMARK(BM_LinkLoss)->Arg(648)->Unit(benchmark::kMillisecond);

// One member more, or less, of one of a thousand groups.
void BM_Join(benchmark::State& state) {
  Bench bench(state.range(0));
  bench.run();
  std::vector<sm::MulticastGroup> groups;
  for (std::uint16_t i = 0; i < 1000; ++i) {
    groups.push_back({static_cast<std::uint16_t>(mad::kFirstMulticastLid + i),
                      {bench.guid(i % bench.nodes()), bench.guid(i * 7u % bench.nodes())}});
  }
  bench.set_groups(groups);
  for (auto _ : state) {
    auto& members = groups[500].members;
    if (members.size() == 2) {
      members.push_back(bench.guid(bench.nodes() - 1));
    } else {
      members.pop_back();
    }
    bench.set_groups(groups);
  }
  state.counters["SMPs"] = static_cast<double>(bench.sent());
}
BENCHMARK(BM_Join)->Arg(648)->Unit(benchmark::kMillisecond);

void BM_Sweep(benchmark::State& state) {
  Bench bench(state.range(1));
  bench.run();
  for (auto _ : state) bench.sweep(state.range(0) != 0);
  state.counters["SMPs"] = static_cast<double>(bench.sent());
}
BENCHMARK(BM_Sweep)
    ->ArgNames({"full", "hcas"})
    ->Args({0, 648})
    ->Args({1, 648})
    ->Unit(benchmark::kMillisecond);

BENCHMARK(BM_BringUp)->Arg(648)->Unit(benchmark::kMillisecond);

// They take seconds: SOFTIB_LARGE_SUBNETS=1.
const bool kLargeOnes = [] {
  if (std::getenv("SOFTIB_LARGE_SUBNETS") == nullptr) return false;
  for (const int hcas : {2'048, 8'192, 41'000}) {
    benchmark::RegisterBenchmark("BM_BringUp", BM_BringUp)
        ->Arg(hcas)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
  }
  benchmark::RegisterBenchmark("BM_LinkLoss", BM_LinkLoss)
      ->Arg(8'192)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(5);
  benchmark::RegisterBenchmark("BM_Join", BM_Join)->Arg(8'192)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("BM_Sweep", BM_Sweep)
      ->ArgNames({"full", "hcas"})
      ->Args({0, 8'192})
      ->Args({1, 8'192})
      ->Unit(benchmark::kMillisecond)
      ->Iterations(5);
  return true;
}();

}  // namespace
}  // namespace ib::services
