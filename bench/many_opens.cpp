// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many opens of an HCA.
//   bench_many_opens [--opens N] [--processes P]
// Prints a line of JSON for each phase and then waits for a line on stdin, so that memory can be
// measured:
//   none       nothing is open
//   attached   P processes have it open, once each
//   opened     the same have it open N times altogether: open_us, open_p99_us, per_s
//   closed     they have ended
//   sequence   one process has opened it and closed it N times: open_us, open_p99_us, per_s (opens
//              and closes)
//   clients    N processes have come, opened it, closed it and ended, 8 at a time: per_s
#include "program.h"

#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace ib::bench;

constexpr int kAtATime = 8;

// The device, found once for this process; the search is not part of the measurement.
ibv_device* device() {
  static ibv_device** const devices = [] {
    int found = 0;
    ibv_device** list = ibv_get_device_list(&found);
    require(list != nullptr && found > 0, "there is no device");
    return list;
  }();
  return devices[0];
}

ibv_context* opened() {
  ibv_context* context = ibv_open_device(device());
  require(context != nullptr, "ibv_open_device");
  return context;
}

std::string figures_of(std::vector<double> times, double seconds) {
  std::sort(times.begin(), times.end());
  char text[128];
  std::snprintf(text, sizeof text, ", \"open_us\": %.3f, \"open_p99_us\": %.3f, \"per_s\": %.1f",
                times[times.size() / 2], times[times.size() * 99 / 100],
                static_cast<double>(times.size()) / seconds);
  return text;
}

// Each in a process that has not used the library before it is forked.
template <class Work>
pid_t in_process(Work&& work) {
  const pid_t child = fork();
  require(child >= 0, "fork");
  if (child != 0) return child;
  work();
  std::_Exit(0);
}
void wait_for_one() {
  int status = 0;
  require(wait(&status) > 0 && status == 0, "a process failed");
}

void read_all(int fd, void* to, std::size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t n = read(fd, at, size);
    require(n > 0, "read");
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}

std::string sequence(int opens) {
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  std::vector<double> times(static_cast<std::size_t>(opens));
  double seconds = 0;
  in_process([&] {
    ibv_context* first = opened();  // keeps the process attached
    const double start = now_us();
    for (double& time : times) {
      const double before = now_us();
      ibv_context* context = opened();
      time = now_us() - before;
      require(ibv_close_device(context) == 0, "ibv_close_device");
    }
    seconds = (now_us() - start) / 1e6;
    require(ibv_close_device(first) == 0, "ibv_close_device");
    const std::size_t size = times.size() * sizeof(double);
    require(write(ends[1], &seconds, sizeof seconds) == sizeof seconds, "write");
    require(write(ends[1], times.data(), size) == static_cast<ssize_t>(size), "write");
  });
  read_all(ends[0], &seconds, sizeof seconds);
  read_all(ends[0], times.data(), times.size() * sizeof(double));
  wait_for_one();
  close(ends[0]);
  close(ends[1]);
  return figures_of(std::move(times), seconds);
}

std::string clients(int opens) {
  const double start = now_us();
  for (int i = 0; i < opens; ++i) {
    if (i >= kAtATime) wait_for_one();
    in_process([] { require(ibv_close_device(opened()) == 0, "ibv_close_device"); });
  }
  for (int i = 0; i < std::min(kAtATime, opens); ++i) wait_for_one();
  return ", \"per_s\": " + std::to_string(opens / ((now_us() - start) / 1e6));
}

// A process with opens of its own; bytes in `go` let it continue.
void keep_open(int opens, int go, int done) {
  char byte = 0;
  std::vector<ibv_context*> contexts{opened()};
  double none = 0;
  require(write(done, &none, sizeof none) == sizeof none, "write");
  read_all(go, &byte, 1);
  for (int i = 1; i < opens; ++i) {
    const double before = now_us();
    contexts.push_back(opened());
    const double time = now_us() - before;
    require(write(done, &time, sizeof time) == sizeof time, "write");
  }
  read_all(go, &byte, 1);
  for (ibv_context* context : contexts) {
    require(ibv_close_device(context) == 0, "ibv_close_device");
  }
}

void all_at_once(int opens, int processes) {
  std::vector<int> go;
  int done[2];
  require(pipe(done) == 0, "pipe");
  const int each = opens / processes;
  for (int i = 0; i < processes; ++i) {
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    in_process([&] { keep_open(each, ends[0], done[1]); });
    close(ends[0]);
    go.push_back(ends[1]);
  }
  const auto all_go = [&go] {
    for (const int fd : go) require(write(fd, "x", 1) == 1, "write");
  };
  std::vector<double> times(static_cast<std::size_t>(processes));
  read_all(done[0], times.data(), times.size() * sizeof(double));
  phase("attached");
  times.resize(static_cast<std::size_t>(processes) * static_cast<std::size_t>(each - 1));
  const double start = now_us();
  all_go();
  read_all(done[0], times.data(), times.size() * sizeof(double));
  phase("opened", figures_of(times, (now_us() - start) / 1e6));
  all_go();
  for (int i = 0; i < processes; ++i) wait_for_one();
  phase("closed");
}

}  // namespace

int main(int argc, char** argv) {
  int opens = 10000;
  int processes = 200;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--opens") == 0) opens = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--processes") == 0) processes = std::atoi(argv[i + 1]);
  }
  phase("none");
  all_at_once(opens, processes);
  phase("sequence", sequence(opens));
  phase("clients", clients(opens));
  return 0;
}
