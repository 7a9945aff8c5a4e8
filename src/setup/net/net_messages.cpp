// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading and writing requests to softib-net.
#include "setup/net/net_messages.h"

#include "base/buffers.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace ib::softib {
namespace {

// Terminated, and printable: it becomes part of log lines and of names of files.
template <std::size_t N>
bool read_text(const std::array<char, N>& chars, std::string& text) {
  const std::string_view all(chars.data(), N);
  const std::size_t end = all.find('\0');
  if (end == std::string_view::npos) return false;
  text = all.substr(0, end);
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

bool is_sound(const PlanEntry& entry) {
  const std::uint32_t most = verbs::is_ipv4(entry.ip) ? 32 : 128;
  if (entry.bits > most) return false;
  switch (entry.kind) {
    case PlanKind::Address: return verbs::is_host_address(entry.ip);
    case PlanKind::OnLink:
    case PlanKind::Unreachable: return true;
  }
  return false;
}

bool is_mode(IpoibMode mode) {
  return mode == IpoibMode::Datagram || mode == IpoibMode::Connected;
}

bool is_code(NetCode code) {
  switch (code) {
    case NetCode::Join:
    case NetCode::Attach:
    case NetCode::Detach:
    case NetCode::Report: return true;
  }
  return false;
}

}  // namespace

Result<ParsedNetRequest> parse_net_request(std::span<const std::byte> bytes) {
  NetRequest request;
  if (bytes.size() < sizeof request) return Status::Malformed;
  std::memcpy(&request, bytes.data(), sizeof request);
  if (request.version != kNetVersion) return Status::NotSupported;
  ParsedNetRequest parsed;
  parsed.code = request.code;
  const std::size_t rest = bytes.size() - sizeof request;
  if (!is_code(request.code) || !is_mode(request.mode) || request.needs_mode > 1 ||
      !read_text(request.node, parsed.node) || !read_text(request.socket, parsed.socket) ||
      request.entries > kMostPlanEntries || rest != request.entries * sizeof(PlanEntry)) {
    return Status::Malformed;
  }
  if (parsed.node.empty() && request.code != NetCode::Report) return Status::Malformed;
  parsed.mode = request.mode;
  parsed.needs_mode = request.needs_mode != 0;
  parsed.plan.resize(request.entries);
  if (rest != 0) std::memcpy(parsed.plan.data(), bytes.data() + sizeof request, rest);
  if (!std::all_of(parsed.plan.begin(), parsed.plan.end(), is_sound)) return Status::Malformed;
  return parsed;
}

std::vector<std::byte> write_net_request(const ParsedNetRequest& request) {
  NetRequest head;
  head.code = request.code;
  put_text(head.node, request.node);
  put_text(head.socket, request.socket);
  head.mode = request.mode;
  head.needs_mode = request.needs_mode ? 1 : 0;
  const std::size_t count = std::min(request.plan.size(), kMostPlanEntries);
  head.entries = static_cast<std::uint32_t>(count);
  std::vector<std::byte> bytes(sizeof head + count * sizeof(PlanEntry));
  std::memcpy(bytes.data(), &head, sizeof head);
  if (count != 0)
    std::memcpy(bytes.data() + sizeof head, request.plan.data(), count * sizeof(PlanEntry));
  return bytes;
}

}  // namespace ib::softib
