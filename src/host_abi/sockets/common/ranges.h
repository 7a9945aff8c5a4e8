// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The addresses whose connections go over RDMA: SOFTIB_SOCKETS is a list ADDRESS[/BITS],... , or
// "fabric" for every address that the fabric has. Pure: no allocation, no calls of the system's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

struct sockaddr;

namespace ib::host_abi::sockets {

using Address = std::array<std::uint8_t, 16>;  // IPv4: mapped, ::ffff:0:0/96

class Ranges {
 public:
  static constexpr std::size_t kMost = 64;

  // Returns false if `text` is not such a list, or has more than kMost entries.
  bool parse(std::string_view text);
  bool contains(const Address& address) const;
  bool everything() const { return everything_; }

 private:
  struct Range {
    Address address{};
    unsigned bits = 0;
  };

  bool parse_one(std::string_view text);

  std::array<Range, kMost> ranges_{};
  std::size_t count_ = 0;
  bool everything_ = false;
};

struct Endpoint {
  Address address{};
  std::uint16_t port = 0;
  bool valid = false;
};
// Of an AF_INET or AF_INET6 address of `length` bytes.
Endpoint endpoint_of(const sockaddr* address, std::size_t length);
bool is_wildcard(const Address& address);
bool is_mapped(const Address& address);

}  // namespace ib::host_abi::sockets
