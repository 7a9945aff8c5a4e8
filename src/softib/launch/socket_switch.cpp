// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/socket_switch.h"

#include "setup/cli_error.h"
#include "softib/launch/program.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace ib::softib {
namespace {

constexpr std::size_t kMostRanges = 64;

bool is_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string address(text.substr(0, slash));
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const bool is_ipv4 = ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1;
  if (!is_ipv4 && ::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return false;
  if (slash == std::string_view::npos) return true;
  const std::string_view number = text.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bits);
  return error == std::errc{} && end == number.data() + number.size() &&
         bits <= (is_ipv4 ? 32u : 128u);
}

void check_ranges(std::string_view ranges) {
  std::size_t count = 0;
  while (true) {
    const std::size_t comma = ranges.find(',');
    const std::string_view range = ranges.substr(0, comma);
    if (!is_range(range)) {
      throw CliError(Exit::Usage,
                     fmt::format("run: --sockets: \"{}\" is not an address or a range of addresses "
                                 "(10.1.0.0/16, 127.77.0.1, fd00::/8)",
                                 range));
    }
    if (++count > kMostRanges) {
      throw CliError(Exit::Usage, fmt::format("run: --sockets: more than {} ranges", kMostRanges));
    }
    if (comma == std::string_view::npos) return;
    ranges.remove_prefix(comma + 1);
  }
}

std::string first_of(std::string_view name) {
  const std::string own = loader_library_folder();  // of the machine, which may have others' too
  for (const std::string& dir : {"/usr/" + own, "/" + own, std::string("/usr/lib64"),
                                 std::string("/usr/lib"), std::string("/usr/local/lib")}) {
    std::string path = fmt::format("{}/{}", dir, name);
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

}  // namespace

std::string librdmacm_path() {
  return first_of("librdmacm.so.1");
}

std::string librspreload_path() {
  return first_of("rsocket/librspreload.so");
}

SocketSwitch parse_socket_switch(const std::string& text) {
  constexpr std::string_view kRsockets = "rsockets";
  if (text == kRsockets) return {true, kAllOfFabric};
  if (text.starts_with(kRsockets) && text[kRsockets.size()] == ',') {
    return {true, text.substr(kRsockets.size() + 1)};
  }
  return {false, text};
}

void require_socket_switch(const Installation& installation, const std::string& text) {
  const SocketSwitch wanted = parse_socket_switch(text);
  if (wanted.ranges != kAllOfFabric) check_ranges(wanted.ranges);
  const std::string library =
      installation.lib_dir + "/" + (wanted.over_rsockets ? kRsocketsName : kStreamsName);
  if (::access(library.c_str(), R_OK) != 0) {
    throw CliError(Exit::Installation,
                   fmt::format("cannot read the library {}: {}\n  Build or install softib again.",
                               library, std::strerror(errno)));
  }
  if (wanted.over_rsockets && librdmacm_path().empty()) {
    throw CliError(
        Exit::Installation,
        "--sockets=rsockets needs librdmacm.so.1\n  Install it: apt-get install librdmacm1");
  }
}

std::string tcp_only_reason(const std::string& file) {
  std::string reason = blind_reason(file);
  if (reason.find("Go program") != std::string::npos) {
    reason = "it is a Go program, which makes its system calls without libc";
  }
  return reason;
}

}  // namespace ib::softib
