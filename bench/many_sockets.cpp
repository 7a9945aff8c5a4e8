// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Many TCP connections between two processes, for the socket switch beside the kernel's TCP.
//   bench_many_sockets server ADDRESS PORT                until it is killed
//   bench_many_sockets client ADDRESS PORT COUNT ROUNDS
// The client prints a line of JSON for each phase and then waits for a line on stdin, so that
// memory can be measured; a byte goes there and back over each connection:
//   none       no connection
//   connected  COUNT connections are established: us, the time of all divided by COUNT
//   gone       they are closed: us
//   churned    ROUNDS times one was made and closed: us of each
#include "tcp_end.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ib::bench;

void add(int set, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  require(::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

void answer(int fd) {
  char byte = 0;
  if (::recv(fd, &byte, 1, 0) == 1) {
    require(::send(fd, &byte, 1, 0) == 1, "send");
  } else {
    ::close(fd);
  }
}

void serve(const sockaddr_in& address) {
  const int listener = make_socket();
  require(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(listener, 512) == 0,
          "listen");
  const int set = ::epoll_create1(0);
  add(set, listener);
  std::printf("listening\n");
  std::fflush(stdout);
  std::array<epoll_event, 64> events;
  while (true) {
    const int count = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd != listener) {
        answer(fd);
        continue;
      }
      const int accepted = ::accept(listener, nullptr, nullptr);
      require(accepted >= 0, "accept");
      add(set, accepted);
    }
  }
}

int connect_to(const sockaddr_in& to) {
  const int fd = make_socket();
  require(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0, "connect");
  char byte = 'x';
  require(::send(fd, &byte, 1, 0) == 1 && ::recv(fd, &byte, 1, 0) == 1, "a byte there and back");
  return fd;
}

void tell(const char* name, double us) {
  phase(name, ", \"us\": " + std::to_string(us));
}

void run_client(const sockaddr_in& to, std::size_t count, std::size_t rounds) {
  const auto all = static_cast<double>(std::max<std::size_t>(count, 1));
  tell("none", 0);
  double start = now_us();
  std::vector<int> sockets;
  for (std::size_t i = 0; i < count; ++i) sockets.push_back(connect_to(to));
  tell("connected", (now_us() - start) / all);
  start = now_us();
  for (const int fd : sockets) ::close(fd);
  tell("gone", (now_us() - start) / all);
  start = now_us();
  for (std::size_t i = 0; i < rounds; ++i) ::close(connect_to(to));
  tell("churned", (now_us() - start) / static_cast<double>(std::max<std::size_t>(rounds, 1)));
}

}  // namespace

int main(int count, char** words) {
  const std::string_view mode = count > 1 ? words[1] : "";
  if (mode == "server" && count == 4) {
    serve(address_of(words[2], words[3]));
  } else if (mode == "client" && count == 6) {
    run_client(address_of(words[2], words[3]), std::strtoul(words[4], nullptr, 10),
               std::strtoul(words[5], nullptr, 10));
  } else {
    std::fprintf(stderr, "server ADDRESS PORT | client ADDRESS PORT COUNT ROUNDS\n");
    return 2;
  }
}
