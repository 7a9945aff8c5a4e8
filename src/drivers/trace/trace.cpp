// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/trace/trace.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace ib::drivers {
namespace {

const char* kind_name(TraceKind kind) {
  switch (kind) {
    case TraceKind::Error: return "error";
    case TraceKind::Refused: return "refused";
    case TraceKind::Change: return "change";
    case TraceKind::Device: return "device";
  }
  return "change";
}

void make_one_line(std::string& line) {
  if (line.size() > Trace::kMaxLine) line.resize(Trace::kMaxLine);
  std::replace_if(
      line.begin(), line.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
}

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// Numbers become '#': which queue pair, which address does not make it another mistake.
std::string likeness(const TraceEntry& entry) {
  std::string key = fmt::format("{} ", entry.pid);
  const std::string& text = entry.text;
  for (std::size_t i = 0; i < text.size();) {
    const bool hex = text.compare(i, 2, "0x") == 0;
    const bool decimal = text[i] >= '0' && text[i] <= '9';
    if (!hex && !decimal) {
      key += text[i++];
      continue;
    }
    key += '#';
    if (hex) i += 2;
    while (i < text.size() && (hex ? is_hex_digit(text[i]) : text[i] >= '0' && text[i] <= '9')) ++i;
  }
  return key;
}

// Of the monotonic clock: a reader that has it makes the same time of day of it whenever it looks.
std::int64_t nanoseconds(Instant at) {
  return at.time_since_epoch().count();
}

}  // namespace

void Trace::add(std::string line, TraceKind kind) {
  TraceEntry entry;
  entry.kind = kind;
  entry.text = std::move(line);
  add(std::move(entry));
}

void Trace::add(TraceEntry entry) {
  make_one_line(entry.text);
  if (clock_) entry.first = entry.last = clock_();
  const bool has_event = !entry.event.empty();
  if (has_event || entry.kind == TraceKind::Error || entry.kind == TraceKind::Refused) {
    const auto [found, is_new] =
        repeated_.try_emplace(has_event ? entry.event : likeness(entry), last_ + 1);
    if (!is_new && found->second >= oldest()) {
      TraceEntry& before = entries_[static_cast<std::size_t>(found->second - oldest())];
      if (likeness(before) != likeness(entry)) return;
      before.count += entry.count;
      before.last = entry.last;
      return;
    }
    found->second = last_ + 1;
  }
  if (sink_) sink_(entry.text);
  entries_.push_back(std::move(entry));
  ++last_;
  if (entries_.size() <= kLines) return;
  entries_.pop_front();
  // Now and then, what is gone is forgotten here as well.
  if (repeated_.size() > 2 * kLines) {
    std::erase_if(repeated_, [this](const auto& line) { return line.second < oldest(); });
  }
}

std::uint64_t Trace::first_after(std::uint64_t number) const {
  return std::max(oldest(), number >= last_ ? last_ + 1 : number + 1);
}

const TraceEntry& Trace::at(std::uint64_t number) const {
  return entries_[static_cast<std::size_t>(number - oldest())];
}

std::string Trace::text_after(std::uint64_t number) const {
  std::string text;
  for (std::uint64_t n = first_after(number); n <= last_; ++n) {
    text += fmt::format("{} {}\n", n, at(n).text);
  }
  return text;
}

std::string Trace::json_after(std::uint64_t number) const {
  std::string text;
  for (std::uint64_t n = first_after(number); n <= last_; ++n) {
    const TraceEntry& entry = at(n);
    nlohmann::ordered_json json = {{"number", n},
                                   {"at_ns", nanoseconds(entry.first)},
                                   {"kind", kind_name(entry.kind)},
                                   {"text", entry.text}};
    if (!entry.node.empty()) json["node"] = entry.node;
    if (!entry.program.empty()) json["program"] = entry.program;
    if (entry.pid != 0) json["pid"] = entry.pid;
    if (!entry.peer.empty()) json["peer"] = entry.peer;
    if (entry.count > 1) {
      json["count"] = entry.count;
      json["last_at_ns"] = nanoseconds(entry.last);
    }
    text += json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  }
  return text;
}

}  // namespace ib::drivers
