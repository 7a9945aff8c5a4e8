// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Measures the cost for a pair of processes beside it that connect and disconnect all the time.
//   bench_neighbours pair [--messages N]
//     Two processes with a connected RC queue pair each. After each line on stdin one writes N
//     messages of 8 bytes to the other and prints {"phase": "measured", "message_ns": ...}: time of
//     its thread on a core, so time of others on that core does not count.
//   bench_neighbours churn [--processes P]
//     P processes, each of which connects two queue pairs with each other and destroys them, again
//     and again, until a line comes on stdin: {"phase": "stopped", "per_s": ...}, connections.
#include "connect.h"
#include "program.h"

#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <new>
#include <string>
#include <vector>

namespace {

using namespace ib::bench;

struct Options {
  int messages = 1'000'000;
  int processes = 64;
};

struct Address {
  std::uint64_t word;
  std::uint32_t rkey;
  std::uint32_t qpn;
};

// An open HCA with what a queue pair needs.
class Device {
 public:
  Device() {
    ibv_device** devices = ibv_get_device_list(nullptr);
    require(devices != nullptr && devices[0] != nullptr, "there is no device");
    context_ = made(ibv_open_device(devices[0]), "ibv_open_device");
    ibv_free_device_list(devices);
    pd_ = made(ibv_alloc_pd(context_), "ibv_alloc_pd");
    cq_ = made(ibv_create_cq(context_, 64, nullptr, nullptr, 0), "ibv_create_cq");
    require(ibv_query_port(context_, 1, &port_) == 0, "ibv_query_port");
  }

  ibv_pd* pd() const { return pd_; }
  ibv_cq* cq() const { return cq_; }
  ibv_qp* create_qp() const {
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.send_cq = init.recv_cq = cq_;
    init.cap = {16, 16, 1, 1, 64};
    init.sq_sig_all = 1;
    return made(ibv_create_qp(pd_, &init), "ibv_create_qp");
  }
  // Peers are on this port too.
  void connect(ibv_qp* qp, std::uint32_t peer) const { connect_rc(qp, port_.lid, peer); }

 private:
  ibv_context* context_;
  ibv_pd* pd_;
  ibv_cq* cq_;
  ibv_port_attr port_{};
};

template <class T>
void send_to(int fd, const T& value) {
  require(write(fd, &value, sizeof value) == sizeof value, "write");
}
template <class T>
T receive_from(int fd) {
  T value;
  require(read(fd, &value, sizeof value) == sizeof value, "the other process is gone: read");
  return value;
}

// One of the two ends: its queue pair is connected when the constructor is done.
class End {
 public:
  End(int from, int to) : qp_(device_.create_qp()) {
    void* memory = std::aligned_alloc(4096, 4096);
    require(memory != nullptr, "aligned_alloc");
    std::memset(memory, 0, 4096);
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    const ibv_mr* mr = made(ibv_reg_mr(device_.pd(), memory, 4096, kAccess), "ibv_reg_mr");
    send_to(to, Address{reinterpret_cast<std::uint64_t>(memory), mr->rkey, qp_->qp_num});
    peer_ = receive_from<Address>(from);
    device_.connect(qp_, peer_.qpn);
    send_to(to, 'c');
    (void)receive_from<char>(from);
  }

  // ns of this thread on a core, for each message.
  double write_messages(int count) {
    const double before = thread_ns();
    for (int i = 0; i < count; ++i)
      write_word(qp_, device_.cq(), static_cast<std::uint64_t>(i), peer_.word, peer_.rkey);
    return (thread_ns() - before) / count;
  }

 private:
  static double thread_ns() {
    timespec now{};
    require(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0, "clock_gettime");
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
  }
  Device device_;
  ibv_qp* qp_;
  Address peer_{};
};

void pair_of_processes(const Options& options) {
  int there[2];
  int back[2];
  require(pipe(there) == 0 && pipe(back) == 0, "pipe");
  const pid_t other = fork();
  require(other >= 0, "fork");
  if (other == 0) {
    close(there[1]);
    const End end(there[0], back[1]);
    char byte = 0;
    (void)!read(there[0], &byte, 1);  // until the first one has ended
    std::_Exit(0);
  }
  close(there[0]);
  End end(back[0], there[1]);
  phase("connected");
  for (;;) {
    const double ns = end.write_messages(options.messages);
    std::printf("{\"phase\": \"measured\", \"message_ns\": %.3f}\n", ns);
    std::fflush(stdout);
    if (std::getchar() == EOF) return;
  }
}

[[noreturn]] void connect_and_disconnect(std::atomic<std::uint64_t>& count) {
  const Device device;
  for (;;) {
    const std::array<ibv_qp*, 2> pair{device.create_qp(), device.create_qp()};
    device.connect(pair[0], pair[1]->qp_num);
    device.connect(pair[1], pair[0]->qp_num);
    for (ibv_qp* qp : pair) require(ibv_destroy_qp(qp) == 0, "ibv_destroy_qp");
    count.fetch_add(1, std::memory_order_relaxed);
  }
}

void churn(const Options& options) {
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(shared != MAP_FAILED, "mmap");
  auto& count = *new (shared) std::atomic<std::uint64_t>{0};
  std::vector<pid_t> children;
  for (int i = 0; i < options.processes; ++i) {
    const pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0) connect_and_disconnect(count);
    children.push_back(child);
  }
  while (count.load() < static_cast<std::uint64_t>(options.processes)) usleep(1000);
  const double start = now_us();
  const std::uint64_t before = count.load();
  phase("started");
  const double rate = static_cast<double>(count.load() - before) / ((now_us() - start) / 1e6);
  for (const pid_t child : children) {
    int status = 0;
    require(waitpid(child, &status, WNOHANG) == 0, "one of the processes has ended");
    kill(child, SIGKILL);
    require(waitpid(child, &status, 0) == child, "waitpid");
  }
  std::printf("{\"phase\": \"stopped\", \"per_s\": %.1f}\n", rate);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const std::string what = argc > 1 ? argv[1] : "";
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--messages") == 0) options.messages = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--processes") == 0) options.processes = std::atoi(argv[i + 1]);
  }
  if (what == "pair") {
    pair_of_processes(options);
  } else if (what == "churn") {
    churn(options);
  } else {
    std::fprintf(stderr, "usage: bench_neighbours pair|churn [--messages N] [--processes P]\n");
    return 2;
  }
  return 0;
}
