// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes over a TCP socket, for the socket switch beside the kernel's TCP.
//   bench_socket_stream server ADDRESS PORT            until it is killed, a connection at a time
//   bench_socket_stream client ADDRESS PORT SIZE BYTES
// The client writes BYTES with blocking writes of SIZE bytes, a word of each cache line new in
// each, and the server reads that word of each line. Prints `mb`: MB/s (10^6 bytes) until the
// client has the server's word that it has read all.
#include "tcp_end.h"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace {

using namespace ib::bench;

constexpr std::size_t kLine = 64;
constexpr std::size_t kMostRead = std::size_t{1} << 20;

// Returns the sum of what it has seen, so that it has to be read.
std::uint64_t read_connection(int fd, std::vector<char>& buffer) {
  std::uint64_t left = 0;
  require(::recv(fd, &left, sizeof left, MSG_WAITALL) == sizeof left, "recv");
  std::uint64_t sum = 0;
  while (left > 0) {
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    require(got > 0, "recv");
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); i += kLine) {
      sum += static_cast<unsigned char>(buffer[i]);
    }
    left -= static_cast<std::uint64_t>(got);
  }
  require(::send(fd, &sum, sizeof sum, 0) == sizeof sum, "send");
  return sum;
}

void serve(const sockaddr_in& address) {
  const int listener = make_socket();
  require(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(listener, 8) == 0,
          "listen");
  std::printf("listening\n");
  std::fflush(stdout);
  std::vector<char> buffer(kMostRead);
  while (true) {
    const int fd = ::accept(listener, nullptr, nullptr);
    require(fd >= 0, "accept");
    read_connection(fd, buffer);
    ::close(fd);
  }
}

void write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(fd, data, size, 0);
    require(sent > 0, "send");
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

void run_client(const sockaddr_in& address, std::size_t size, std::uint64_t bytes) {
  const int fd = make_socket();
  require(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
          "connect");
  std::vector<char> data(size);
  write_all(fd, reinterpret_cast<const char*>(&bytes), sizeof bytes);
  const double start = now_us();
  std::uint64_t sum = 0;
  for (std::uint64_t left = bytes; left > 0;) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, size));
    for (std::size_t i = 0; i < part; i += kLine) data[i] = static_cast<char>(left + i);
    write_all(fd, data.data(), part);
    left -= part;
  }
  require(::recv(fd, &sum, sizeof sum, MSG_WAITALL) == sizeof sum, "recv");
  std::printf("{\"mb\": %.3f}\n", static_cast<double>(bytes) / (now_us() - start));
}

}  // namespace

int main(int count, char** words) {
  const std::string_view mode = count > 1 ? words[1] : "";
  if (mode == "server" && count == 4) {
    serve(address_of(words[2], words[3]));
  } else if (mode == "client" && count == 6) {
    run_client(address_of(words[2], words[3]), std::strtoul(words[4], nullptr, 10),
               std::strtoull(words[5], nullptr, 10));
  } else {
    std::fprintf(stderr, "server ADDRESS PORT | client ADDRESS PORT SIZE BYTES\n");
    return 2;
  }
}
