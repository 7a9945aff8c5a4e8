// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer that sends messages of several packets with every mistake: as requests, as answers, and
// about tables that it is sent [IBA1 13.6.2, 13.6.6].
#include "administration.h"
#include "emitted_scenarios.h"
#include "mad/rmpp_header.h"
#include "raw_peer.h"

#include <gtest/gtest.h>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;
using mad::RmppStatus;
using mad::RmppType;
namespace m = sa::method;
namespace flag = mad::rmpp_flag;

// Sequences of packets of a peer. The first is answered with an ACK, TooLong with a STOP, all
// others with an ABORT.
enum class Sequence : std::uint8_t {
  Whole,
  TooLong,
  Stalls,  // the time is up
  InconsistentLast,
  InconsistentFirst,
  BadType,
  IllegalStatus,
  UnsupportedVersion,
  Unfinished,  // softib ends, or the requester gives up
};
constexpr Sequence kAtOnce[] = {Sequence::Whole,
                                Sequence::TooLong,
                                Sequence::InconsistentLast,
                                Sequence::InconsistentFirst,
                                Sequence::BadType,
                                Sequence::IllegalStatus,
                                Sequence::UnsupportedVersion};

// The administrator takes six methods, the client Reports.
constexpr std::uint8_t kRequests[] = {m::kGet,      m::kSet,    m::kGetTable, m::kGetTraceTable,
                                      m::kGetMulti, m::kDelete, m::kReport};

mad::RmppHeader data(std::uint32_t segment, unsigned flags, std::uint32_t length = 0) {
  mad::RmppHeader header;
  header.version = mad::kRmppVersion;
  header.type = static_cast<std::uint8_t>(RmppType::Data);
  header.time_flags = static_cast<std::uint8_t>(mad::kNoResponseTime << 3 | flag::kActive | flags);
  header.segment = segment;
  header.length_window = length;
  return header;
}

mad::RmppHeader control(RmppType type, std::uint32_t segment, std::uint32_t window,
                        std::uint8_t status = 0) {
  mad::RmppHeader header = data(segment, 0, window);
  header.type = static_cast<std::uint8_t>(type);
  header.status = status;
  return header;
}

std::vector<mad::RmppHeader> packets_of(Sequence sequence) {
  constexpr std::uint32_t kNoData = sizeof(sa::SaHeader);
  const mad::RmppHeader first = data(1, flag::kFirst);
  mad::RmppHeader second = data(2, 0);
  switch (sequence) {
    case Sequence::Whole: return {data(1, flag::kFirst | flag::kLast, kNoData)};
    case Sequence::TooLong: return {data(1, flag::kFirst, 1u << 30)};
    case Sequence::Stalls:
    case Sequence::Unfinished: return {first};
    case Sequence::InconsistentLast: return {first, data(2, flag::kLast, kNoData - 1)};
    case Sequence::InconsistentFirst: return {first, data(2, flag::kFirst)};
    case Sequence::BadType: second.type = 9; break;
    case Sequence::IllegalStatus: second.status = 7; break;
    case Sequence::UnsupportedVersion: second.version = 2; break;
  }
  return {first, second};
}

// A world whose peer owns queue pair 1 of the first port of `node`; softib has the other node.
class Transfers {
 public:
  Transfers(std::vector<mad::Mad>& log, std::size_t node) : peer_node_(node) {
    w_.emitted.log_to(log);
    sa_.emplace(*w_.gsi, w_.bench.fabric, w_.bench.executor, SaService::Options{});
    client_ = make_sa_client(w_, *sa_);
    std::string reason;
    EXPECT_EQ(sa_->start(reason), Status::Ok) << reason;
    EXPECT_EQ(w_.ensure(node == 0 ? "node1" : "node0"), Status::Ok);
    peer_.emplace(w_, node, [this](const mad::Mad& mad) { on_mad(mad); });
  }
  ~Transfers() {
    w_.run();
    client_.reset();
    sa_.reset();  // gives up the tables that it sends
    w_.close();   // and what comes
    peer_.reset();
  }

  void request_in_packets();
  void acknowledge_tables();
  void begin_requests();
  void answer_in_packets();

 private:
  void send(const mad::MadHeader& header, const mad::RmppHeader& rmpp) {
    mad::Mad mad = mad_of(header);
    mad::set_rmpp_header(mad, rmpp);
    peer_->send(w_.address(peer_node_, 1 - peer_node_).remote, mad);
  }
  mad::MadHeader header(std::uint8_t method, std::uint16_t attribute) {
    return {1, sa::kMgmtClass, sa::kClassVersion, method, 0, 0, ++tid_, attribute, 0, 0};
  }
  void request(std::uint8_t method, Sequence sequence) {
    const mad::MadHeader each = header(method, sa::attribute::kServiceRecord);
    for (const mad::RmppHeader& rmpp : packets_of(sequence)) send(each, rmpp);
    w_.run(1ms);
  }
  void ask_and_answer(std::uint8_t method, Sequence sequence);
  // Answers a request of softib, or acknowledges a packet of a table, as the test has chosen.
  void on_mad(const mad::Mad& mad) {
    mad::MadHeader each = header_of(mad);
    if (mad::is_rmpp(mad) &&
        mad::rmpp_header_of(mad).type == static_cast<std::uint8_t>(RmppType::Data)) {
      each.method ^= mad::method::kResponseBit;
      if (acknowledge_with_) send(each, *acknowledge_with_);
      return;
    }
    if (!answer_with_ || mad::is_response(each.method) || mad::is_rmpp(mad)) return;
    each.method |= mad::method::kResponseBit;
    for (const mad::RmppHeader& rmpp : packets_of(*std::exchange(answer_with_, std::nullopt))) {
      send(each, rmpp);
    }
  }

  ServicesWorld w_;
  std::size_t peer_node_;
  std::optional<SaService> sa_;
  std::unique_ptr<SaClient> client_;
  std::optional<RawPeer> peer_;
  std::optional<Sequence> answer_with_;
  std::optional<mad::RmppHeader> acknowledge_with_;
  std::uint64_t tid_ = 0x2000;
};

void Transfers::request_in_packets() {
  for (const std::uint8_t method : kRequests) {
    for (const Sequence each : kAtOnce) request(method, each);
    request(method, Sequence::Stalls);
  }
  w_.run(21s);
}

// The receptions that are begun here are under way when softib ends. Those beyond 64 get a STOP.
void Transfers::begin_requests() {
  for (const std::uint8_t method : kRequests) request(method, Sequence::Unfinished);
  for (int i = 0; i < 70; ++i) request(m::kGetMulti, Sequence::Unfinished);
}

// Each table of NodeRecords has three packets. The peer answers the first one with a mistake, or
// not at all; the last table is under way when softib ends.
void Transfers::acknowledge_tables() {
  constexpr std::uint8_t kIllegal = 9;
  const std::optional<mad::RmppHeader> answers[] = {
      control(RmppType::Ack, 1, 0),   // the window ends before the segment
      control(RmppType::Ack, 9, 20),  // a segment that was never sent
      control(RmppType::Ack, 1, 20, kIllegal),
      control(RmppType::Stop, 0, 0, kIllegal),
      control(RmppType::Abort, 0, 0, number_of(RmppStatus::Unspecified)),
      std::nullopt};
  for (const auto& each : answers) {
    acknowledge_with_ = each;
    peer_->send(w_.address(peer_node_, 1 - peer_node_).remote,
                mad_of(header(m::kGetTable, sa::attribute::kNodeRecord)));
    w_.run(1ms);
  }
  w_.run(60s);  // the retries are used up
  peer_->send(w_.address(peer_node_, 1 - peer_node_).remote,
              mad_of(header(m::kGetTable, sa::attribute::kNodeRecord)));
  w_.run(1ms);
}

void Transfers::ask_and_answer(std::uint8_t method, Sequence answer_with) {
  const AgentId id = add_sa_requester(w_);
  answer_with_ = answer_with;
  const std::uint16_t attribute =
      method == m::kReport ? sa::attribute::kNotice : sa::attribute::kServiceRecord;
  const mad::Mad mad = mad_of(header(method, attribute));
  bool is_over = false;
  const auto sent =
      w_.gsi->request(id, {w_.address(1 - peer_node_, peer_node_), mad, 60s, 0},
                      [&](Status, std::string_view, const GsiMessage*) { is_over = true; });
  ASSERT_TRUE(sent.has_value());
  w_.run(answer_with == Sequence::Stalls ? Duration(21s) : Duration(1ms));
  EXPECT_EQ(is_over, answer_with != Sequence::Unfinished) << unsigned{method};
  EXPECT_FALSE(answer_with_.has_value()) << "the request has not come";
  w_.gsi->cancel(*sent);
  w_.run(1ms);
  w_.gsi->remove_agent(id);
}

// Answers to the requests of softib's services, and to requests of tables.
void Transfers::answer_in_packets() {
  for (const std::uint8_t method : {m::kGet, m::kGetTable, m::kDelete, m::kReport}) {
    for (const Sequence each : kAtOnce) ask_and_answer(method, each);
    ask_and_answer(method, Sequence::Stalls);
    ask_and_answer(method, Sequence::Unfinished);
  }
}

}  // namespace

void run_transfers(std::vector<mad::Mad>& log) {
  {
    Transfers requests(log, 1);
    requests.request_in_packets();
    requests.acknowledge_tables();
    requests.begin_requests();
  }
  Transfers answers(log, 0);
  answers.answer_in_packets();
}

}  // namespace ib::services::test
