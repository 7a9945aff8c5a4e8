// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Trace: the last lines about what went wrong or changed, numbered, for `softib trace` and
// `softib explain`. An error or refusal that a process repeats, but for its numbers, is counted
// with the first of its kind. One event has one line, whoever reports it.
#pragma once

#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace ib::drivers {

enum class TraceKind : std::uint8_t {
  Error,    // of a work request
  Refused,  // a request that was refused
  Change,   // of the fabric
  Device,   // steps of PnP and power
};

struct TraceEntry {
  TraceKind kind = TraceKind::Change;
  std::string text;
  // As far as it is about a program.
  std::string node;
  std::string program;
  std::uint32_t pid = 0;
  std::string peer;
  // Names the event that it is about, if there are several to report that: the first is kept, and
  // counts those that differ by numbers.
  std::string event;

  std::uint64_t count = 1;
  Instant first{};
  Instant last{};
};

class Trace {
 public:
  static constexpr std::size_t kLines = 4096;
  static constexpr std::size_t kMaxLine = 1024;  // longer ones are cut

  explicit Trace(std::function<void(std::string_view)> sink = {},
                 std::function<Instant()> clock = {})
      : sink_(std::move(sink)), clock_(std::move(clock)) {}

  // Control characters (a program's name may have any) become '?': one line stays one line.
  void add(TraceEntry entry);
  void add(std::string line, TraceKind kind = TraceKind::Change);
  // Lines with a greater number: "<number> <text>\n" each. If some are lost, the numbers show it.
  std::string text_after(std::uint64_t number) const;
  // The same, each a JSON object with all that is known (docs/status_json.md).
  std::string json_after(std::uint64_t number) const;
  std::uint64_t last() const { return last_; }

 private:
  std::uint64_t first_after(std::uint64_t number) const;
  const TraceEntry& at(std::uint64_t number) const;
  std::uint64_t oldest() const { return last_ - entries_.size() + 1; }

  std::function<void(std::string_view)> sink_;
  std::function<Instant()> clock_;
  std::deque<TraceEntry> entries_;  // the newest has the number last_
  std::uint64_t last_ = 0;
  std::map<std::string, std::uint64_t> repeated_;  // the text without its numbers -> its line
};

}  // namespace ib::drivers
