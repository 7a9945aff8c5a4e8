// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/tcp_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace ib::os {

using platform::TcpName;

namespace {

constexpr std::string_view kEstablished = "01";
constexpr std::size_t kDigitsOfWord = 8;
constexpr std::size_t kIpv4InGid = 12;

// The fields of a line up to the inode.
enum Field : std::size_t { kLocal = 1, kRemote = 2, kState = 3, kInode = 9, kFields = 10 };

std::array<std::string_view, kFields> fields_of(std::string_view line) {
  std::array<std::string_view, kFields> fields;
  for (std::string_view& field : fields) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    field = line.substr(0, line.find(' '));
    line.remove_prefix(field.size());
  }
  return fields;
}

template <class T>
bool parse_hex(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

// "0200007F:1F90": words of the address as they lie in memory, then the port.
std::optional<TcpName> parse_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  TcpName name;
  if (colon == std::string_view::npos || !parse_hex(text.substr(colon + 1), name.port)) return {};
  const std::size_t words = colon / kDigitsOfWord;
  if (colon % kDigitsOfWord != 0 || (words != 1 && words != 4)) return {};
  const std::size_t begin = words == 1 ? kIpv4InGid : 0;
  if (words == 1) name.address[10] = name.address[11] = 0xff;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint32_t word = 0;
    if (!parse_hex(text.substr(i * kDigitsOfWord, kDigitsOfWord), word)) return {};
    std::memcpy(name.address.data() + begin + i * sizeof word, &word, sizeof word);
  }
  return name;
}

// The scope is not in the table.
bool is_same(const TcpName& one, const TcpName& other) {
  return one.port == other.port && one.address == other.address;
}

}  // namespace

std::optional<TcpLine> parse_tcp_line(std::string_view line) {
  const auto fields = fields_of(line);
  if (fields[kState] != kEstablished || fields[kInode].empty()) return {};
  const auto local = parse_name(fields[kLocal]);
  const auto remote = parse_name(fields[kRemote]);
  if (!local || !remote) return {};
  return TcpLine{*local, *remote, fields[kInode] != "0"};
}

void find_accepted(std::istream& table, std::span<const platform::TcpPair> connections,
                   std::vector<bool>& accepted) {
  for (std::string text; std::getline(table, text);) {
    const auto line = parse_tcp_line(text);
    if (!line || !line->has_descriptor) continue;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      if (is_same(line->local, connections[i].server) &&
          is_same(line->remote, connections[i].client)) {
        accepted[i] = true;
      }
    }
  }
}

}  // namespace ib::os
