// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The cost of control operations for a program: one line of JSON,
//   socket_us       a message of 64 bytes to another process and back, over the kind of socket that
//                   the control interface uses
//   query_us        ibv_query_port, one such exchange with softibd
//   pd_us cq_us mr_us qp_us   creating and destroying one object
// Medians of single calls; and 99th percentiles (pd_p99_us), and how many a second (pd_per_s).
#include "program.h"

#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace ib::bench;

constexpr int kCalls = 3000;

struct Figure {
  std::string name;
  double median;
  double p99;
  double per_second;
};

template <class Call>
Figure measure(const char* name, Call&& call) {
  std::vector<double> times;
  const double begin = now_us();
  for (int i = 0; i < kCalls; ++i) {
    const double start = now_us();
    call();
    times.push_back(now_us() - start);
  }
  const double seconds = (now_us() - begin) / 1e6;
  std::sort(times.begin(), times.end());
  return {name, times[times.size() / 2], times[times.size() * 99 / 100], kCalls / seconds};
}

// Before anything of the library: the child is a bare echo.
Figure socket_figure() {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
  const pid_t child = fork();
  require(child >= 0, "fork");
  char message[64] = {};
  if (child == 0) {
    close(ends[0]);
    while (recv(ends[1], message, sizeof message, 0) == sizeof message) {
      if (send(ends[1], message, sizeof message, 0) != sizeof message) break;
    }
    _exit(0);
  }
  close(ends[1]);
  Figure figure = measure("socket", [&] {
    require(send(ends[0], message, sizeof message, 0) == sizeof message, "send");
    require(recv(ends[0], message, sizeof message, 0) == sizeof message, "recv");
  });
  close(ends[0]);
  require(waitpid(child, nullptr, 0) == child, "waitpid");
  return figure;
}

}  // namespace

int main() {
  std::vector<Figure> figures{socket_figure()};
  int count = 0;
  ibv_device** devices = made(ibv_get_device_list(&count), "ibv_get_device_list");
  require(count > 0, "there is no device");
  ibv_context* context = made(ibv_open_device(devices[0]), "ibv_open_device");
  ibv_free_device_list(devices);

  ibv_port_attr port{};
  figures.push_back(
      measure("query", [&] { require(ibv_query_port(context, 1, &port) == 0, "ibv_query_port"); }));
  figures.push_back(measure("pd", [&] {
    require(ibv_dealloc_pd(made(ibv_alloc_pd(context), "ibv_alloc_pd")) == 0, "ibv_dealloc_pd");
  }));
  figures.push_back(measure("cq", [&] {
    ibv_cq* cq = made(ibv_create_cq(context, 64, nullptr, nullptr, 0), "ibv_create_cq");
    require(ibv_destroy_cq(cq) == 0, "ibv_destroy_cq");
  }));
  ibv_pd* pd = made(ibv_alloc_pd(context), "ibv_alloc_pd");
  std::vector<char> buffer(4096);
  figures.push_back(measure("mr", [&] {
    ibv_mr* mr =
        made(ibv_reg_mr(pd, buffer.data(), buffer.size(), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
    require(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  }));
  ibv_cq* cq = made(ibv_create_cq(context, 64, nullptr, nullptr, 0), "ibv_create_cq");
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {16, 16, 1, 1, 0};
  figures.push_back(measure("qp", [&] {
    ibv_qp* qp = made(ibv_create_qp(pd, &attr), "ibv_create_qp");
    require(ibv_destroy_qp(qp) == 0, "ibv_destroy_qp");
  }));
  require(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0, "tidying up");
  require(ibv_close_device(context) == 0, "ibv_close_device");

  const char* before = "{";
  for (const Figure& figure : figures) {
    const char* name = figure.name.c_str();
    std::printf("%s\"%s_us\": %.3f, \"%s_p99_us\": %.3f, \"%s_per_s\": %.1f", before, name,
                figure.median, name, figure.p99, name, figure.per_second);
    before = ", ";
  }
  std::printf("}\n");
  return 0;
}
