// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet manager brings up fat trees, over the fabric's subnet management interface: CPU time,
// SMPs, and sweeps afterwards.
#include "fabric/management/smi.h"
#include "fabric/topology/node_names.h"
#include "fabric/topology/presets.h"
#include "sm/manager.h"

#include <benchmark/benchmark.h>

#include <bit>
#include <cstdlib>
#include <memory>
#include <string>

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

class Bench : private fabric::Smi::Receiver {
 public:
  explicit Bench(std::int64_t hcas) : fabric_(make_fabric(hcas)) {
    smi_.set_receiver(this);
    port_ = fabric_.graph().index_of(fabric_.nodes()[0].hcas[0].ports[0]);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() override = default;

  void run() {
    while (const auto out = manager_.poll(now_)) {
      ++sent_;
      smi_.send(port_, {}, std::bit_cast<mad::Mad>(out->smp));
    }
    IB_ASSERT(manager_.is_settled() && manager_.problems().all().empty());
  }
  void sweep(bool is_full) {
    sent_ = 0;
    manager_.request_sweep(is_full);
    run();
  }
  std::size_t sent() const { return sent_; }
  std::size_t ports() const { return manager_.subnet().ports().size(); }

 private:
  bool on_smp(std::uint32_t, const fabric::PacketLids& lids, const mad::Mad& mad) override {
    return manager_.on_smp(std::bit_cast<mad::Smp>(mad), lids.source, now_);
  }
  void on_bad_key(std::uint32_t, const fabric::PacketLids&, const mad::Mad&) override {}

  fabric::Fabric fabric_;
  Instant now_{};
  fabric::Smi smi_{fabric_, {.now = [this] { return now_; }, .on_changes = {}}};
  sm::Manager manager_{sm::Settings{}, 1};
  std::uint32_t port_ = 0;
  std::size_t sent_ = 0;
};

void BM_BringUp(benchmark::State& state) {
  std::size_t sent = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto bench = std::make_unique<Bench>(state.range(0));
    state.ResumeTiming();
    bench->run();
    state.PauseTiming();
    sent = bench->sent();
    state.counters["ports"] = static_cast<double>(bench->ports());
    bench.reset();
    state.ResumeTiming();
  }
  state.counters["SMPs"] = static_cast<double>(sent);
}
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
  return true;
}();

void BM_Sweep(benchmark::State& state) {
  Bench bench(648);
  bench.run();
  for (auto _ : state) bench.sweep(state.range(0) != 0);
  state.counters["SMPs"] = static_cast<double>(bench.sent());
}
BENCHMARK(BM_Sweep)->ArgName("full")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ib::services
