// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/explanation.h"

#include "cm/event_text.h"
#include "sa/records/status_text.h"

#include <gtest/gtest.h>

#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ib::softib {
namespace {

TEST(Explanation, EveryStatusAndCauseHasItsOwnName) {
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < verbs::kWcStatusCount; ++i) {
    const Explanation it = explain(static_cast<verbs::WcStatus>(i));
    ASSERT_NE(it.name, nullptr) << i;
    EXPECT_NE(it.meaning, nullptr);
    EXPECT_NE(it.advice, nullptr);
    EXPECT_NE(verbs::wc_status_name(static_cast<verbs::WcStatus>(i)), nullptr);
    EXPECT_TRUE(names.insert(it.name).second) << it.name;
  }
  for (std::uint32_t i = 0; i < verbs::kCauseCount; ++i) {
    const Explanation it = explain(static_cast<verbs::control::Cause>(i));
    ASSERT_NE(it.name, nullptr) << i;
    EXPECT_NE(it.advice, nullptr);
    EXPECT_TRUE(names.insert(it.name).second) << it.name;
  }
}

TEST(Explanation, EveryRefusalHasItsOwnCard) {
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < verbs::control::kPostRefusalCount; ++i) {
    const Explanation it =
        explain(static_cast<verbs::control::PostRefusal>(verbs::control::kFirstPostRefusal + i));
    ASSERT_NE(it.name, nullptr) << i;
    EXPECT_TRUE(names.insert(it.name).second) << it.name;
    EXPECT_NE(explain_word(it.name).find(std::string("refused: ") + it.name), std::string::npos);
  }
  EXPECT_EQ(refusals_of("").size(), names.size());
}

TEST(Explanation, AConnectionThatStaysTcpHasACard) {
  const std::string line = "TCP to 127.77.0.2:5000 stays TCP: ";
  const std::vector<std::pair<std::string, std::string>> rows{
      {line + "no program of node1 listens there with the socket switch", "--sockets -- PROGRAM"},
      {line + "node0 has no active port that leads to node1", "softib port up"},
      {line + "a pair of sockets: Too many open files", "ulimit -n"},
      {line + "an HCA was pulled out", "HCA went away"},
      {line + "the stream could not be made in time", "too slow"},
      {line + "the communication manager of the peer does not answer", "did not agree"},
      {line + "no room", "behind the colon"},
      {"TCP to [fe80::1]:5000 is reset: the program of node1 that has accepted it on port 5000 "
       "does "
       "not use the socket switch",
       "ECONNRESET"}};
  for (const auto& [text, wanted] : rows) {
    EXPECT_NE(explain_stream(text).find(wanted), std::string::npos) << explain_stream(text);
    EXPECT_TRUE(explain_line("12:00:01 node0, pid 7: " + text).starts_with(explain_stream(text)));
  }
  EXPECT_EQ(explain_stream("the program does not use the socket switch"), "");
}

TEST(Explanation, ACallHasTheCardsOfAllThatItRefuses) {
  const std::string cards = explain_word("ibv_post_srq_recv");
  EXPECT_NE(cards.find("SrqSges"), std::string::npos);
  EXPECT_NE(cards.find("SrqQueueFull"), std::string::npos);
  EXPECT_EQ(cards.find("RecvState"), std::string::npos);
}

TEST(Explanation, TheCountsAreThoseOfTheEnums) {
  EXPECT_EQ(explain(static_cast<verbs::WcStatus>(verbs::kWcStatusCount)).name, nullptr);
  EXPECT_EQ(explain(static_cast<verbs::control::Cause>(verbs::kCauseCount)).name, nullptr);
}

TEST(Explanation, AStatusIsFoundInAnySpelling) {
  const std::string card = explain_word("12");
  EXPECT_NE(card.find("IBV_WC_RETRY_EXC_ERR"), std::string::npos);
  EXPECT_NE(card.find("`reason 12`"), std::string::npos) << "other numbers are offered";
  for (const char* word : {"0xc", "status 12"}) EXPECT_EQ(explain_word(word), card) << word;
  const std::string by_name = explain_word("RetryExcErr");
  EXPECT_TRUE(card.starts_with(by_name)) << by_name;
  for (const char* word :
       {"IBV_WC_RETRY_EXC_ERR", "ibv_wc_retry_exc_err", "retry exc err", "WcStatus::RetryExcErr"}) {
    EXPECT_EQ(explain_word(word), by_name) << word;
  }
}

TEST(Explanation, ACauseIsFoundByNameAndByVendorErr) {
  const std::string card = explain_word("NoReceive");
  EXPECT_NE(card.find("no receive posted"), std::string::npos);
  EXPECT_EQ(explain_word("vendor_err 14"), card);
  EXPECT_EQ(explain_word("vendor_err: 0xe"), card);
  EXPECT_EQ(explain_word("cause 14"), card);
  EXPECT_EQ(explain_word("no_receive"), card);
}

TEST(Explanation, TextsThatProgramsPrintLeadToTheirCards) {
  const std::pair<const char*, const char*> kCases[] = {
      {"transport retry counter exceeded", "12: IBV_WC_RETRY_EXC_ERR"},
      {"Work Request Flushed Error", "5: IBV_WC_WR_FLUSH_ERR"},
      {"fatal error", "19: IBV_WC_FATAL_ERR"},
      {"TM error", "no tag matching"},
      {"IBV_EVENT_QP_ACCESS_ERR", "asynchronous event 3: IBV_EVENT_QP_ACCESS_ERR"},
      {"port error", "asynchronous event 10: IBV_EVENT_PORT_ERR"},
      {"Cannot allocate memory", "errno 12: ENOMEM"},
      {"EBUSY", "softib resources"},
      {"-22", "errno 22: EINVAL"},
      {"ENOTTY", "errno 25: ENOTTY"},
      {"Connection refused", "softib wait --listen"},
      {"Connection timed out", "110: ETIMEDOUT"},
  };
  for (const auto& [word, part] : kCases) {
    EXPECT_NE(explain_word(word).find(part), std::string::npos) << word << ":\n"
                                                                << explain_word(word);
  }
}

// Lines of perftest, ibv_rc_pingpong, UCX, OpenMPI, rping and softib itself.
TEST(Explanation, AWholeLineIsExplainedPieceByPiece) {
  struct Case {
    const char* line;
    std::vector<const char*> parts;
    std::size_t cards;
  };
  const Case kCases[] = {
      {" Failed status 12: wr_id 0 syndrom 0x10",
       {"12: IBV_WC_RETRY_EXC_ERR", "cause 16 (vendor_err)"},
       2},
      {"Failed status transport retry counter exceeded (12) for wr_id 2",
       {"12: IBV_WC_RETRY_EXC_ERR"},
       1},
      {"vendor 0x6", {"cause 6 (vendor_err)"}, 1},
      {"status=12 opcode=0 len=0 vendor err 129", {"IBV_WC_RETRY_EXC_ERR", "another HCA"}, 2},
      {"RC QP 0x1: remote access error [wrid 5 vendor_err 0x0]", {"10: IBV_WC_REM_ACCESS_ERR"}, 1},
      {"rping: cma event RDMA_CM_EVENT_REJECTED, error 28",
       {"8: RDMA_CM_EVENT_REJECTED", "28: consumer reject"},
       2},
      {"server got IBV_EVENT_LID_CHANGE (LID change)", {"11: IBV_EVENT_LID_CHANGE"}, 1},
      {"ibv_create_qp: Invalid argument", {"errno 22: EINVAL"}, 2},
      {"rdma_bind_addr: Address already in use", {"98: EADDRINUSE"}, 1},
      {"Couldn't connect to node1:18515", {"no server", "softib wait"}, 1},
      {"Couldn't listen to port 18515", {"port taken", "-p"}, 1},
      {"Failed to get IB devices list", {"no HCA", "softib run --"}, 1},
      {"No IB devices found", {"no HCA"}, 1},
      {"SEND failed with IBV_WC_RNR_RETRY_EXC_ERR: cause no_receive",
       {"13: IBV_WC_RNR_RETRY_EXC_ERR", "NoReceive"},
       2},
  };
  for (const auto& [line, parts, cards] : kCases) {
    const std::string text = explain_line(line);
    for (const char* part : parts) {
      EXPECT_NE(text.find(part), std::string::npos) << line << ":\n" << text;
    }
    std::size_t count = 0;
    for (std::size_t at = text.find("  what:"); at != std::string::npos;
         at = text.find("  what:", at + 1)) {
      ++count;
    }
    EXPECT_EQ(count, cards) << line << ":\n" << text;
  }
  for (const char* line : {"", "nonsense", "fatal error: no such file", "exit status 0", "ok 12"}) {
    EXPECT_EQ(explain_line(line), "") << line;
  }
}

TEST(Explanation, WhatIsUnknownGivesNothing) {
  for (const char* word :
       {"", "60", "4711", "-1000", "vendor_err", "cause 99", "bogus", "IBV_WC_", "0x"}) {
    EXPECT_EQ(explain_word(word), "") << word;
  }
}

// Texts that `softib explain` is given, and a part of the card of each.
TEST(ConnectionExplanation, EverySpellingLeadsToItsCard) {
  const std::pair<const char*, const char*> kCases[] = {
      {"RDMA_CM_EVENT_UNREACHABLE", "event of librdmacm 7: RDMA_CM_EVENT_UNREACHABLE\n"},
      {"rdma_cm_event_unreachable", "event of librdmacm 7:"},
      {"unreachable", "event of librdmacm 7:"},
      {"ADDR_ERROR", "event of librdmacm 1: RDMA_CM_EVENT_ADDR_ERROR"},
      {"event 15", "RDMA_CM_EVENT_TIMEWAIT_EXIT"},
      {"RDMA_CM_EVENT_REJECTED, error 8", "8: invalid service ID"},
      {"cma event RDMA_CM_EVENT_REJECTED, error 28", "28: consumer reject"},
      {"RDMA_CM_EVENT_UNREACHABLE, error -110", "110: ETIMEDOUT"},
      {"RDMA_CM_EVENT_UNREACHABLE, error 1", "1: service ID not supported"},
      {"ADDR_ERROR, error -101", "101: ENETUNREACH"},
      {"reason 10", "10: stale connection"},
      {"REJ 0x1c", "28: consumer reject"},
      {"consumer reject", "28: consumer reject"},
      {"28", "28: consumer reject"},
      {"errno 98", "98: EADDRINUSE"},
      {"-111", "111: ECONNREFUSED"},
      {"110", "110: ETIMEDOUT"},
      {"EADDRNOTAVAIL", "99: EADDRNOTAVAIL"},
      {"SA status 0x0300", "0x0300: ERR_NO_RECORDS"},
      {"ERR_REQ_DENIED", "0x0700: ERR_REQ_DENIED"},
      {"SIDR 2", "status of a datagram service (SIDR_REP) 2: rejected"},
      {"APR 5", "5: path is current"},
  };
  for (const auto& [word, part] : kCases) {
    EXPECT_NE(explain_word(word).find(part), std::string::npos) << word << ":\n"
                                                                << explain_word(word);
  }
  for (const char* nonsense : {"", "event 99", "reason 5000", "errno 1000", "--help", "nonsense 3",
                               "-", "RDMA_CM_EVENT_NONSENSE", "999999999999999999999"}) {
    EXPECT_EQ(explain_word(nonsense), "") << nonsense;
  }
}

TEST(ConnectionExplanation, EveryRowHasItsCardByNameAndByNumber) {
  const std::string all = known_words();
  const std::pair<std::span<const cm::NumberedText>, const char*> kTables[] = {
      {cm::rdma_events(), "event"},
      {cm::reject_reasons(), "reason"},
      {cm::rdma_errors(), "errno"},
      {cm::sidr_statuses(), "sidr"},
      {cm::path_statuses(), "apr"}};
  for (const auto& [rows, word] : kTables) {
    std::set<std::string> names;
    for (const cm::NumberedText& row : rows) {
      const std::string card = explain_word(std::string(word) + " " + std::to_string(row.number));
      EXPECT_NE(card.find(row.text.name), std::string::npos) << card;
      EXPECT_NE(card.find("to do:"), std::string::npos) << card;
      EXPECT_NE(explain_word(row.text.name), "") << row.text.name;
      EXPECT_NE(all.find(row.text.name), std::string::npos) << row.text.name;
      EXPECT_TRUE(names.insert(row.text.name).second) << row.text.name;
    }
  }
  for (const sa::StatusText& row : sa::kStatusTexts) {
    EXPECT_NE(explain_word("SA status " + std::to_string(row.status)).find(row.name),
              std::string::npos);
    EXPECT_STREQ(sa::status_text(row.status), row.sentence);
  }
}

TEST(ConnectionExplanation, NoLineIsWiderThanATerminal) {
  for (const char* word : {"8", "reason 10", "event 7", "errno 99", "SA status 0x0600"}) {
    std::istringstream lines(explain_word(word));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace
}  // namespace ib::softib
