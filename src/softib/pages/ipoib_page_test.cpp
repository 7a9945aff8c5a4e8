// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/ipoib_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace ib::softib {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json sample() {
  return Json::parse(R"json([
    {"node":"node0","attached":false,"mode":"connected","driver_pid":812,"ready":true,"programs":1,
     "driver":{"interfaces":[
      {"name":"ib0","hca":"softib0","port":1,"pkey":"0xffff","mode":"connected","mtu":65520,
       "carrier":true,"address":"80:02:00:13:fe:80:00:00:00:00:00:00:02:53:46:00:00:01:00:01",
       "neighbours":[
        {"address":"80:02:00:14:fe:80:00:00:00:00:00:00:02:53:46:00:00:02:00:01","qpn":"0x20014",
         "mode":"connected","ipv4":"10.151.96.2","ipv6":"fe80::253:4600:2:1","source":"arp",
         "unused_ms":61000,"path":"resolved","lid":2},
        {"address":"00:02:00:15:fe:80:00:00:00:00:00:00:02:53:46:00:00:03:00:01","qpn":"0x20015",
         "mode":"datagram","ipv6":"fe80::253:4600:3:1","source":"nd","unused_ms":0}],
       "paths":[
        {"gid":"fe80::253:4600:2:1","state":"resolved","lid":2,"sl":0,"mtu":2048,"is_global":false,
         "attempts":0,"waiting_packets":0},
        {"gid":"fe80::253:4600:9:1","state":"failed","trouble":"the subnet administrator has no path",
         "status":"not found","attempts":3,"waiting_packets":2}],
       "groups":[
        {"mgid":"ff12:601b:ffff::16","membership":"send_only","state":"failed","attempts":2,
         "trouble":"the subnet administrator refuses the group","status":"not found",
         "waiting_packets":0},
        {"mgid":"ff12:401b:ffff::ffff:ffff","membership":"full","state":"joined","mlid":"0xc000",
         "attempts":0,"waiting_packets":0}],
       "connections":[
        {"peer":"00:02:00:14:fe:80:00:00:00:00:00:00:02:53:46:00:00:02:00:01","half":"active",
         "state":"established","mtu":65520,"waiting_packets":0}],
       "counters":{"frames_from_kernel":7,"bytes_from_kernel":2048,"path_queries":1,
                   "drops":{"no path to the neighbour":4}}}]}},
    {"node":"node1","attached":true,"mode":"datagram","driver_pid":0,"ready":false,"programs":2,
     "failure":"its driver was killed by signal 9 (Killed)"}
  ])json");
}

// The place of a text in its line; npos: no line has it.
std::size_t column_of(const std::string& page, const std::string& text) {
  const std::size_t at = page.find(text);
  if (at == std::string::npos) return at;
  const std::size_t start = page.rfind('\n', at);
  return start == std::string::npos ? at : at - start - 1;
}

TEST(IpoibPage, ShowsTheTablesOfEachInterface) {
  const std::string page = ipoib_page(sample(), {2, false, "/run/net/default.log"});
  for (const char* wanted :
       {"node0: own network, connected, 1 program, driver pid 812\n",
        "node1: attached, datagram, 2 programs, no driver\n        trouble: its driver was killed "
        "by ",
        "ib0      softib0 port 1, P_Key 0xffff, connected, MTU 65520, carrier\n",
        "0x20014  2    connected  0:01:01", "fe80::253:4600:2:1\n", "0xc000  full",
        "send only  no member  0\n",
        "trouble: the subnet administrator has no path (not found), 3 attempts\n",
        "10.151.96.2  0x20014  sends    established  65520", "7 frames (2.0 KiB) from the kernel",
        "dropped: no path to the neighbour: 4\n", "log: /run/net/default.log\n"}) {
    EXPECT_THAT(page, HasSubstr(wanted));
  }
  EXPECT_THAT(page, Not(HasSubstr("refuses the group")));
  EXPECT_THAT(page, Not(HasSubstr("more")));
}

TEST(IpoibPage, ColumnsAreAlignedInEightyColumns) {
  const std::string page = ipoib_page(sample(), {2, false, "/run/net/default.log"});
  EXPECT_EQ(column_of(page, "LID"), column_of(page, "2    connected"));
  EXPECT_EQ(column_of(page, "MODE"), column_of(page, "datagram   0:00:00"));
  EXPECT_EQ(column_of(page, "MLID"), column_of(page, "0xc000"));
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(IpoibPage, SaysHowManyRowsAndNodesAreLeftOut) {
  Json networks = sample();
  Json& rows = networks[0]["driver"]["interfaces"][0]["neighbours"];
  while (rows.size() < 647) rows.push_back(rows[0]);
  EXPECT_THAT(ipoib_page(networks, {648, false, ""}), HasSubstr("    and 639 more (--all)\n"));
  EXPECT_THAT(ipoib_page(networks, {648, false, ""}),
              HasSubstr("and 646 networks more (--all, or softib ipoib show NODE)\n"));
  const std::string whole = ipoib_page(networks, {2, true, ""});
  EXPECT_THAT(whole, Not(HasSubstr("more")));
  EXPECT_GT(std::count(whole.begin(), whole.end(), '\n'), 2 * 647);
}

TEST(IpoibPage, ToleratesWhatIsMissing) {
  EXPECT_EQ(ipoib_page(Json::array(), {}),
            "no node has a network; softib run --net -- CMD makes one\n");
  EXPECT_THAT(ipoib_page(Json::parse(R"([{"driver":{"interfaces":[{"neighbours":[{}]}]}}])"), {}),
              HasSubstr("no carrier"));
}

}  // namespace
}  // namespace ib::softib
