// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/status_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace ib::softib {
namespace {

TEST(StatusPage, OfAnEmptyStateIsStillAPage) {
  EXPECT_NE(status_page("lab", Json::object()).find("fabric lab, up for 0:00:00"),
            std::string::npos);
}

TEST(StatusPage, FieldsOfTheWrongKindDoNoHarm) {
  const Json odd = Json::parse(
      R"({"nodes":[1,{"hcas":{}},{"hcas":[null,{"ports":[[]]}]}],"clients":"x","memory":[],"objects":3,
          "blocked":[{"qpn":{}}]})");
  EXPECT_FALSE(status_page("lab", odd).empty());
}

TEST(StatusPage, ShowsWhatIsThereAndWhyItWaits) {
  const Json state = Json::parse(R"({"pid":9,"uptime_ms":3723000,"kept":true,
      "memory":{"used":2048,"limit":1048576,"resident":4096},"objects":{"qp":2,"cq":0},
      "clients":[{"pid":11,"program":"ib_send_bw","node":"node0","ending":false,"objects":{"qp":1}}],
      "nodes":[{"name":"node0","hcas":[{"name":"softib0","node_guid":"0x1","objects":{"qp":1},
        "ports":[{"number":1,"guid":"0x2","lid":3,"state":"active",
                  "counters":{"sent_messages":5,"sent_bytes":2048}}]}]}],
      "traffic":[{"from":"node0","to":"node1","queue_pairs":1,"messages":5,"bytes":2048}],
      "blocked":[{"qpn":"0x20011","type":"RC","pid":11,"node":"node0","peer_qpn":"0x7",
                  "cause":"no_receive"}]})");
  const std::string page = status_page("lab", state);
  for (const char* part :
       {"fabric lab, up for 1:02:03 (softibd, pid 9, stays until", "node node0",
        "softib0    GUID 0x1  1 qp", "port 1  active  LID 3", "sent 5 (2.0 KiB)", "ib_send_bw",
        "objects: 2 qp\n", "2.0 KiB used of 1.0 MiB",
        "node0            -> node1               2.0 KiB in 5 messages, 1 QP",
        "RC QP 0x20011 of pid 11 on node0, peer QP 0x7: The peer had no receive"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << " in\n" << page;
  }
}

TEST(StatusPage, AnEthernetPortHasNoLidAndItsNodeAddresses) {
  const Json state = Json::parse(R"({"nodes":[{"name":"node0",
      "addresses":[{"ip":"127.77.0.1","interface":"lo"},{"ip":"fd00::1","interface":""}],
      "hcas":[{"name":"softib0","ports":[
        {"number":1,"guid":"0x2","link_layer":"ethernet","lid":0,"state":"active"}]}]}]})");
  const std::string page = status_page("lab", state);
  EXPECT_NE(page.find("node node0  127.77.0.1, fd00::1\n"), std::string::npos) << page;
  EXPECT_NE(page.find("port 1  active  Ethernet  GUID 0x2"), std::string::npos) << page;
  EXPECT_EQ(page.find("LID"), std::string::npos) << page;
}

TEST(StatusPage, APortWithACableShowsItsOtherEnd) {
  const Json state = Json::parse(R"({"nodes":[{"name":"node0","hcas":[{"name":"softib0","ports":[
        {"number":1,"guid":"0x2","lid":3,"state":"down",
         "peer":{"node":"node1","hca":"softib1","port":2}},
        {"number":2,"peer":7}]}]}]})");
  const std::string page = status_page("lab", state);
  EXPECT_NE(page.find("port 1  down    LID 3     GUID 0x2\n            cable to node1/softib1/2\n"),
            std::string::npos)
      << page;
}

TEST(StatusPage, OfAThousandNodesThoseThatAreUsed) {
  Json nodes = Json::array();
  for (int i = 0; i < 1000; ++i) {
    const Json port = {{"number", 1}, {"state", i == 7 ? "down" : "active"}};
    const Json hca = {{"name", "softib0"},
                      {"objects", {{"qp", i == 500 ? 1 : 0}}},
                      {"ports", Json::array({port})}};
    nodes.push_back({{"name", "node" + std::to_string(i)}, {"hcas", Json::array({hca})}});
  }
  const std::string page = status_page("lab", {{"nodes", nodes}});
  for (const char* part : {"node node7\n", "node node500\n", "998 other nodes, unused"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << " in\n" << page;
  }
  EXPECT_EQ(page.find("node node8\n"), std::string::npos);
  EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 20) << page;
  nodes.erase(nodes.begin() + 32, nodes.end());
  EXPECT_NE(status_page("lab", {{"nodes", nodes}}).find("node node8\n"), std::string::npos);
}

TEST(StatusPage, FitsIntoATerminal) {
  const Json state = Json::parse(R"({"pid":999999,"uptime_ms":3723000,"kept":true,
      "memory":{"used":2048,"limit":34359738368,"resident":4096},
      "clients":[{"pid":1234567,"program":"a_program_name_of_31_characters","node":"a-name-of-a-node-that-is-long","ending":true,
        "objects":{"qp":1024,"srq":16,"cq":2048,"ah":12,"mw":4,"mr":65536,"dm":1,"xrcd":1,"pd":3}}],
      "nodes":[{"name":"node0","hcas":[{"name":"softib0","node_guid":"0x253460000000000","objects":{"qp":1024,"srq":16,"cq":2048,
        "ah":12,"mw":4,"mr":65536,"dm":1,"xrcd":1,"pd":3},"ports":[{"number":1,"guid":"0x253460000000001","lid":30000,"state":"active",
                  "counters":{"sent_messages":5000000,"sent_bytes":204800000,"received_messages":5000000}}]}]}],
      "traffic":[{"from":"a-name-of-a-node-that-is-long","to":"another-name-of-a-node-that-is-long","queue_pairs":1024,"messages":50000000,"bytes":204800000}],
      "blocked":[{"qpn":"0x20011","type":"RC","pid":1234567,"node":"a-long-name","peer_qpn":"0x200017",
                  "cause":"no_receive"}]})");
  std::istringstream page(status_page("lab", state));
  for (std::string line; std::getline(page, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(StatusPage, BytesHaveAUnit) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(32ull << 30), "32.0 GiB");
}

}  // namespace
}  // namespace ib::softib
