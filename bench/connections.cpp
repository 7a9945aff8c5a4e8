// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections that are made and ended, by librdmacm or by TCP sockets.
//   bench_connections server rdma|tcp ADDRESS PORT           until it is killed
//   bench_connections client rdma|tcp ADDRESS PORT COUNT OUTSTANDING
// The client has OUTSTANDING connections under way at a time. One is under way from its first call
// (rdma_create_id, socket) until it is established at the client, which then disconnects and
// destroys it. Prints a line of JSON: `us`, the time of all divided by COUNT; `p50_us`, `p99_us`
// from the first call to "established".
#include "rdma_end.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

using namespace ib::bench;

struct Times {
  std::vector<double> each;
  double all = 0;
};

// Makes `count` connections, `outstanding` of them at a time.
template <class Client>
Times measure(Client&& client, std::size_t count, std::size_t outstanding) {
  Times times;
  const double start = now_us();
  std::size_t begun = 0;
  for (; begun < std::min(outstanding, count); ++begun) client.begin();
  while (times.each.size() < count) {
    const std::size_t before = times.each.size();
    client.step(times);
    if (times.each.size() == before || begun == count) continue;
    client.begin();
    ++begun;
  }
  times.all = now_us() - start;
  return times;
}

// --- librdmacm

class RdmaClient {
 public:
  RdmaClient(const sockaddr_in& to, std::size_t count) : to_(to), begun_(count) {}

  void begin() {
    begun_[next_] = now_us();
    rdma_cm_id* id = end_.create_id(&begun_[next_]);
    ++next_;
    require(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to_), kTimeoutMs) == 0,
            "rdma_resolve_addr");
  }
  void step(Times& times) {
    const RdmaEnd::Event event = end_.next_event();
    if (end_.goes_on(event)) return;
    if (event.type == RDMA_CM_EVENT_ESTABLISHED) {
      times.each.push_back(now_us() - *static_cast<const double*>(event.id->context));
      require(rdma_disconnect(event.id) == 0, "rdma_disconnect");
      RdmaEnd::destroy(event.id);
    } else if (event.type != RDMA_CM_EVENT_DISCONNECTED &&
               event.type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
      fail(rdma_event_str(event.type));
    }
  }

 private:
  RdmaEnd end_;
  sockaddr_in to_;
  std::vector<double> begun_;
  std::size_t next_ = 0;
};

// --- TCP

int made_fd(int fd, const char* what) {
  require(fd >= 0, what);
  return fd;
}

void watch(int epoll, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  require(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

[[noreturn]] void serve_tcp(const char* address, const char* port) {
  const int listener = made_fd(socket(AF_INET, SOCK_STREAM, 0), "socket");
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in where = address_of(address, port);
  require(bind(listener, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0, "bind");
  require(listen(listener, 1024) == 0, "listen");
  std::printf("listening\n");
  std::fflush(stdout);
  const int epoll = made_fd(epoll_create1(0), "epoll_create1");
  watch(epoll, listener, EPOLLIN);
  for (;;) {
    epoll_event event;
    if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
    if (event.data.fd == listener) {
      watch(epoll, made_fd(accept(listener, nullptr, nullptr), "accept"), EPOLLIN);
    } else {  // the other side has ended it
      close(event.data.fd);
    }
  }
}

class TcpClient {
 public:
  explicit TcpClient(const sockaddr_in& to)
      : to_(to), epoll_(made_fd(epoll_create1(0), "epoll_create1")) {}

  void begin() {
    const double now = now_us();
    const int fd = made_fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
    begun_[fd] = now;
    // Ends without TIME_WAIT, which would use up the machine's ports.
    const linger at_once{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const int result = connect(fd, reinterpret_cast<sockaddr*>(&to_), sizeof to_);
    require(result == 0 || errno == EINPROGRESS, "connect");
    watch(epoll_, fd, EPOLLOUT);
  }
  void step(Times& times) {
    epoll_event event;
    if (epoll_wait(epoll_, &event, 1, -1) != 1) return;
    const int fd = event.data.fd;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    require(error == 0, "connect");
    times.each.push_back(now_us() - begun_.at(fd));
    close(fd);
  }

 private:
  sockaddr_in to_;
  int epoll_;
  std::unordered_map<int, double> begun_;
};

void print(Times times) {
  std::sort(times.each.begin(), times.each.end());
  const std::size_t count = times.each.size();
  std::printf("{\"us\": %.3f, \"p50_us\": %.3f, \"p99_us\": %.3f}\n",
              times.all / static_cast<double>(count), times.each[count / 2],
              times.each[count * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  const auto word = [&](int i) { return std::string_view(i < argc ? argv[i] : ""); };
  const bool is_tcp = word(2) == "tcp";
  if (argc == 5 && word(1) == "server") {
    is_tcp ? serve_tcp(argv[3], argv[4]) : serve_rdma(argv[3], argv[4]);
  }
  if (argc != 7 || word(1) != "client") fail("bad arguments");
  const sockaddr_in to = address_of(argv[3], argv[4]);
  const auto count = static_cast<std::size_t>(std::max(1, std::atoi(argv[5])));
  const auto outstanding = static_cast<std::size_t>(std::max(1, std::atoi(argv[6])));
  print(is_tcp ? measure(TcpClient(to), count, outstanding)
               : measure(RdmaClient(to, count), count, outstanding));
  return 0;
}
