// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the interfaces of a node carry IP: as datagrams [RFC 4391], or on connections [RFC 4755].
// Command line, configuration file and listings have the same words for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ib::softib {

enum class IpoibMode : std::uint32_t { Datagram = 1, Connected = 2 };

constexpr const char* ipoib_mode_name(IpoibMode mode) {
  return mode == IpoibMode::Connected ? "connected" : "datagram";
}

constexpr std::optional<IpoibMode> ipoib_mode_of(std::string_view name) {
  for (const IpoibMode mode : {IpoibMode::Datagram, IpoibMode::Connected}) {
    if (name == ipoib_mode_name(mode)) return mode;
  }
  return std::nullopt;
}

}  // namespace ib::softib
