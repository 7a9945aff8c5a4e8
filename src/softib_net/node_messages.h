// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages between softib-net and the process of a node on a socket pair: a number and a
// text, with a descriptor for some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib_net {

enum class Say : std::uint32_t {
  // Of the process of a node.
  Namespace = 1,  // fd: its network namespace
  Ready,          // programs may start
  Log,            // text: a line
  Report,         // fd: a file with the JSON
  Failed,         // text: why it ends
  // To it.
  Stop,
  WantReport,
};

inline constexpr std::size_t kMostNodeText = 2000;

inline std::vector<std::byte> node_message(Say say, std::string_view text = {}) {
  text = text.substr(0, kMostNodeText);
  std::vector<std::byte> bytes(sizeof say + text.size());
  std::memcpy(bytes.data(), &say, sizeof say);
  if (!text.empty()) std::memcpy(bytes.data() + sizeof say, text.data(), text.size());
  return bytes;
}

struct NodeMessage {
  Say say = Say::Stop;
  std::string text;  // without control characters
};
inline std::optional<NodeMessage> parse_node_message(std::span<const std::byte> bytes) {
  NodeMessage message;
  if (bytes.size() < sizeof message.say) return std::nullopt;
  std::memcpy(&message.say, bytes.data(), sizeof message.say);
  for (const std::byte byte : bytes.subspan(sizeof message.say)) {
    const char c = static_cast<char>(byte);
    message.text += (c >= ' ' && c <= '~') || c == '\n' ? c : '?';
  }
  return message;
}

}  // namespace ib::softib_net
