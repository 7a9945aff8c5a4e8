// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/picture/picture.h"

#include "fabric/picture/dot.h"
#include "fabric/picture/preset_subnet_test.h"
#include "fabric/picture/svg.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ib::fabric {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kHostile = "<script>alert(\"1\")</script>'\n\xff]; b0 -- b1 [label=\"x";

// Side by side, without Graphviz.
void place(Picture& picture) {
  std::string plain = "graph 1 10 10\n";
  for (std::size_t i = 0; i < picture.boxes.size(); ++i) {
    plain += fmt::format("node b{} {} {} 1 0.5 \"\" solid box black lightgrey\n", i, 2 * i,
                         picture.boxes[i].level);
  }
  EXPECT_EQ(place_boxes(picture, plain + "stop\n"), Status::Ok);
}

std::string drawn(const ShownSubnet& subnet, SvgUse use = SvgUse::File) {
  Picture picture = make_picture(subnet);
  place(picture);
  return svg_of(picture, "fabric t", use);
}

const Line& line_at(const Picture& picture, const ShownSubnet& subnet, const std::string& upper,
                    std::uint32_t port) {
  const std::uint32_t element = place_of(subnet, upper);
  const auto found =
      std::find_if(picture.lines.begin(), picture.lines.end(), [&](const Line& line) {
        return line.cables == std::vector<TopologyEnd>{{element, port}};
      });
  EXPECT_NE(found, picture.lines.end());
  return found != picture.lines.end() ? *found : picture.lines.front();
}

TEST(Picture, ACableIsALineWithTheNumbersOfItsPorts) {
  const ShownSubnet subnet = shown_preset("fat-tree:hcas=16,ports=8");
  const Picture picture = make_picture(subnet);
  EXPECT_EQ(picture.lines.size(), 32u);
  const Line& line = line_at(picture, subnet, "switch-2-1", 3);
  EXPECT_EQ(line.upper_port, "3");
  EXPECT_EQ(line.lower_port, "6");
  EXPECT_EQ(line.note, "") << "nothing is unusual";
  EXPECT_EQ(line.title, "switch-2-1 port 3 - switch-1-2 port 6: active, 4xEDR, 0 B");
  EXPECT_EQ(picture.summary, "16 HCAs, 8 switches, 32 cables");
  EXPECT_TRUE(picture.lies) << "16 boxes abreast";
  EXPECT_FALSE(make_picture(shown_preset("star:4")).lies);
}

TEST(Picture, ALinkHasTheWorseStateOfItsEnds) {
  ShownSubnet subnet = shown_preset("star:2");
  subnet.elements[1].ports[0].state = LinkState::Init;
  const Picture picture = make_picture(subnet);
  const Line& line = line_at(picture, subnet, "switch-0", 2);
  EXPECT_EQ(line.state, LinkState::Init);
  EXPECT_EQ(line.note, "init");
  EXPECT_EQ(line_class(line), "line init");
  EXPECT_EQ(picture.summary, "2 HCAs, 1 switch, 2 cables, 1 init");
}

TEST(Picture, WhatIsFoldedSaysHowManyAreNotWell) {
  ShownSubnet subnet = shown_preset("fat-tree:levels=2,ports=36");
  set_link(subnet, {place_of(subnet, "node40"), 1}, LinkState::Down);
  subnet.elements[place_of(subnet, "node41")].ports[0].errors = 5;
  subnet.elements[place_of(subnet, "node41")].ports[0].has_errors = true;
  const Picture picture = make_picture(subnet);
  const auto box = std::find_if(picture.boxes.begin(), picture.boxes.end(),
                                [](const Box& one) { return one.has_errors; });
  ASSERT_NE(box, picture.boxes.end());
  EXPECT_EQ(box->name, "18 HCAs");
  EXPECT_EQ(box->texts, (std::vector<std::string>{"node36 .. node53", "ports: 1 down, 17 active"}));
  EXPECT_EQ(box_class(*box), "box down errors");
  const auto line = std::find_if(picture.lines.begin(), picture.lines.end(),
                                 [](const Line& one) { return one.state == LinkState::Down; });
  EXPECT_EQ(line->note, "1 of 18 down, 5 errors");
  EXPECT_EQ(picture.folded, std::vector<std::string>{"648 HCAs share 36 boxes"});
}

TEST(Picture, LinesAreThickerWithMoreData) {
  ShownSubnet subnet = shown_preset("star:3");
  subnet.elements[0].ports[0].sent.data = 4 * kLeastHot;
  subnet.elements[1].ports[0].received.data = kLeastHot;
  Picture picture = make_picture(subnet);
  EXPECT_DOUBLE_EQ(line_at(picture, subnet, "switch-0", 1).load, 1);
  EXPECT_DOUBLE_EQ(line_at(picture, subnet, "switch-0", 2).load, 0.5);
  EXPECT_DOUBLE_EQ(line_at(picture, subnet, "switch-0", 3).load, 0);
  subnet.elements[0].ports[0].sent.data = subnet.elements[1].ports[0].received.data = 100;
  refresh(picture, subnet);
  EXPECT_DOUBLE_EQ(line_at(picture, subnet, "switch-0", 1).load, 0) << "MADs only";
}

TEST(Picture, ARateThatIsNotTheUsualOneIsWritten) {
  ShownSubnet subnet = shown_preset("star:3");
  subnet.elements[0].ports[0].rate = "1xSDR";
  subnet.elements[place_of(subnet, "switch-0")].ports[0].rate = "1xSDR";
  const Picture picture = make_picture(subnet);
  EXPECT_EQ(picture.usual_rate, "4xEDR");
  EXPECT_EQ(line_at(picture, subnet, "switch-0", 1).note, "1xSDR");
}

TEST(Picture, TheRouteIsNumberedInItsDirection) {
  ShownSubnet subnet = shown_preset("star:3");
  const std::uint32_t hub = place_of(subnet, "switch-0");
  subnet.route = {{2, 1}, {hub, 1}};
  subnet.route_ends = {2, 0};
  subnet.route_text = "node2 to node0";
  const Picture picture = make_picture(subnet);
  EXPECT_EQ(line_at(picture, subnet, "switch-0", 3).hop, 1u);
  EXPECT_TRUE(line_at(picture, subnet, "switch-0", 3).is_hop_upwards);
  EXPECT_EQ(line_at(picture, subnet, "switch-0", 1).hop, 2u);
  EXPECT_FALSE(line_at(picture, subnet, "switch-0", 1).is_hop_upwards);
  EXPECT_EQ(line_at(picture, subnet, "switch-0", 2).hop, 0u);
  EXPECT_THAT(drawn(subnet), HasSubstr("node2 to node0"));
}

TEST(Picture, ProgramsStandAtTheirNodes) {
  ShownSubnet subnet = shown_preset("star:3");
  subnet.elements[0].programs = {{"ib_write_bw", 7}, {"ib_write_bw", 8}};
  subnet.elements[1].programs = {{"a_program_with_a_long_name", 9}};
  const Picture picture = make_picture(subnet);
  EXPECT_EQ(picture.boxes[0].texts.back(), "ib_write_bw x2");
  EXPECT_EQ(picture.boxes[1].texts.back(), "a_program_with_a_...");
  EXPECT_EQ(picture.boxes[2].texts.back(), "");
}

TEST(Picture, DownIsSeenWithoutColours) {
  ShownSubnet subnet = shown_preset("star:3");
  set_link(subnet, {0, 1}, LinkState::Down);
  const std::string svg = drawn(subnet);
  EXPECT_THAT(svg, HasSubstr("class=\"line down\""));
  EXPECT_THAT(svg, HasSubstr(".line.down .wire { stroke: #d55e00; stroke-dasharray"));
  EXPECT_THAT(svg, HasSubstr(">down</text></g>"));
  EXPECT_THAT(dot_of(make_picture(subnet)), HasSubstr("style=\"dashed,bold\""));
}

TEST(Picture, HostileNamesAreText) {
  ShownSubnet subnet = shown_preset("star:3");
  subnet.elements[0].name = subnet.elements[0].node = kHostile;
  subnet.elements[place_of(subnet, "switch-0")].name = kHostile;
  subnet.elements[1].programs = {{kHostile, 1}};
  subnet.elements[2].ports[0].rate = kHostile;
  subnet.route_text = kHostile;
  for (const SvgUse use : {SvgUse::File, SvgUse::Page}) {
    const std::string svg = drawn(subnet, use);
    EXPECT_THAT(svg, Not(HasSubstr("<script")));
    EXPECT_THAT(svg, Not(HasSubstr("\xff")));
    EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
  }
  const std::string dot = dot_of(make_picture(subnet));
  EXPECT_THAT(dot, HasSubstr("<script>alert(\\\"1\\\")"));
  EXPECT_THAT(dot, Not(HasSubstr("\xff")));
  EXPECT_THAT(dot_of(make_picture(subnet), DotUse::Places), Not(HasSubstr("script")));
}

TEST(Picture, PlacesAreTakenOfAllBoxesOrNone) {
  Picture picture = make_picture(shown_preset("star:2"));
  EXPECT_EQ(place_boxes(picture, "node b0 1 1\nnode b1 2 1\n"), Status::Malformed);
  EXPECT_EQ(place_boxes(picture, "node b0 1 1\nnode b1 2 x\nnode b2 1 2\n"), Status::Malformed);
  EXPECT_EQ(place_boxes(picture, "node b0 1 1\nnode b1 1e300 1\nnode b2 1 2\n"), Status::Malformed);
  EXPECT_EQ(place_boxes(picture, "node b0 1 1\nnode b1 2 1\nnode b2 1.5 2\nnode b9 1 1\n"),
            Status::Ok);
  EXPECT_LT(picture.boxes[2].y, picture.boxes[0].y) << "Graphviz counts upwards";
}

TEST(Picture, ItIsRefreshedInPlace) {
  ShownSubnet subnet = shown_preset("star:3");
  Picture picture = make_picture(subnet, true);
  place(picture);
  const double x = picture.boxes[2].x;
  const std::size_t texts = picture.boxes[0].texts.size();
  set_link(subnet, {0, 1}, LinkState::Down);
  subnet.elements[0].programs = {{"p", 1}};
  refresh(picture, subnet);
  EXPECT_EQ(line_at(picture, subnet, "switch-0", 1).state, LinkState::Down);
  EXPECT_EQ(picture.boxes[0].texts.size(), texts) << "room was kept for the program";
  EXPECT_EQ(picture.boxes[0].texts.back(), "p");
  EXPECT_EQ(picture.boxes[2].x, x);
}

}  // namespace
}  // namespace ib::fabric
