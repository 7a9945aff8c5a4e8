// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The grammar of the lines of elements and ports.
#include "fabric/topology/link_names.h"
#include "fabric/topology/net_lines_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ib::fabric {
namespace {

struct Keyword {
  std::string_view word;
  ElementKind kind;
  bool is_router;
};
constexpr std::array<Keyword, 4> kKeywords{{{"Switch", ElementKind::Switch, false},
                                            {"Hca", ElementKind::ChannelAdapter, false},
                                            {"Ca", ElementKind::ChannelAdapter, false},
                                            {"Rt", ElementKind::ChannelAdapter, true}}};

// Of ports that no manager has given a LID, some adapters say that it is 0xffff.
std::uint16_t unicast(std::uint32_t lid) {
  return lid <= kLastUnicastLid ? static_cast<std::uint16_t>(lid) : std::uint16_t{0};
}

// Takes `key N` off the line if it is there.
void take_value(TextLine& line, std::string_view key, std::uint32_t& value) {
  line.skip_blanks();
  if (!line.take(key)) return;
  line.skip_blanks();
  (void)line.take_decimal(value);
}

// `"text"`, or text without quotation marks up to one of the words that may follow.
Status take_description(TextLine& line, std::string& description, std::string& reason) {
  line.skip_blanks();
  const std::size_t column = line.column();
  std::string_view text;
  if (!line.take_quoted_to_last(text)) {
    text = line.rest();
    for (const std::string_view end : {" enhanced port ", " base port ", " lid ", " lmc "}) {
      text = text.substr(0, text.find(end));
    }
    while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
    (void)line.take(text);
  }
  const bool is_clean = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
  });
  if (text.size() > kMaxDescription || !is_clean) {
    return line.expected_at(
        column, fmt::format("a description of at most {} letters", kMaxDescription), reason);
  }
  description = text;
  return Status::Ok;
}

// `4xSDR`; question marks stand for what ibnetdiscover has no name for.
void read_link(std::string_view word, PortLine& result) {
  const std::size_t end = word.find('x');
  if (word.starts_with("??")) {
    result.speed = speed_code(word.substr(2));
  } else if (end != std::string_view::npos) {
    result.width = width_code(word.substr(0, end + 1));
    result.speed = speed_code(word.substr(end + 1));
  }
}

// After `#`: `lid 4 lmc 0 "description of the peer" lid 6 4xSDR`, every part of which may be
// missing.
void read_port_comment(TextLine& line, PortLine& result) {
  std::uint32_t lid = 0;
  std::uint32_t lmc = 0;
  take_value(line, "lid ", lid);
  take_value(line, "lmc ", lmc);
  line.skip_blanks();
  std::string_view description;
  if (line.take_quoted_to_last(description)) {
    std::uint32_t peer_lid = 0;
    take_value(line, "lid ", peer_lid);
  }
  result.lid = unicast(lid);
  result.lmc = lmc <= 7 ? static_cast<std::uint8_t>(lmc) : std::uint8_t{0};
  line.skip_blanks();
  std::string_view word;
  if (line.take_word(word)) read_link(word, result);
}

// `w=2 s=1`: masks of what the port can be [IBA1 14.2.5.6].
Status take_options(TextLine& line, PortLine& result, std::string& reason) {
  for (line.skip_blanks(); !line.is_over() && !line.begins_with("#"); line.skip_blanks()) {
    const std::size_t column = line.column();
    const bool is_width = line.take("w=");
    std::uint64_t mask = 0;
    if (!is_width && !line.take("s=")) {
      return line.expected("w=WIDTH, s=SPEED or a comment that begins with #", reason);
    }
    const unsigned most = is_width ? 15 : 7;
    if (!line.take_integer(mask) || mask == 0 || mask > most) {
      return line.expected_at(column + 2, fmt::format("a mask from 1 to {}", most), reason);
    }
    (is_width ? result.width_mask : result.speed_mask) = static_cast<std::uint8_t>(mask);
  }
  return Status::Ok;
}

// `[12]`, and `[ext 3]` after it, which says what is printed at the connector.
bool take_port_number(TextLine& line, std::uint32_t& port) {
  TextLine ahead = line;
  if (!ahead.take("[") || !ahead.take_decimal(port) || !ahead.take("]")) return false;
  std::uint32_t printed = 0;
  TextLine after = ahead;
  if (after.take("[ext ") && after.take_decimal(printed) && after.take("]")) ahead = after;
  line = ahead;
  return true;
}

}  // namespace

bool is_element_line(const TextLine& line) {
  return std::any_of(kKeywords.begin(), kKeywords.end(), [&](const Keyword& keyword) {
    const std::string_view rest = line.rest();
    if (!rest.starts_with(keyword.word)) return false;
    const std::string_view after = rest.substr(keyword.word.size());
    return after.empty() || after[0] == ' ' || after[0] == '\t';
  });
}

Status parse_element_line(TextLine& line, ElementLine& result, std::string& reason) {
  const auto* keyword = std::find_if(kKeywords.begin(), kKeywords.end(),
                                     [&](const Keyword& it) { return line.take(it.word); });
  if (keyword == kKeywords.end()) return line.expected("Switch, Ca, Hca or Rt", reason);
  TopologyElement& element = result.element;
  element.kind = keyword->kind;
  element.is_router = keyword->is_router;
  line.skip_blanks();
  const std::uint32_t most = element.is_switch() ? kMaxSwitchPorts : kMaxAdapterPorts;
  const std::size_t column = line.column();
  if (!line.take_decimal(element.ports) || element.ports == 0 || element.ports > most) {
    return line.expected_at(column, fmt::format("a number of ports from 1 to {}", most), reason);
  }
  line.skip_blanks();
  result.name_column = line.column();
  if (!line.take_quoted(result.name) || result.name.empty()) {
    return line.expected_at(result.name_column, "a name in quotation marks", reason);
  }
  line.skip_blanks();
  if (line.is_over()) return Status::Ok;
  if (!line.take("#")) return line.expected("a comment that begins with #", reason);
  IB_CHECK(take_description(line, element.description, reason));
  result.has_description = true;
  line.skip_blanks();
  element.enhanced_port0 = element.is_switch() && line.begins_with("enhanced port 0");
  if (!line.take("enhanced port 0")) (void)line.take("base port 0");
  std::uint32_t lid = 0;
  std::uint32_t lmc = 0;
  take_value(line, "lid ", lid);
  take_value(line, "lmc ", lmc);
  if (element.is_switch() && unicast(lid) != 0) element.lids = {unicast(lid)};
  if (element.is_switch() && lmc <= 7) element.lmc = static_cast<std::uint8_t>(lmc);
  return Status::Ok;
}

Status parse_port_line(TextLine& line, std::uint32_t ports, PortLine& result, std::string& reason) {
  const std::size_t column = line.column();
  if (!take_port_number(line, result.port)) {
    return line.expected("the number of a port, as in [1]", reason);
  }
  if (result.port == 0 || result.port > ports) {
    return line.expected_at(column + 1, fmt::format("a port from 1 to {}", ports), reason);
  }
  if (line.take("(") && (!line.take_hex(result.guid) || result.guid == 0 || !line.take(")"))) {
    return line.expected("a GUID in hexadecimal digits and )", reason);
  }
  line.skip_blanks();
  result.peer_column = line.column();
  if (!line.take_quoted(result.peer) || result.peer.empty()) {
    return line.expected_at(result.peer_column, "the name of the other end in quotation marks",
                            reason);
  }
  const std::size_t peer_port_column = line.column();
  if (line.begins_with("[") &&
      (!take_port_number(line, result.peer_port) || result.peer_port == 0)) {
    return line.expected_at(peer_port_column, "the number of a port, as in [1]", reason);
  }
  line.skip_blanks();
  std::uint64_t peer_guid = 0;
  if (line.take("(") && (!line.take_hex(peer_guid) || !line.take(")"))) {
    return line.expected("a GUID in hexadecimal digits and )", reason);
  }
  IB_CHECK(take_options(line, result, reason));
  if (line.take("#")) read_port_comment(line, result);
  return Status::Ok;
}

}  // namespace ib::fabric
