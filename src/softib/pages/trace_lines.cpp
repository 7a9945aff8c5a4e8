// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/trace_lines.h"

#include "softib/pages/fabric_state.h"
#include "softib/terminal/color.h"
#include "softib/terminal/columns.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace ib::softib {
namespace {

using Clock = std::chrono::system_clock;

// "2026-01-31T12:34:56.789+0100"
std::string time_text(Clock::time_point at) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch());
  const std::tm local = fmt::localtime(Clock::to_time_t(at));
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}{:%z}", local, ms.count() % 1000, local);
}

std::uint64_t number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::string time_of_day(const Json& object, const char* key) {
  const std::string text = object.value(key, "");
  return text.size() < 23 ? text : text.substr(11, 12);
}

void put_time(Json& object, const char* at, const char* time, Clock::time_point start) {
  if (!object.contains(at)) return;
  const std::chrono::nanoseconds since(number_in(object, at));
  object[time] = time_text(start + std::chrono::duration_cast<Clock::duration>(since));
  object.erase(at);
}

// softibd's times are of the monotonic clock, which both have.
Clock::time_point start_of_monotonic_clock() {
  timespec monotonic{};
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  const auto since =
      std::chrono::seconds(monotonic.tv_sec) + std::chrono::nanoseconds(monotonic.tv_nsec);
  return Clock::now() - std::chrono::duration_cast<Clock::duration>(since);
}

}  // namespace

std::vector<TraceLine> parse_trace(std::string_view text, Clock::time_point start) {
  std::vector<TraceLine> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Json fields = Json::parse(text.substr(0, end), nullptr, false);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!fields.is_object() || !fields.contains("text") || !fields["text"].is_string()) continue;
    TraceLine line;
    line.number = number_in(fields, "number");
    line.text = fields["text"].get<std::string>();
    line.is_step = fields.value("kind", "") == "device";
    if (line.number == 0) continue;
    put_time(fields, "at_ns", "time", start);
    put_time(fields, "last_at_ns", "last_time", start);
    line.fields = std::move(fields);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string shown(const TraceLine& line, std::size_t width) {
  const std::string kind = line.fields.value("kind", "");
  std::string time = time_of_day(line.fields, "time");
  const std::size_t column = time.size() + 2;
  if (kind == "error" || kind == "refused") time = painted(Paint::Bad, time);
  std::string text = line.text;
  const std::uint64_t count = number_in(line.fields, "count");
  if (count > 1) {
    text += fmt::format(" ({} times, last at {})", count, time_of_day(line.fields, "last_time"));
  }
  if (width > column) {
    text = wrap_words(std::string(column, ' ') + text, width, column).substr(column);
  }
  return fmt::format("{}  {}", time, text);
}

std::vector<TraceLine> read_trace(ControlClient& client, std::uint64_t after) {
  verbs::control::TraceReadIn in;
  in.after = after;
  return parse_trace(client.read_text(verbs::control::Code::TraceRead, bytes_of(in)),
                     start_of_monotonic_clock());
}

}  // namespace ib::softib
