// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/common/ranges.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ib::host_abi::sockets {
namespace {

constexpr unsigned kMappedBits = 96;
constexpr unsigned kAllBits = 128;

bool parse_address(std::string_view text, Address& address, bool& is_ipv4) {
  std::array<char, INET6_ADDRSTRLEN> name{};
  if (text.empty() || text.size() >= name.size()) return false;
  std::copy(text.begin(), text.end(), name.begin());
  in_addr four{};
  is_ipv4 = ::inet_pton(AF_INET, name.data(), &four) == 1;
  if (!is_ipv4) return ::inet_pton(AF_INET6, name.data(), address.data()) == 1;
  address = {};
  address[10] = address[11] = 0xff;
  std::memcpy(&address[12], &four, sizeof four);
  return true;
}

}  // namespace

bool Ranges::parse_one(std::string_view text) {
  if (count_ == kMost) return false;
  const std::size_t slash = text.find('/');
  Range range;
  bool is_ipv4 = false;
  if (!parse_address(text.substr(0, slash), range.address, is_ipv4)) return false;
  range.bits = kAllBits;
  if (slash != std::string_view::npos) {
    const std::string_view bits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), range.bits);
    if (error != std::errc{} || end != bits.data() + bits.size()) return false;
    if (range.bits > (is_ipv4 ? kAllBits - kMappedBits : kAllBits)) return false;
    if (is_ipv4) range.bits += kMappedBits;
  }
  ranges_[count_++] = range;
  return true;
}

bool Ranges::parse(std::string_view text) {
  count_ = 0;
  everything_ = text == "fabric";
  if (everything_) return true;
  while (true) {
    const std::size_t comma = text.find(',');
    if (!parse_one(text.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

bool Ranges::contains(const Address& address) const {
  if (everything_) return true;
  for (std::size_t i = 0; i < count_; ++i) {
    const Range& range = ranges_[i];
    const std::size_t whole = range.bits / 8;
    if (!std::equal(address.begin(), address.begin() + whole, range.address.begin())) continue;
    const unsigned rest = range.bits % 8;
    if (rest == 0) return true;
    const unsigned mask = 0xffu << (8 - rest) & 0xffu;
    if ((address[whole] & mask) == (range.address[whole] & mask)) return true;
  }
  return false;
}

Endpoint endpoint_of(const sockaddr* address, std::size_t length) {
  Endpoint result;
  if (address == nullptr || length < sizeof(sa_family_t)) return result;
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof four);
    result.address[10] = result.address[11] = 0xff;
    std::memcpy(&result.address[12], &four.sin_addr, sizeof four.sin_addr);
    result.port = ntohs(four.sin_port);
    result.valid = true;
  } else if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 six{};
    std::memcpy(&six, address, sizeof six);
    std::memcpy(result.address.data(), &six.sin6_addr, result.address.size());
    result.port = ntohs(six.sin6_port);
    result.valid = true;
  }
  return result;
}

bool is_mapped(const Address& address) {
  return std::all_of(address.begin(), address.begin() + 10, [](auto b) { return b == 0; }) &&
         address[10] == 0xff && address[11] == 0xff;
}

bool is_wildcard(const Address& address) {
  const std::size_t from = is_mapped(address) ? 12 : 0;
  return std::all_of(address.begin() + from, address.end(), [](auto b) { return b == 0; });
}

}  // namespace ib::host_abi::sockets
