// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/trace/trace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ib::drivers {
namespace {

struct World {
  Instant now{};
  std::vector<std::string> log;
  Trace trace{[this](std::string_view line) { log.emplace_back(line); }, [this] { return now; }};

  void error(const char* text, std::uint32_t pid = 7) {
    TraceEntry entry;
    entry.kind = TraceKind::Error;
    entry.text = text;
    entry.pid = pid;
    trace.add(std::move(entry));
  }
};

TEST(Trace, CountsWhatAProcessRepeatsButForItsNumbers) {
  World w;
  w.error("QP 0x11: lkey 0x1f names nothing");
  w.now += std::chrono::seconds(2);
  w.error("QP 0x12: lkey 0xabc names nothing");
  w.error("QP 0x12: lkey 0xabc names nothing", 8);
  w.error("QP 0x12: rkey 0xabc names nothing");
  w.now += std::chrono::seconds(1);
  EXPECT_EQ(w.trace.last(), 3u);
  EXPECT_EQ(w.log.size(), 3u);
  const auto first =
      nlohmann::json::parse(w.trace.json_after(0).substr(0, w.trace.json_after(0).find('\n')));
  EXPECT_EQ(first["count"], 2);
  EXPECT_EQ(first["at_ns"], 0);
  EXPECT_EQ(first["last_at_ns"], 2'000'000'000);
  const std::string before = w.trace.json_after(0);
  w.now += std::chrono::seconds(1);
  EXPECT_EQ(w.trace.json_after(0), before) << "one event has one time";
  EXPECT_EQ(first["text"], "QP 0x11: lkey 0x1f names nothing");
}

TEST(Trace, AReportOfManyCountsAsMany) {
  World w;
  for (const std::uint64_t times : {1u, 8u}) {
    TraceEntry entry;
    entry.kind = TraceKind::Error;
    entry.text = "dropped";
    entry.count = times;
    w.trace.add(std::move(entry));
  }
  EXPECT_EQ(nlohmann::json::parse(w.trace.json_after(0))["count"], 9);
}

TEST(Trace, ChangesAreNeverRepeats) {
  World w;
  w.trace.add("port 1 is down");
  w.trace.add("port 1 is up");
  w.trace.add("port 1 is down");
  EXPECT_EQ(w.trace.last(), 3u);
}

TEST(Trace, LinesOfOneEventAreOneLine) {
  World w;
  const auto add = [&w](const char* text, const char* event) {
    TraceEntry entry;
    entry.text = text;
    entry.event = event;
    w.trace.add(std::move(entry));
  };
  add("QP 0x11 went to ERROR", "7 has lost 8");
  add("QP 0x12 went to ERROR", "7 has lost 8");
  add("QP 0x12: RDMA_WRITE failed", "7 has lost 8");
  add("QP 0x11 went to ERROR", "7 has lost 9");
  EXPECT_EQ(w.trace.text_after(0), "1 QP 0x11 went to ERROR\n2 QP 0x11 went to ERROR\n");
  const std::string json = w.trace.json_after(0);
  EXPECT_EQ(nlohmann::json::parse(json.substr(0, json.find('\n')))["count"], 2)
      << "of its own kind";
}

TEST(Trace, ARepeatOfALineThatIsGoneIsALineAgain) {
  World w;
  w.error("once");
  for (std::size_t i = 0; i < Trace::kLines; ++i) w.trace.add("other");
  EXPECT_EQ(w.trace.json_after(0).find("once"), std::string::npos);
  w.error("once");
  EXPECT_NE(w.trace.json_after(0).find("once"), std::string::npos);
  EXPECT_EQ(w.trace.text_after(w.trace.last() - 1), std::to_string(w.trace.last()) + " once\n");
}

TEST(Trace, ControlCharactersDoNotMakeLines) {
  World w;
  w.error("a\nb\x7f");
  EXPECT_EQ(w.trace.text_after(0), "1 a?b?\n");
}

}  // namespace
}  // namespace ib::drivers
