// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/picture/live_picture.h"

#include "fabric/picture/preset_subnet_test.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace ib::softib {
namespace {

struct Bench {
  fabric::ShownSubnet subnet = fabric::shown_preset("star:3");
  int layouts = 0;
  bool fails = false;
  LivePicture::Instant now{std::chrono::seconds(1)};
  LivePicture live{"t", [this] { return read(); }, [this](fabric::Picture&) { ++layouts; },
                   [this] { return now; }};

  fabric::ShownSubnet read() const {
    if (fails) throw std::runtime_error("gone");
    return subnet;
  }
  Json changes(std::uint64_t since) const { return Json::parse(live.changes_since(since)); }
};

TEST(LivePicture, APageGetsWhatHasChangedSinceItsVersion) {
  Bench bench;
  bench.live.refresh();
  EXPECT_EQ(bench.changes(0)["elements"].size(), 4u);
  const std::uint64_t version = bench.changes(0)["version"];
  EXPECT_TRUE(bench.changes(version)["elements"].empty());
  set_link(bench.subnet, {1, 1}, fabric::LinkState::Down);
  bench.live.refresh();
  const Json news = bench.changes(version);
  EXPECT_EQ(news["elements"].size(), 2u) << "both ends: " << news;
  ASSERT_EQ(news["lines"].size(), 1u);
  EXPECT_EQ(news["lines"].begin().value()["c"], "line down");
  EXPECT_EQ(news["summary"], "3 HCAs, 1 switch, 3 cables, 1 down");
  EXPECT_TRUE(bench.changes(news["version"])["lines"].empty());
}

TEST(LivePicture, TheLayoutIsMadeOnceForTheSameCables) {
  Bench bench;
  bench.live.refresh();
  set_link(bench.subnet, {1, 1}, fabric::LinkState::Down);
  bench.subnet.elements[0].programs = {{"p", 1}};
  bench.live.refresh();
  EXPECT_EQ(bench.layouts, 1);
  EXPECT_EQ(bench.changes(0)["layout"], 1);
  bench.subnet = fabric::shown_preset("star:4");
  bench.live.refresh();
  EXPECT_EQ(bench.layouts, 2);
  EXPECT_EQ(bench.changes(0)["layout"], 2);
  EXPECT_EQ(bench.changes(0)["boxes"].size(), 5u);
}

TEST(LivePicture, ItWarnsOfErrorsThatGoOn) {
  Bench bench;
  fabric::ShownPort& port = bench.subnet.elements[1].ports[0];
  const auto classes = [&bench](std::uint64_t errors, std::chrono::seconds later) {
    bench.subnet.elements[1].ports[0].errors = errors;
    bench.now += later;
    bench.live.refresh();
    const Json all = bench.changes(0);
    return all["lines"]["1"]["c"].get<std::string>() + ", " +
           all["boxes"]["1"]["c"].get<std::string>();
  };
  port.has_errors = true;
  EXPECT_EQ(classes(5, std::chrono::seconds(0)), "line active, box active") << "old ones";
  EXPECT_EQ(bench.changes(0)["lines"]["1"]["n"], "5 errors");
  EXPECT_EQ(classes(5, kErrorsAreNew), "line active, box active");
  EXPECT_EQ(classes(6, std::chrono::seconds(1)), "line active errors, box active errors");
  EXPECT_EQ(classes(6, kErrorsAreNew / 2), "line active errors, box active errors");
  EXPECT_EQ(classes(6, kErrorsAreNew / 2), "line active, box active") << "none since";
  EXPECT_EQ(classes(0, std::chrono::seconds(1)), "line active, box active") << "cleared";
  EXPECT_EQ(classes(2, std::chrono::seconds(1)), "line active errors, box active errors");
}

TEST(LivePicture, WhenAReadFailsThePictureStays) {
  Bench bench;
  bench.live.refresh();
  const std::string before = bench.live.changes_since(0);
  bench.fails = true;
  EXPECT_THROW(bench.live.refresh(), std::runtime_error);
  EXPECT_EQ(bench.live.changes_since(0), before);
}

}  // namespace
}  // namespace ib::softib
