// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/address_space.h"
#include "setup/fd.h"
#include "softib/doctor/doctor.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ib::softib {
namespace {

constexpr std::uint64_t kMib = 1u << 20;

std::string shown(rlim_t value, std::uint64_t scale, const char* unit) {
  return value == RLIM_INFINITY ? "unlimited" : fmt::format("{}{}", value / scale, unit);
}

rlim_t limit_of(__rlimit_resource what) {
  rlimit limit{};
  return ::getrlimit(what, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

void check_address_space(Findings& findings) {
  const rlim_t space = limit_of(RLIMIT_AS);
  const std::string value = shown(space, kMib, " MiB");
  const char* const check = "address space (RLIMIT_AS)";
  const char* const fix = "ulimit -v unlimited";
  if (space >= kFullAddressSpace) {
    findings.push_back({check, Level::Ok, value, {}, {}});
  } else if (space >= kLeastAddressSpace) {
    findings.push_back({check, Level::Warn, value,
                        fmt::format("a fabric that is started with it has fewer objects; room for "
                                    "all takes {} MiB of addresses (memory only where used)",
                                    kFullAddressSpace / kMib),
                        fix});
  } else {
    findings.push_back({check, Level::Fail, value,
                        fmt::format("device memory cannot be mapped: that takes {} MiB of "
                                    "addresses at least (memory only where used)",
                                    kLeastAddressSpace / kMib),
                        fix});
  }
}

void check_file_size(Findings& findings) {
  const rlim_t size = limit_of(RLIMIT_FSIZE);
  constexpr std::uint64_t kNeeded = hca::place::kHeap + hca::kHeapStep;
  if (size >= kNeeded) return;  // unset by default: not worth a line
  findings.push_back(
      {"file size (RLIMIT_FSIZE)", Level::Fail,
       size < kMib ? shown(size, 1024, " KiB") : shown(size, kMib, " MiB"),
       fmt::format("device memory is a sparse file of {} MiB and more", kNeeded / kMib),
       "ulimit -f unlimited"});
}

void check_descriptors(Findings& findings) {
  const rlim_t files = limit_of(RLIMIT_NOFILE);
  Finding finding{"open files (RLIMIT_NOFILE)", Level::Ok, shown(files, 1, ""), {}, {}};
  if (files < 1024) {
    finding.level = files < 64 ? Level::Fail : Level::Warn;
    finding.cost = "each program and each adopted region of a peer takes descriptors";
    finding.fix = "ulimit -n 4096";
  }
  findings.push_back(finding);
}

void check_locked_memory(Findings& findings) {
  const rlim_t locked = limit_of(RLIMIT_MEMLOCK);
  Finding finding{"locked memory (RLIMIT_MEMLOCK)",
                  Level::Ok,
                  shown(locked, 1024, " KiB") + "; softib locks none",
                  {},
                  {}};
  constexpr rlim_t kWarned = rlim_t{32} * 1024;
  if (::geteuid() != 0 && locked <= kWarned) {
    finding.level = Level::Warn;
    finding.cost = "libibverbs prints a warning at each start; nothing else";
    finding.fix = "ulimit -l 65536";
  }
  findings.push_back(finding);
}

// The number behind `key` in a text like /proc/meminfo, in KiB there.
std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  const std::size_t digit = text.find_first_of("0123456789", at + key.size());
  std::uint64_t value = 0;
  if (digit != std::string_view::npos) {
    std::from_chars(text.data() + digit, text.data() + text.size(), value);
  }
  return value;
}

// This process's cgroup below the mount point of `controller` ("" means version 2).
std::string cgroup_dir(std::string_view controller) {
  const std::string text = read_file("/proc/self/cgroup");
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    start = end + 1;
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    if (line.substr(first + 1, second - first - 1) != controller) continue;
    const std::string mount = controller.empty() ? "" : "/" + std::string(controller);
    return "/sys/fs/cgroup" + mount + line.substr(second + 1);
  }
  return {};
}

// Files of the cgroup, or of its namespace's root, as containers see it. 0: no limit.
std::uint64_t cgroup_number(const std::string& dir, const std::string& root, const char* file) {
  std::string text = read_file(dir + "/" + file);
  if (text.empty()) text = read_file(root + "/" + file);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);  // "max" leaves 0
  constexpr std::uint64_t kNone = 1ull << 60;  // version 1 writes a huge number for "none"
  return value >= kNone ? 0 : value;
}

void check_memory(Findings& findings) {
  std::uint64_t free = number_after(read_file("/proc/meminfo"), "MemAvailable:") * 1024;
  std::string note;
  const std::string v2 = cgroup_dir("");
  const std::string v1 = cgroup_dir("memory");
  std::uint64_t limit = cgroup_number(v2, "/sys/fs/cgroup", "memory.max");
  std::uint64_t used = cgroup_number(v2, "/sys/fs/cgroup", "memory.current");
  if (limit == 0) {
    limit = cgroup_number(v1, "/sys/fs/cgroup/memory", "memory.limit_in_bytes");
    used = cgroup_number(v1, "/sys/fs/cgroup/memory", "memory.usage_in_bytes");
  }
  if (limit != 0) {
    note = fmt::format(", cgroup limit {} MiB", limit / kMib);
    free = std::min(free, limit > used ? limit - used : 0);
  }
  Finding finding{"memory", Level::Ok, fmt::format("{} MiB free{}", free / kMib, note), {}, {}};
  if (free < 256 * kMib) {
    finding.level = free < 32 * kMib ? Level::Fail : Level::Warn;
    finding.cost = "queues and adopted memory may not find room; an idle fabric takes some 10 MiB";
    finding.fix = "free memory, raise the cgroup's limit, or softib up --max-memory";
  }
  findings.push_back(finding);
}

void check_processors(Findings& findings) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int cores = 1;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = CPU_COUNT(&allowed);
  std::string value = fmt::format("{}", cores);
  const std::string quota = read_file(cgroup_dir("") + "/cpu.max");
  std::uint64_t time = 0;
  std::from_chars(quota.data(), quota.data() + quota.size(), time);
  const std::uint64_t period = quota.find(' ') == std::string::npos ? 0 : number_after(quota, " ");
  bool scarce = cores < 2;
  if (time != 0 && period != 0) {
    value += fmt::format(", cgroup quota {:.1f}",
                         static_cast<double>(time) / static_cast<double>(period));
    scarce = scarce || time < 2 * period;
  }
  Finding finding{"processors", Level::Ok, value, {}, {}};
  if (scarce) {
    finding.level = Level::Warn;
    finding.cost =
        "two programs that poll (perftest, MPI) take turns: latency is that of the "
        "scheduler, milliseconds instead of microseconds";
    finding.fix = "two processors or more; or event-driven runs (perftest -e)";
  }
  findings.push_back(finding);
}

}  // namespace

void check_limits(Findings& findings) {
  check_address_space(findings);
  check_file_size(findings);
  check_descriptors(findings);
  check_locked_memory(findings);
  check_memory(findings);
  check_processors(findings);
}

}  // namespace ib::softib
