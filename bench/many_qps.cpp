// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many connected RC queue pairs between two processes: the cost of making them, and the latency of
// a message beside them.
//   bench_many_qps [--pairs N] [--rounds N] -p PORT [HOST]       without HOST: the server
// The client prints a line of JSON for each phase and then waits for a line on stdin, so that
// memory can be measured:
//   {"phase": "one"}                                   with one pair of queue pairs
//   {"phase": "many", "create_s", "connect_s"}         with all of them
//   {"phase": "latency", "same_ns", "spread_ns"}       for each further line
//   {"phase": "closed", "destroy_s": ...}              at the end of stdin
// *_ns: an RDMA write of 8 bytes, polled for in memory, one way, median; same: on the first pair;
// spread: each round on the next pair. "create" and "connect" count both sides, which work one
// after the other, and their agreement.
#include "connect.h"
#include "program.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace ib::bench;

struct Options {
  std::uint32_t pairs = 10000;
  int rounds = 20000;
  std::uint16_t port = 18515;
  std::string host;
};

// The address that each side sends to the other.
struct Hello {
  std::uint64_t address;
  std::uint32_t rkey;
  std::uint16_t lid;
  std::uint16_t unused;
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The TCP connection over which the sides agree.
class Line {
 public:
  explicit Line(const Options& options)
      : fd_(options.host.empty() ? accept_one(options) : connect_to(options)) {
    const int on = 1;
    require(setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { close(fd_); }

  // Both sides give and take as many bytes as `mine` has.
  template <class T>
  std::vector<T> exchange(const std::vector<T>& mine) {
    std::vector<T> theirs(mine.size());
    if (mine.empty()) return theirs;  // recv() of nothing would wait for a byte
    const std::size_t size = mine.size() * sizeof(T);
    require(send(fd_, mine.data(), size, 0) == static_cast<ssize_t>(size), "send");
    require(recv(fd_, theirs.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size),
            "the other side is gone: recv");
    return theirs;
  }
  void meet() { exchange(std::vector<char>(1)); }

 private:
  static sockaddr_in address(const Options& options) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(options.port);
    const std::string host = options.host.empty() ? "127.0.0.1" : options.host;
    require(inet_pton(AF_INET, host.c_str(), &result.sin_addr) == 1,
            "HOST must be an IPv4 address");
    return result;
  }
  static int accept_one(const Options& options) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    const sockaddr_in where = address(options);
    require(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "SO_REUSEADDR");
    require(bind(listener, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0, "bind");
    require(listen(listener, 1) == 0, "listen");
    const int fd = accept(listener, nullptr, nullptr);
    require(fd >= 0, "accept");
    close(listener);
    return fd;
  }
  static int connect_to(const Options& options) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in where = address(options);
    require(connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0, "connect");
    return fd;
  }

  int fd_;
};

class Side {
 public:
  explicit Side(Line& line) {
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    require(devices != nullptr && count > 0, "no RDMA device");
    context_ = ibv_open_device(devices[0]);
    require(context_ != nullptr, "ibv_open_device");
    ibv_free_device_list(devices);
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 256, nullptr, nullptr, 0);
    require(pd_ != nullptr && cq_ != nullptr, "ibv_alloc_pd, ibv_create_cq");
    void* memory = std::aligned_alloc(4096, 4096);
    require(memory != nullptr, "aligned_alloc");
    std::memset(memory, 0, 4096);
    word_ = new (memory) std::atomic<std::uint64_t>{0};
    mr_ = ibv_reg_mr(pd_, memory, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    require(mr_ != nullptr, "ibv_reg_mr");
    ibv_port_attr port{};
    require(ibv_query_port(context_, 1, &port) == 0, "ibv_query_port");
    const Hello hello{reinterpret_cast<std::uint64_t>(memory), mr_->rkey, port.lid, 0};
    peer_ = line.exchange(std::vector<Hello>{hello}).front();
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() {
    ibv_dereg_mr(mr_);
    ibv_destroy_cq(cq_);
    ibv_dealloc_pd(pd_);
    ibv_close_device(context_);
  }

  void create(std::size_t count) {
    while (qps_.size() < count) {
      ibv_qp_init_attr attributes{};
      attributes.qp_type = IBV_QPT_RC;
      attributes.send_cq = attributes.recv_cq = cq_;
      attributes.cap = {16, 16, 1, 1, 64};
      attributes.sq_sig_all = 1;
      ibv_qp* qp = ibv_create_qp(pd_, &attributes);
      if (qp == nullptr) fail("ibv_create_qp number " + std::to_string(qps_.size()));
      qps_.push_back(qp);
    }
  }

  void connect(Line& line, std::size_t first) {
    std::vector<std::uint32_t> mine;
    for (std::size_t i = first; i < qps_.size(); ++i) mine.push_back(qps_[i]->qp_num);
    const std::vector<std::uint32_t> theirs = line.exchange(mine);
    for (std::size_t i = first; i < qps_.size(); ++i)
      connect_rc(qps_[i], peer_.lid, theirs[i - first]);
    line.meet();
  }

  void destroy() {
    for (ibv_qp* qp : qps_) require(ibv_destroy_qp(qp) == 0, "ibv_destroy_qp");
    qps_.clear();
  }

  std::size_t size() const { return qps_.size(); }
  std::uint64_t word() const { return word_->load(std::memory_order_acquire); }
  void clear() { word_->store(0, std::memory_order_release); }

  // Writes `value` into the peer's word through queue pair `index`.
  void write(std::size_t index, std::uint64_t value) {
    write_word(qps_[index], cq_, value, peer_.address, peer_.rkey);
  }

 private:
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::atomic<std::uint64_t>* word_ = nullptr;
  Hello peer_{};
  std::vector<ibv_qp*> qps_;
};

void wait_for(const Side& side, std::uint64_t value) {
  while (side.word() != value) {}
}

// Ping-pong: round r goes through queue pair (r * step) % size. Returns the median half round trip
// in ns.
double ping_pong(Side& side, Line& line, bool client, int rounds, std::size_t step) {
  side.clear();
  line.meet();
  std::vector<double> times;
  for (int round = 1; round <= rounds; ++round) {
    const std::size_t index = static_cast<std::size_t>(round) * step % side.size();
    const auto value = static_cast<std::uint64_t>(round);
    const double start = seconds();
    if (client) side.write(index, value);
    wait_for(side, value);
    if (!client) side.write(index, value);
    times.push_back((seconds() - start) * 0.5e9);
  }
  line.meet();
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds / 2)];
}

// Returns whether the client's caller has a line for it, rather than the end of stdin; the client
// tells the server.
bool is_to_go_on(Line& line, bool client) {
  std::fflush(stdout);
  const char mine = client && std::getchar() == '\n' ? 1 : 0;
  return mine + line.exchange(std::vector<char>{mine}).front() != 0;
}

void run(const Options& options) {
  const bool client = !options.host.empty();
  FILE* out = client ? stdout : fopen("/dev/null", "w");
  Line line(options);
  Side side(line);
  side.create(1);
  side.connect(line, 0);
  std::fprintf(out, "{\"phase\": \"one\"}\n");
  if (!is_to_go_on(line, client)) return;

  const double start = seconds();
  side.create(options.pairs);
  line.meet();
  const double created = seconds();
  side.connect(line, 1);
  std::fprintf(out, "{\"phase\": \"many\", \"create_s\": %.4f, \"connect_s\": %.4f}\n",
               created - start, seconds() - created);
  while (is_to_go_on(line, client)) {
    const double same = ping_pong(side, line, client, options.rounds, 0);
    const double spread = ping_pong(side, line, client, options.rounds, 1);
    std::fprintf(out, "{\"phase\": \"latency\", \"same_ns\": %.1f, \"spread_ns\": %.1f}\n", same,
                 spread);
  }

  const double before = seconds();
  side.destroy();
  line.meet();
  std::fprintf(out, "{\"phase\": \"closed\", \"destroy_s\": %.4f}\n", seconds() - before);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--pairs") {
      options.pairs = static_cast<std::uint32_t>(std::atoi(value));
      ++i;
    } else if (word == "--rounds") {
      options.rounds = std::atoi(value);
      ++i;
    } else if (word == "-p") {
      options.port = static_cast<std::uint16_t>(std::atoi(value));
      ++i;
    } else if (word[0] != '-') {
      options.host = word;
    } else {
      std::fprintf(stderr, "unknown option %s; see the head of bench/many_qps.cpp\n", word.c_str());
      std::exit(2);
    }
  }
  if (options.pairs < 1 || options.rounds < 1) fail("--pairs and --rounds must be at least 1");
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  run(parse(argc, argv));
  return 0;
}
