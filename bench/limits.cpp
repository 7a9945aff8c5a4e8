// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The limits of this machine, between two processes that are pinned to a core each:
//   bench_limits [--cores A,B] [--samples N] [--figure NAME]
// Prints one JSON object; each figure, or the one that is named, is an array of N samples. Copies
// are made on core A. Latencies are one way, in ns; rates in MB/s (10^6).
//   cache_line_ns        a cache line to the other core
//   memcpy_<size>_mb_s   source and destination walk 64 MiB
//   memcpy_hot_<size>_mb_s  the same two buffers again and again, as perftest has them, and for as
//                        long as bench/run has perftest do it
//   vm_write_8_ns        process_vm_writev of 8 bytes, pages resident
//   vm_write_<size>_mb_s, vm_write_hot_<size>_mb_s  the same for more bytes
//   eventfd_ns           sleep and be woken
//   tsc_mhz              the clock with which perftest counts; 0 if it is not the one of x86
// A latency is the median of many batches, so other programs that take the core for a moment have
// no effect. A rate is the mean of a walk, as perftest's is.
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kWalked = std::size_t{64} << 20;
constexpr std::size_t kHot = std::size_t{4} << 30;

struct Options {
  int core_a = 0;
  int core_b = 1;
  int samples = 9;
  std::string figure;  // empty: all
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

double now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

// With MAP_SHARED the other process maps it too; otherwise it is memory as from malloc().
char* map(std::size_t size, int kind) {
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("mmap");
  std::memset(p, 1, size);
  return static_cast<char*>(p);
}

// The other process: runs `body` on its core and ends with this one at the latest.
class Partner {
 public:
  Partner(int core, const std::function<void()>& body) : pid_(fork()) {
    if (pid_ < 0) fail("fork");
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(core);
    body();
    _exit(0);
  }
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;
  ~Partner() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// The median time of one call, from `batches` batches of `size` calls.
double median_ns(int batches, int size, const std::function<void()>& call) {
  std::vector<double> times;
  for (int batch = 0; batch < batches; ++batch) {
    const double start = now_ns();
    for (int i = 0; i < size; ++i) call();
    times.push_back((now_ns() - start) / size);
  }
  std::nth_element(times.begin(), times.begin() + batches / 2, times.end());
  return times[static_cast<std::size_t>(batches / 2)];
}

struct Lines {
  alignas(4096) std::atomic<std::uint64_t> to_partner;
  alignas(4096) std::atomic<std::uint64_t> from_partner;
};

double cache_line_ns(const Options& options) {
  auto* lines = new (map(sizeof(Lines), MAP_SHARED)) Lines{};
  const Partner partner(options.core_b, [lines] {
    for (std::uint64_t round = 1;; ++round) {
      while (lines->to_partner.load(std::memory_order_acquire) != round) {}
      lines->from_partner.store(round, std::memory_order_release);
    }
  });
  std::uint64_t round = 0;
  const double result = median_ns(500, 100, [&] {
    lines->to_partner.store(++round, std::memory_order_release);
    while (lines->from_partner.load(std::memory_order_acquire) != round) {}
  });
  munmap(lines, sizeof(Lines));
  return result / 2;
}

// Calls copy(offset) for offsets that walk `span` bytes again and again, until `total` are copied;
// MB/s. With a span of one copy it is the same buffers every time.
double walk(std::size_t size, std::size_t span, std::size_t total,
            const std::function<void(std::size_t)>& copy) {
  copy(0);
  const double start = now_ns();
  std::size_t offset = 0;
  for (std::size_t done = 0; done < total; done += size) {
    copy(offset);
    offset = (offset + size) % span;
  }
  return static_cast<double>(total) * 1000.0 / (now_ns() - start);
}

struct Buffers {
  char* source = map(kWalked, MAP_PRIVATE);
  char* destination = map(kWalked, MAP_PRIVATE);
};

double memcpy_mb_s(const Buffers& buffers, std::size_t size, std::size_t span) {
  return walk(size, span, span == size ? kHot : 4 * kWalked, [&](std::size_t offset) {
    std::memcpy(buffers.destination + offset, buffers.source + offset, size);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  });
}

void vm_write(pid_t pid, char* to, char* from, std::size_t size) {
  iovec local{from, size};
  iovec remote{to, size};
  if (process_vm_writev(pid, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(size))
    fail("process_vm_writev");
}

double vm_write_8_ns(const Buffers& buffers, pid_t pid) {
  return median_ns(200, 20, [&] { vm_write(pid, buffers.destination, buffers.source, 8); });
}

double eventfd_ns(const Options& options) {
  const int there = eventfd(0, 0);
  const int back = eventfd(0, 0);
  if (there < 0 || back < 0) fail("eventfd");
  const Partner partner(options.core_b, [there, back] {
    eventfd_t value = 0;
    while (eventfd_read(there, &value) == 0) eventfd_write(back, 1);
  });
  eventfd_t value = 0;
  const double result = median_ns(1000, 1, [&] {
    eventfd_write(there, 1);
    if (eventfd_read(back, &value) != 0) fail("eventfd_read");
  });
  close(there);
  close(back);
  return result / 2;
}

double tsc_mhz() {
#if defined(__x86_64__)
  constexpr double kLong = 50e6;
  const double start = now_ns();
  const std::uint64_t first = __builtin_ia32_rdtsc();
  double now = start;
  while (now - start < kLong) now = now_ns();
  return static_cast<double>(__builtin_ia32_rdtsc() - first) * 1000.0 / (now - start);
#else
  return 0;
#endif
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--figure") {
      options.figure = argv[i + 1];
    } else if (name == "--samples") {
      options.samples = std::atoi(argv[i + 1]);
    } else if (name == "--cores") {
      if (std::sscanf(argv[i + 1], "%d,%d", &options.core_a, &options.core_b) != 2)
        fail("--cores A,B");
    } else {
      std::fprintf(stderr, "unknown option %s; see the head of bench/limits.cpp\n", name.c_str());
      std::exit(2);
    }
  }
  return options;
}

struct Figure {
  const char* name;
  std::function<double()> measure;
  std::vector<double> samples = {};
};

void print(const std::vector<Figure>& figures) {
  std::printf("{");
  const char* comma = "";
  for (const Figure& figure : figures) {
    std::printf("%s\"%s\": [", comma, figure.name);
    for (std::size_t i = 0; i < figure.samples.size(); ++i) {
      std::printf("%s%.2f", i == 0 ? "" : ", ", figure.samples[i]);
    }
    std::printf("]");
    comma = ",\n ";
  }
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  pin(options.core_a);
  const Buffers buffers;
  const Partner target(options.core_b, [] { pause(); });
  const auto vm_walk = [&](std::size_t size, std::size_t span) {
    return walk(size, span, span == size ? kHot : kWalked, [&](std::size_t offset) {
      vm_write(target.pid(), buffers.destination + offset, buffers.source + offset, size);
    });
  };
  // The partner's copy of the pages is shared until written: give it its own.
  vm_walk(std::size_t{1} << 20, kWalked);
  std::vector<Figure> figures = {
      {"cache_line_ns", [&] { return cache_line_ns(options); }},
      {"memcpy_4096_mb_s", [&] { return memcpy_mb_s(buffers, 4096, kWalked); }},
      {"memcpy_65536_mb_s", [&] { return memcpy_mb_s(buffers, 65536, kWalked); }},
      {"memcpy_1048576_mb_s", [&] { return memcpy_mb_s(buffers, 1048576, kWalked); }},
      {"memcpy_hot_65536_mb_s", [&] { return memcpy_mb_s(buffers, 65536, 65536); }},
      {"memcpy_hot_1048576_mb_s", [&] { return memcpy_mb_s(buffers, 1048576, 1048576); }},
      {"vm_write_8_ns", [&] { return vm_write_8_ns(buffers, target.pid()); }},
      {"vm_write_65536_mb_s", [&] { return vm_walk(65536, kWalked); }},
      {"vm_write_1048576_mb_s", [&] { return vm_walk(1048576, kWalked); }},
      {"vm_write_hot_65536_mb_s", [&] { return vm_walk(65536, 65536); }},
      {"vm_write_hot_1048576_mb_s", [&] { return vm_walk(1048576, 1048576); }},
      {"eventfd_ns", [&] { return eventfd_ns(options); }},
      {"tsc_mhz", tsc_mhz},
  };
  if (!options.figure.empty()) {
    std::erase_if(figures, [&](const Figure& figure) { return figure.name != options.figure; });
    if (figures.empty()) {
      std::fprintf(stderr, "there is no figure %s; see the head of bench/limits.cpp\n",
                   options.figure.c_str());
      return 2;
    }
  }
  for (int sample = 0; sample < options.samples; ++sample) {
    for (Figure& figure : figures) figure.samples.push_back(figure.measure());
  }
  print(figures);
  return 0;
}
