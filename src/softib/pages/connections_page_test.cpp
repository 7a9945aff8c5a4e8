// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/connections_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace ib::softib {
namespace {

Json sample() {
  return Json::parse(R"json([
    {"node":"node1","pid":813,"program":"rping","port_space":"TCP","state":"established",
     "local":"127.77.0.2:40000","peer":"127.77.0.1:7471","events_waiting":2,"qp_type":"RC",
     "service_id":"0x0000000001061d2f","age_ms":61000,"hca":"softib0","port":1,"qpn":"0x11",
     "peer_qpn":"0x12","cm_state":"DREQ sent","times_sent":3,"waits_for":"DREQ (sent 3 times)",
     "other_end":{"node":"node0","program":"rping","pid":812}},
    {"node":"node0","pid":812,"program":"rping","port_space":"TCP","state":"listening",
     "local":"0.0.0.0:7471","peer":"","events_waiting":0,"qp_type":"RC","age_ms":3723000,
     "backlog":10,"backlog_used":4},
    {"node":"node0","pid":0,"program":"echo","is_driver":true,"port_space":"","state":"listening",
     "local":"","peer":"","service_id":"0x1000000000000001","qp_type":"RC","age_ms":0},
    {"node":"node0","pid":9,"program":"mckey","port_space":"UDP","state":"bound","peer":"",
     "local":"127.77.0.1:5","groups":["ff12:401b:ffff::1"]},
    {"node":"node0","pid":9,"program":"idler","port_space":"UDP","state":"idle","local":"","peer":""}
  ])json");
}

TEST(ConnectionsPage, ListenersComeFirstAndIdleIdsOnlyWhenWanted) {
  const Json usual = chosen_connections(sample(), ConnectionsShown::Usual);
  ASSERT_EQ(usual.size(), 4u);
  EXPECT_EQ(usual[0]["state"], "listening");
  EXPECT_EQ(usual[2]["state"], "established");
  EXPECT_EQ(usual[3]["program"], "mckey") << "a member of a group is not idle";
  EXPECT_EQ(chosen_connections(sample(), ConnectionsShown::Listeners).size(), 2u);
  EXPECT_EQ(chosen_connections(sample(), ConnectionsShown::All).size(), 5u);
  EXPECT_TRUE(chosen_connections(Json::parse(R"([1, null, "x"])"), ConnectionsShown::All).empty());
}

TEST(ConnectionsPage, ShowsBothEndsAndWhatTheyWaitFor) {
  const std::string page =
      connections_page("lab", chosen_connections(sample(), ConnectionsShown::All));
  for (const char* part :
       {"STATE        SPACE LOCAL                 PEER                  PROGRAM\n",
        "listening    TCP   0.0.0.0:7471          *                     rping (pid 812)\n",
        "4 of 10 requests wait; for 1:02:03",
        "established  TCP   127.77.0.2:40000      127.77.0.1:7471       rping (pid 813)\n",
        "node1 softib0 port 1, RC QP 0x11; peer: rping (pid 812) on node0, QP", "CM: DREQ sent",
        "2 events not taken", "waits for DREQ (sent 3 times)", "service 0x1000000000000001",
        "driver echo", "member of ff12:401b:ffff::1"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << " in\n" << page;
  }
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_EQ(connections_page("lab", Json::array()),
            "no listeners or connections on fabric \"lab\"\n");
}

TEST(ConnectionsPage, AStreamShowsItsBytes) {
  const Json rows = Json::parse(R"json([
    {"node":"node0","pid":7,"program":"curl","port_space":"SDP","state":"established",
     "local":"127.77.0.1:40001","peer":"127.77.0.2:80","qp_type":"RC","age_ms":1000,
     "hca":"softib0","port":1,"qpn":"0x11","peer_qpn":"0x12","stream":3,"bytes_sent":78,
     "bytes_received":4096,"other_end":{"node":"node1","program":"nginx","pid":6}}])json");
  const std::string page = connections_page("lab", rows);
  for (const char* part :
       {"established  SDP   127.77.0.1:40001      127.77.0.2:80         curl (pid 7)\n",
        "peer: nginx (pid 6) on node1", "78 bytes sent, 4096 received"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << " in\n" << page;
  }
}

TEST(ConnectionsPage, ALongPidLeavesTheColumnsWhereTheyAre) {
  Json all = chosen_connections(sample(), ConnectionsShown::Listeners);
  all[0]["pid"] = 4194304;
  all[0]["program"] = "ib_write_lat";
  const std::string page = connections_page("lab", all);
  EXPECT_NE(page.find("listening    TCP   0.0.0.0:7471          *\n"
                      "    ib_write_lat (pid 4194304); node0; 4 of 10 requests wait;"),
            std::string::npos)
      << page;
}

TEST(ConnectionsPage, FieldsOfTheWrongKindDoNoHarm) {
  const Json odd = Json::parse(R"([{"state":7,"groups":"x","other_end":[],"backlog":null}, {}])");
  EXPECT_FALSE(connections_page("lab", chosen_connections(odd, ConnectionsShown::All)).empty());
}

TEST(ConnectionsPage, TheSummaryCountsByState) {
  EXPECT_EQ(connections_summary(sample()), "2 listening, 1 established, 1 bound");
  EXPECT_EQ(connections_summary(Json::array()), "");
}

}  // namespace
}  // namespace ib::softib
