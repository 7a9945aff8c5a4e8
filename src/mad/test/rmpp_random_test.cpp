// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two ends exchange messages of several packets over a link with faults: each message arrives once
// and byte-exact, or its sender hears that it failed; and nothing is left.
#include "base/sanitizer.h"
#include "mad/rmpp.h"
#include "mad/test/link_test.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace ib::mad {
namespace {

using namespace std::chrono_literals;
using Kind = Rmpp::Output::Kind;

constexpr std::uint8_t kClasses[] = {mgmt_class::kSubnAdm, mgmt_class::kDevMgt, 0x32};

struct Message {
  int from = 0;
  std::vector<std::byte> bytes;
  int received = 0;
  bool sent = false;
  bool failed = false;
  bool answer_begun = false;
};

class Exchange {
 public:
  Exchange(unsigned seed, const test::LinkFaults& faults, const Rmpp::Options& options)
      : random_(seed), link_(faults, random_), ends_{Rmpp(options), Rmpp(options)} {}

  int number(int least, int most) { return std::uniform_int_distribution<>(least, most)(random_); }
  // A request, or its answer with the same id in the other direction.
  void send(int from, std::uint64_t tid, std::uint8_t mgmt_class, std::uint8_t method,
            std::size_t bytes, bool is_answered = false) {
    const std::size_t size = header_size(mgmt_class);
    Message& message = messages_[{tid, method}];
    message.from = from;
    message.bytes.resize(size + bytes);
    fill(message.bytes);
    MadHeader header;
    header = {1, mgmt_class, 2, method, 0, 0, tid, 0x35, 0, 0};
    std::memcpy(message.bytes.data(), &header, sizeof header);
    std::fill_n(message.bytes.begin() + kRmppOffset, sizeof(RmppHeader), std::byte{0});
    const auto id = ends_[from].send(peer(1 - from), message.bytes, is_answered, now_);
    ASSERT_TRUE(id);
    sends_[from][*id] = {tid, method};
    pump(from);
  }
  // Answers each request that arrives with that many bytes.
  void answer_with(std::size_t most) { most_answer_ = most; }

  // Until nothing is under way any more.
  void run() {
    const Instant limit = now_ + 3600s;
    while (now_ < limit) {
      std::optional<Instant> next = link_.next();
      for (const Rmpp& end : ends_) {
        const auto due = end.next_deadline();
        if (due && (!next || *due < *next)) next = due;
      }
      if (!next) return;
      now_ = std::max(now_, *next);
      while (auto arrived = link_.take(now_)) {
        const int to = arrived->first;
        ends_[to].on_packet(peer(1 - to), arrived->second, true, now_);
        pump(to);
      }
      for (const int end : {0, 1}) pump(end);
    }
    ADD_FAILURE() << "it does not come to an end";
  }
  const std::map<std::pair<std::uint64_t, std::uint8_t>, Message>& messages() const {
    return messages_;
  }
  void check_the_end() {
    for (const auto& [key, message] : messages_) {
      SCOPED_TRACE("transaction " + std::to_string(key.first));
      EXPECT_LE(message.received, 1);
      EXPECT_TRUE(message.sent != message.failed || message.answer_begun);
      if (message.sent) {
        EXPECT_EQ(message.received, 1) << "acknowledged, but not received";
      }
    }
    for (const Rmpp& end : ends_) {
      EXPECT_EQ(end.bytes(), 0u);
      EXPECT_EQ(end.sends(), 0u);
      EXPECT_EQ(end.receptions(), 0u);
    }
  }

 private:
  void fill(std::vector<std::byte>& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint32_t)) {
      const auto word = static_cast<std::uint32_t>(random_());
      std::memcpy(&bytes[at], &word, std::min(sizeof word, bytes.size() - at));
    }
  }
  static Peer peer(int end) { return {7, static_cast<std::uint16_t>(end + 1), 1, {}}; }

  void pump(int end) {
    while (auto output = ends_[end].poll(now_)) {
      switch (output->kind) {
        case Kind::Packet: link_.send(1 - end, output->packet, now_); break;
        case Kind::Sent: messages_.at(sends_[end].at(output->id)).sent = true; break;
        case Kind::SendFailed: messages_.at(sends_[end].at(output->id)).failed = true; break;
        case Kind::Received: received(end, output->message); break;
        case Kind::ReceiveFailed:
        case Kind::Over: break;
      }
    }
  }
  void received(int end, const std::vector<std::byte>& bytes) {
    MadHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto found = messages_.find({header.transaction_id, header.method});
    ASSERT_NE(found, messages_.end());
    Message& message = found->second;
    EXPECT_EQ(message.from, 1 - end);
    ++message.received;
    std::vector<std::byte> plain = bytes;
    std::fill_n(plain.begin() + kRmppOffset, sizeof(RmppHeader), std::byte{0});
    ASSERT_EQ(plain.size(), message.bytes.size());
    EXPECT_EQ(std::memcmp(plain.data(), message.bytes.data(), plain.size()), 0);
    if (most_answer_ == 0 || is_response(header.method)) return;
    send(end, header.transaction_id, header.mgmt_class,
         static_cast<std::uint8_t>(header.method | method::kResponseBit),
         static_cast<std::size_t>(number(0, static_cast<int>(most_answer_))));
  }

  std::mt19937 random_;
  test::Link link_;
  Rmpp ends_[2];
  Instant now_{1s};
  std::map<std::pair<std::uint64_t, std::uint8_t>, Message> messages_;
  std::map<Rmpp::Id, std::pair<std::uint64_t, std::uint8_t>> sends_[2];
  std::size_t most_answer_ = 0;
};

unsigned setting(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

std::string repeat(unsigned seed) {
  return "repeat with SOFTIB_FIRST_SEED=" + std::to_string(seed) + " SOFTIB_SEEDS=1";
}

// With few faults and a fresh id for each message.
TEST(RmppRandomTest, MessagesArriveOnceAndByteExactOrTheirSenderKnows) {
  const unsigned first = setting("SOFTIB_FIRST_SEED", 1);
  const unsigned seeds = setting("SOFTIB_SEEDS", IB_ADDRESS_SANITIZER != 0 ? 2000 : 25000);
  std::printf("seeds %u to %u\n", first, first + seeds - 1);
  std::size_t sent = 0;
  std::size_t failed = 0;
  for (unsigned seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(repeat(seed));
    std::mt19937 random(seed);
    const auto one_of = [&](int most) { return std::uniform_int_distribution<>(0, most)(random); };
    test::LinkFaults faults;
    faults.loss = 0.05 * one_of(8);
    faults.doubling = 0.05 * one_of(6);
    const Duration delays[] = {10us, 1ms, 300ms, 2500ms};
    faults.most_delay = delays[one_of(3)];
    Rmpp::Options options;
    options.receive.window = static_cast<std::uint32_t>(1 + one_of(20));
    Exchange exchange(seed, faults, options);
    if (one_of(1) == 0) exchange.answer_with(3000);
    const std::uint8_t mgmt_class = kClasses[one_of(2)];
    for (int i = one_of(3); i >= 0; --i) {
      exchange.send(one_of(1), 100 + static_cast<std::uint64_t>(i), mgmt_class, method::kGetMulti,
                    static_cast<std::size_t>(one_of(4000)), one_of(1) == 0);
    }
    exchange.run();
    exchange.check_the_end();
    for (const auto& [key, message] : exchange.messages()) {
      sent += message.sent;
      failed += message.failed;
    }
  }
  std::printf("%zu messages arrived, %zu failed\n", sent, failed);
  EXPECT_GT(sent, failed);
}

TEST(RmppRandomTest, WithoutLossEverythingArrives) {
  for (unsigned seed = 1; seed <= (IB_ADDRESS_SANITIZER != 0 ? 100 : 500) && !HasFailure();
       ++seed) {
    SCOPED_TRACE(repeat(seed));
    test::LinkFaults faults;
    faults.doubling = 0.1;
    faults.most_delay = 2ms;
    Exchange exchange(seed, faults, {});
    exchange.answer_with(100000);
    exchange.send(0, 1, mgmt_class::kSubnAdm, method::kGetMulti,
                  static_cast<std::size_t>(exchange.number(0, 100000)), true);
    exchange.run();
    exchange.check_the_end();
    for (const auto& [key, message] : exchange.messages()) EXPECT_TRUE(message.sent);
  }
}

// Each single packet of a transfer is lost once, in both directions.
TEST(RmppRandomTest, TheLossOfAnySinglePacketIsRepaired) {
  for (int lost = 0; lost < 60; ++lost) {
    SCOPED_TRACE(lost);
    Rmpp ends[2] = {Rmpp({}), Rmpp({})};
    Instant now{1s};
    std::vector<std::byte> message(56 + 30 * 200 + 17);
    for (std::size_t i = 0; i < message.size(); ++i) message[i] = std::byte(i * 7);
    MadHeader header;
    header = {1, mgmt_class::kSubnAdm, 2, method::kGetTableResp, 0, 0, 5, 0x35, 0, 0};
    std::memcpy(message.data(), &header, sizeof header);
    ASSERT_TRUE(ends[0].send({7, 2, 1, {}}, message, false, now));
    int packets = 0;
    bool sent = false;
    int received = 0;
    for (int round = 0; round < 200 && !sent; ++round) {
      bool progress = false;
      for (const int end : {0, 1}) {
        while (auto output = ends[end].poll(now)) {
          progress = true;
          sent |= output->kind == Kind::Sent;
          if (output->kind == Kind::Received) {
            ++received;
            EXPECT_EQ(output->message.size(), message.size());
            EXPECT_TRUE(
                std::equal(message.begin() + 56, message.end(), output->message.begin() + 56));
          }
          if (output->kind != Kind::Packet || packets++ == lost) continue;
          ends[1 - end].on_packet({7, static_cast<std::uint16_t>(1 + end), 1, {}}, output->packet,
                                  true, now);
        }
      }
      if (!progress) now = *ends[0].next_deadline();
    }
    EXPECT_TRUE(sent);
    EXPECT_EQ(received, 1);
  }
}

}  // namespace
}  // namespace ib::mad
