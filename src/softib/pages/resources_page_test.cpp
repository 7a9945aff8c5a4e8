// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/resources_page.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace ib::softib {
namespace {

// A program with one queue pair and one completion queue, which has a channel.
Json program() {
  return Json::parse(R"json({"pid":812,"program":"server","node":"node1","is_softibd":false,
    "unacknowledged_events":0,
    "qp":[{"hca":"softib0","port":1,"qpn":"0x11","type":"RC","state":"RTS","peer_qpn":"0x12",
           "peer":{"node":"node0","pid":811,"program":"client","hca":"softib0"},
           "send_cq":3,"max_send_wr":16,"recv_cq":3,"receives_posted":5,"max_recv_wr":16,
           "sent_messages":0,"received_messages":7,"waits":"no_receive"}],
    "cq":[{"hca":"softib0","cq":3,"entries":10,"unpolled":2,"completions":9,"armed":"any",
           "was_armed":true,"overrun":false,"queues":2,"channel":1}],
    "mr":[{"hca":"softib0","key":"0x100","pd":1,"address":"0x7f0000001000",
           "iova":"0x7f0000001000","length":8192,"access":"LOCAL_WRITE"}],
    "channels":[{"channel":1,"unread_events":0,"completion_queues":1}]})json");
}

// The words of a page, whatever the lines.
std::string words_of(const std::string& page) {
  std::istringstream words(page);
  std::string all;
  for (std::string word; words >> word;) all += word + ' ';
  return all;
}

std::string hints(const Json& of) {
  std::string all;
  for (const std::string& hint : hints_of(of)) all += hint + "\n";
  return all;
}

TEST(ResourceHints, AProgramAtWorkHasNone) {
  EXPECT_EQ(hints(program()), "");
  Json polled = program();
  polled["cq"][0]["unpolled"] = 0;
  polled["cq"][0]["armed"] = "no";
  EXPECT_EQ(hints(polled), "");
}

TEST(ResourceHints, ACompletionQueueThatBringsNoEventSaysWhy) {
  Json it = program();
  it["cq"][0]["armed"] = "no";
  EXPECT_NE(hints(it).find("CQ 3 has 2 completions to poll and is not armed"), std::string::npos);
  it["cq"][0]["was_armed"] = false;
  EXPECT_NE(hints(it).find("was never armed, so that channel 1 gets no event"), std::string::npos);
  it["cq"][0]["armed"] = "solicited";
  EXPECT_NE(hints(it).find("armed for solicited ones only"), std::string::npos);
  it["channels"][0]["unread_events"] = 1;  // it has an event for them
  EXPECT_EQ(hints(it).find("CQ 3"), std::string::npos);
  EXPECT_NE(hints(it).find("channel 1 has 1 event that the program has not read"),
            std::string::npos);
  it = program();
  it["cq"][0].erase("channel");
  it["cq"][0]["armed"] = "no";
  EXPECT_EQ(hints(it), "") << "a program that polls needs no arming";
}

TEST(ResourceHints, SendsWithoutAnyCompletionWereNotSignaled) {
  Json it = program();
  it["qp"][0]["sent_messages"] = 1;
  EXPECT_EQ(hints(it), "") << "the queue has had completions";
  it["cq"][0]["completions"] = 0;
  it["cq"][0]["unpolled"] = 0;
  EXPECT_NE(hints(it).find("QP 0x11 has carried out 1 request, and its send CQ 3 has never had a "
                           "completion: none was signaled"),
            std::string::npos);
}

TEST(ResourceHints, AFullOrOverrunQueueAndUnacknowledgedEvents) {
  Json it = program();
  it["cq"][0]["unpolled"] = 10;
  EXPECT_NE(hints(it).find("CQ 3 is full"), std::string::npos);
  it["cq"][0]["overrun"] = true;
  EXPECT_NE(hints(it).find("CQ 3 has overrun"), std::string::npos);
  it["unacknowledged_events"] = 3;
  EXPECT_NE(hints(it).find("waits until 3 events are acknowledged: call ibv_ack_cq_events"),
            std::string::npos);
}

TEST(ResourcesPage, ProgramsAreChosenByNodeNameAndPid) {
  Json softibd = program();
  softibd["program"] = "softibd";
  softibd["is_softibd"] = true;
  const Json answer = {{"version", 1}, {"programs", Json::array({program(), softibd})}};
  const auto count = [&](const char* node, const char* name, bool all) {
    ResourcesShown shown;
    shown.node = node;
    shown.program = name;
    shown.all = all;
    return chosen_programs(answer, shown).size();
  };
  EXPECT_EQ(count("", "", false), 1u);
  EXPECT_EQ(count("", "", true), 2u);
  EXPECT_EQ(count("", "softibd", false), 1u);
  EXPECT_EQ(count("node0", "", false), 0u);
  EXPECT_EQ(count("node1", "812", false), 2u) << "the pid that was asked for";
  EXPECT_EQ(count("", "serve", false), 0u);
  EXPECT_EQ(chosen_programs(Json::parse(R"({"programs":[1, null]})"), {}).size(), 0u);
}

TEST(ResourcesPage, AllIsOnThePageInLinesOf80Columns) {
  Json one = program();
  one["unacknowledged_events"] = 1;
  for (int i = 0; i < 20; ++i) one["mr"].push_back(one["mr"][0]);
  const Json programs = chosen_programs({{"programs", Json::array({one})}}, {});
  const std::string page = resources_page("default", programs, {});
  for (const char* text :
       {"server (pid 812) on node1", "0x11 RC RTS on softib0 port 1", "of client",
        "waits (NoReceive): The peer had no receive posted.",
        "channel 1, 0 events not read, 1 completion queue hint:", "2 of 10 unpolled",
        "0x7f0000001000 to 0x7f0000002fff, 8.0 KiB", "and 13 more (--all)", "hint:"}) {
    EXPECT_NE(words_of(page).find(text), std::string::npos) << text << "\n" << page;
  }
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_EQ(resources_page("lab", Json::array(), {}),
            "no program has an HCA of fabric \"lab\" open\n");
}

}  // namespace
}  // namespace ib::softib
