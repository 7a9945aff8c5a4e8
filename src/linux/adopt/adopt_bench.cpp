// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The cost of adoption: counter us_per_MiB. `first`: memory as an allocator gives it; `again`:
// memory that was given back before; `touch`: the program's own first pass over the pages
// afterwards.
#include "base/address.h"
#include "linux/adopt/adopt.h"

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <ctime>

namespace ib::os {
namespace {

// CPU time of this thread: nothing here sleeps, and other work on the machine does not count.
double cpu_seconds() {
  timespec t{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

enum class What { AdoptFirst, AdoptAgain, GiveBack, TouchAdopted, TouchReturned };

template <class Function>
double timed(Function&& function) {
  const double start = cpu_seconds();
  function();
  return cpu_seconds() - start;
}

void run(benchmark::State& state, What what) {
  const auto size = static_cast<std::size_t>(state.range(0));
  double total = 0;
  for (auto _ : state) {
    void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)::madvise(base, size, MADV_NOHUGEPAGE);
    std::memset(base, 1, size);
    const auto address = address_of(base);
    Result<platform::AdoptedPages> pages = Status::NotFound;
    const double adopt = timed([&] { pages = adopt_pages(address, size); });
    if (!pages) return state.SkipWithError(status_text(pages.error()));
    const double touch = timed([&] { std::memset(base, 2, size); });
    const double give = timed([&] { give_back_pages(*pages); });
    const double touch_returned = timed([&] { std::memset(base, 3, size); });
    double again = 0;
    if (what == What::AdoptAgain) {
      again = timed([&] { pages = adopt_pages(address, size); });
      if (!pages) return state.SkipWithError(status_text(pages.error()));
      give_back_pages(*pages);
    }
    (void)::munmap(base, size);
    double time = adopt;
    if (what == What::AdoptAgain) time = again;
    if (what == What::GiveBack) time = give;
    if (what == What::TouchAdopted) time = touch;
    if (what == What::TouchReturned) time = touch_returned;
    state.SetIterationTime(time);
    total += time;
  }
  const double mebibytes = static_cast<double>(size) / (1 << 20);
  state.counters["us_per_MiB"] =
      total * 1e6 / (static_cast<double>(state.iterations()) * mebibytes);
}

// Fixed numbers: what is measured is a small part of an iteration.
void few_pages(benchmark::internal::Benchmark* bench) {
  bench->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(100);
  for (const int size : {4 << 10, 64 << 10, 1 << 20}) bench->Arg(size);
}

void many_pages(benchmark::internal::Benchmark* bench) {
  bench->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(10)->Arg(16 << 20);
}

BENCHMARK_CAPTURE(run, adopt_first, What::AdoptFirst)->Apply(few_pages);
BENCHMARK_CAPTURE(run, adopt_first, What::AdoptFirst)->Apply(many_pages);
BENCHMARK_CAPTURE(run, adopt_again, What::AdoptAgain)->Apply(few_pages);
BENCHMARK_CAPTURE(run, adopt_again, What::AdoptAgain)->Apply(many_pages);
BENCHMARK_CAPTURE(run, give_back, What::GiveBack)->Apply(few_pages);
BENCHMARK_CAPTURE(run, give_back, What::GiveBack)->Apply(many_pages);
BENCHMARK_CAPTURE(run, touch_adopted, What::TouchAdopted)->Apply(few_pages);
BENCHMARK_CAPTURE(run, touch_adopted, What::TouchAdopted)->Apply(many_pages);
BENCHMARK_CAPTURE(run, touch_returned, What::TouchReturned)->Apply(few_pages);
BENCHMARK_CAPTURE(run, touch_returned, What::TouchReturned)->Apply(many_pages);

}  // namespace
}  // namespace ib::os

BENCHMARK_MAIN();
