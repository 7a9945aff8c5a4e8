// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A kernel client (al/) in softibd and a user-mode client, each the other's peer. The calls of the
// kernel client run on softibd's thread at dispatch level; the test waits for them on its own.
#include "kernel_client.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

namespace ib::conformance {
namespace {

class KernelClientTest : public KernelClient {};
IB_EVERY_SETTING(KernelClientTest);

// Of softibd, which is in this process.
std::size_t mapped_files_of_programs() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("softib-pages") != std::string::npos) ++count;
  return count;
}

TEST_P(KernelClientTest, ObjectsAreBusyWhileOthersDependOnThem) {
  make(QpType::Rc);
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(pd, std::move(irp)); }), Status::DeviceBusy);
  EXPECT_NE(reason, "");
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(cq, std::move(irp)); }), Status::DeviceBusy);
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(memory, std::move(irp)); }),
            Status::DeviceBusy);
  EXPECT_TRUE(pd.exists() && cq.exists() && memory.exists());
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al->close(std::move(irp)); }), Status::DeviceBusy);
  end();
  EXPECT_FALSE(kq.exists());
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(kq, std::move(irp)); }),
            Status::InvalidParameter);
}

TEST_P(KernelClientTest, WhatIsLeftGoesWithTheCa) {
  make(QpType::Ud);
  EXPECT_EQ(wait_for([this](io::IrpRef irp) { ca->close(std::move(irp)); }), Status::Ok);
  EXPECT_FALSE(kq.exists());
  EXPECT_FALSE(cq.exists());
  al::Pd late;
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::alloc_pd(*ca, late, std::move(irp)); }),
            Status::InvalidState);
}

TEST_P(KernelClientTest, RefusalsSayWhy) {
  EXPECT_EQ(wait_for([this](io::IrpRef irp) { al->open(home(), "again", std::move(irp)); }),
            Status::InvalidState);
  on_loop([this] {
    al::Al other(daemon().access_layer(), driver);
    EXPECT_FALSE(other.is_open());
  });
  std::unique_ptr<al::Al> other;
  on_loop([&] { other = std::make_unique<al::Al>(daemon().access_layer(), driver); });
  EXPECT_EQ(wait_for([&](io::IrpRef irp) { other->open("nowhere", "lost", std::move(irp)); }),
            Status::NotFound);
  EXPECT_NE(reason.find("nowhere"), std::string::npos) << reason;
  on_loop([&] { other.reset(); });
}

TEST_P(KernelClientTest, ExchangesMessagesWithAProgram) {
  connect_to_b(QpType::Rc);
  const Region mb = b->region(8192);
  for (const std::uint32_t bytes : {8u, 64u, 65u, 4096u}) {
    SCOPED_TRACE(bytes);
    wakes = 0;
    on_loop([&] { al::arm(cq); });
    EXPECT_EQ(receive(bytes, piece(0, 4096)), Status::Ok);
    mb.fill(bytes);
    qb.send(send_work(1, {mb.sge(0, bytes)}));
    EXPECT_TRUE(comes([this] { return wakes > 0; })) << "no event came";
    const Completion got = one(cq);
    EXPECT_EQ(got.status, WcStatus::Success);
    EXPECT_EQ(got.wr_id, bytes);
    EXPECT_EQ(got.byte_len, bytes);
    EXPECT_EQ(wakes, 1);
    // And back, from memory that did not receive it.
    qb.receive(2, {mb.sge(4096, 4096)});
    EXPECT_EQ(post(WrOpcode::Send, 7, piece(0, bytes)), Status::Ok);
    EXPECT_EQ(one(cq).wr_id, 7u);
    const auto at_b = b->cq().wait(2);
    ASSERT_EQ(at_b.size(), 2u);
    EXPECT_EQ(mb.mismatches(bytes, 4096, bytes), 0u);
  }
  end();
}

// As for programs: one event for new completions, and a second event only for later or unpolled
// ones.
TEST_P(KernelClientTest, AnEventIsForWhatNoneHasReported) {
  connect_to_b(QpType::Rc);
  const Region mb = b->region(4096);
  const auto send_from_b = [&](std::uint64_t wr_id) {
    EXPECT_EQ(receive(wr_id, piece(0, 64)), Status::Ok);
    qb.send(send_work(wr_id, {mb.sge(0, 8)}));
    EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, wr_id);
  };
  on_loop([&] { al::arm(cq); });
  send_from_b(1);
  EXPECT_TRUE(comes([this] { return wakes == 1; }));
  on_loop([&] { al::arm(cq); });
  for (int turn = 0; turn < 3; ++turn) (void)lid_of(*ca);  // an event comes one turn later
  EXPECT_EQ(wakes, 1) << "that one was reported";
  send_from_b(2);
  EXPECT_TRUE(comes([this] { return wakes == 2; }));
  on_loop([&] {
    al::arm(cq);
    Completion first;
    EXPECT_EQ(al::poll(cq, {&first, 1}), 1u);
  });
  EXPECT_TRUE(comes([this] { return wakes == 3; })) << "one was left after the poll";
  end();
}

TEST_P(KernelClientTest, ReadsAndWritesMemoryOfAProgramAndIsReadAndWritten) {
  connect_to_b(QpType::Rc);
  const Region mb = b->region(8192);
  mb.fill(3);
  EXPECT_EQ(post(WrOpcode::RdmaRead, 1, piece(0, 4096), mb.at(0), mb.rkey), Status::Ok);
  EXPECT_EQ(one(cq).status, WcStatus::Success);
  EXPECT_EQ(post(WrOpcode::RdmaWrite, 2, piece(0, 4096), mb.at(4096), mb.rkey), Status::Ok);
  EXPECT_EQ(one(cq).status, WcStatus::Success);
  EXPECT_EQ(mb.mismatches(3, 4096, 4096), 0u);

  Work write = send_work(3, {mb.sge(0, 100)}, WrOpcode::RdmaWrite);
  write.rkey = region.made.rkey;
  write.remote_address = 4096;
  qb.send(write);
  EXPECT_EQ(b->cq().one(WcStatus::Success).wr_id, 3u);
  on_loop([&] { EXPECT_EQ(std::memcmp(memory.bytes, memory.bytes + 4096, 100), 0); });
  Work past = write;
  past.remote_address = 8190;
  qb.send(past);
  EXPECT_EQ(b->cq().one(WcStatus::RemAccessErr).wr_id, 3u);
  EXPECT_TRUE(comes(
      [this] { return !events.empty() && events.front().type == verbs::EventType::QpAccessErr; }));
  end();
}

TEST_P(KernelClientTest, KeepsNoPagesThatProgramsHaveDeregistered) {
  constexpr std::size_t kRegions = 100;
  connect_to_b(QpType::Rc);
  for (std::size_t i = 0; i < kRegions; ++i) {
    const Region mb = b->region(4096);
    EXPECT_EQ(post(WrOpcode::RdmaWrite, i, piece(0, 4096), mb.at(0), mb.rkey), Status::Ok);
    EXPECT_EQ(one(cq).status, WcStatus::Success);
    EXPECT_EQ(b->destroy(Kind::Region, mb.handle), Status::Ok);
  }
  EXPECT_LE(mapped_files_of_programs(), hca::SweepSchedule::kFew);
  end();
}

TEST_P(KernelClientTest, WaitsForAReceiveAndGoesOnByItself) {
  connect_to_b(QpType::Rc);
  const Region mb = b->region(4096);
  on_loop([&] { std::memset(memory.bytes, 0x5a, 64); });
  EXPECT_EQ(post(WrOpcode::Send, 9, piece(0, 64)), Status::Ok);
  on_loop([&] { EXPECT_TRUE(kq.own.is_waiting()); });
  qb.receive(1, {mb.all()});
  EXPECT_EQ(one(cq).wr_id, 9u);
  EXPECT_EQ(b->cq().one(WcStatus::Success).byte_len, 64u);
  end();
}

TEST_P(KernelClientTest, ABadKeyBreaksBothEndsAndFlushes) {
  connect_to_b(QpType::Rc);
  const Region mb = b->region(4096);
  EXPECT_EQ(receive(4, piece(0, 64)), Status::Ok);
  EXPECT_EQ(post(WrOpcode::RdmaWrite, 5, piece(0, 64), mb.at(0), mb.rkey ^ 0x40), Status::Ok);
  std::vector<Completion> got;
  for (int i = 0; i < 2; ++i) got.push_back(one(cq));
  EXPECT_EQ(got[0].status, WcStatus::RemAccessErr);
  EXPECT_EQ(got[0].wr_id, 5u);
  EXPECT_EQ(got[1].status, WcStatus::WrFlushErr);
  EXPECT_EQ(got[1].wr_id, 4u);
  EXPECT_TRUE(qb.reaches(QpState::Error));
  EXPECT_EQ(post(WrOpcode::Send, 6, piece(0, 8)), Status::Ok);
  EXPECT_EQ(one(cq).status, WcStatus::WrFlushErr);
  end();
}

// Once the earlier receives have been ended no poster delivers any more, so a later one need not
// wait for a thread that happens to be in the middle of a work request, or is stopped there.
TEST_P(KernelClientTest, AReceiveThatIsPostedInErrorIsFlushedAtOnce) {
  connect_to_b(QpType::Rc);
  EXPECT_EQ(receive(1, piece(0, 64)), Status::Ok);
  control::QpAttr error;
  error.state = QpState::Error;
  must([&](io::IrpRef irp) { al::modify_qp(kq, verbs::qp_attr::kState, error, std::move(irp)); });
  EXPECT_EQ(one(cq).wr_id, 1u);
  on_loop([&] {
    const std::uint32_t slot = al->plane().slot();
    al->system().arena.slot(slot)->words_used.store(hca::kThreadsPerSlot);
    std::atomic<std::uint64_t>& word = al->system().arena.slot(slot)->threads.back().sequence;
    const std::uint64_t idle = word.load();
    ASSERT_EQ(idle & 1, 0u);
    word.store(idle + 1);
    const Sge sge = piece(0, 64);
    EXPECT_EQ(al::post_recv(kq, 2, {&sge, 1}), Status::Ok);
    Completion got;
    EXPECT_EQ(al::poll(cq, {&got, 1}), 1u);
    EXPECT_EQ(got.wr_id, 2u);
    EXPECT_EQ(got.status, WcStatus::WrFlushErr);
    word.store(idle + 2);
  });
  end();
}

TEST_P(KernelClientTest, OutlivesAProgramThatIsKilled) {
  if (GetParam().where == Where::SameProcess) return;
  Connection with;
  with.timeout = 8;
  with.retry_cnt = 1;
  connect_to_b(QpType::Rc, with);
  EXPECT_EQ(post(WrOpcode::Send, 9, piece(0, 64)), Status::Ok);  // no receive is posted there
  kill_b();
  EXPECT_EQ(one(cq).status, WcStatus::RetryExcErr);
  end();
}

// A driver sends to a program what neither could as one packet.
TEST_P(KernelClientTest, SendsAndReceivesLargeDatagrams) {
  make(QpType::Ud);
  gone(kq);
  must([&](io::IrpRef irp) {
    al::create_large_qp(pd, {16, 16, 2, 2, 64, 0}, cq, cq, kq, std::move(irp));
  });
  QpSpec spec{QpType::Ud};
  spec.flags = control::qp_flag::kTakesLarge;
  qb = b->new_qp(spec);
  const Connection with;
  must([&](io::IrpRef irp) {
    al::modify_qp(kq, required(QpType::Ud, QpState::Reset, QpState::Init), init_attributes(with),
                  std::move(irp));
  });
  control::QpAttr ready;
  ready.state = QpState::Rtr;
  ASSERT_EQ(modify(QpType::Ud, QpState::Init, ready), Status::Ok) << reason;
  ready.state = QpState::Rts;
  ASSERT_EQ(modify(QpType::Ud, QpState::Rtr, ready), Status::Ok) << reason;
  to_init(qb, QpType::Ud, with);
  to_rtr(qb, QpType::Ud, qb, with);
  to_rts(qb, QpType::Ud, with);
  const Region mb = b->region(8192);
  qb.receive(1, {mb.all()});
  hca::SendWqe wqe;
  const Sge sge = piece(0, 8000);
  wqe.wr_id = 11;
  wqe.flags = send_flag::kSignaled;
  wqe.sge = &sge;
  wqe.num_sge = 1;
  wqe.av = qb.side->path_to(*b);
  wqe.remote_qpn = qb.qpn;
  wqe.remote_qkey = with.qkey;
  on_loop([&] {
    EXPECT_TRUE(al::may_send_large(kq, wqe.av, qb.qpn));
    EXPECT_FALSE(al::may_send_large(kq, wqe.av, kq.made.qpn ^ 0x800000u));
    EXPECT_EQ(al::post_send(kq, wqe), Status::Ok);
  });
  EXPECT_EQ(one(cq).status, WcStatus::Success);
  EXPECT_EQ(b->cq().one(WcStatus::Success).byte_len, 8040u);
  // And back.
  EXPECT_EQ(receive(12, piece(0, 8192)), Status::Ok);
  Work back = send_work(2, {mb.sge(0, 8100)});
  back.address = b->new_address(b->path_to(*a));
  back.remote_qpn = kq.made.qpn;
  back.remote_qkey = with.qkey;
  qb.send(back);
  EXPECT_EQ(one(cq).byte_len, 8140u);
  end();
}

TEST_P(KernelClientTest, SendsAndReceivesDatagrams) {
  make(QpType::Ud);
  QpSpec spec;
  spec.type = QpType::Ud;
  qb = b->new_qp(spec);
  const Connection with;
  ASSERT_EQ(modify(QpType::Ud, QpState::Reset, init_attributes(with)), Status::Ok) << reason;
  control::QpAttr ready;
  ready.state = QpState::Rtr;
  ASSERT_EQ(modify(QpType::Ud, QpState::Init, ready), Status::Ok) << reason;
  ready.state = QpState::Rts;
  ASSERT_EQ(modify(QpType::Ud, QpState::Rtr, ready), Status::Ok) << reason;
  to_init(qb, QpType::Ud, with);
  to_rtr(qb, QpType::Ud, qb, with);
  to_rts(qb, QpType::Ud, with);
  const Region mb = b->region(4096);
  qb.receive(1, {mb.all()});
  on_loop([&] { std::memset(memory.bytes, 0x33, 100); });
  hca::SendWqe wqe;
  const Sge sge = piece(0, 100);
  wqe.wr_id = 11;
  wqe.flags = send_flag::kSignaled;
  wqe.sge = &sge;
  wqe.num_sge = 1;
  wqe.av = qb.side->path_to(*b);
  wqe.remote_qpn = qb.qpn;
  wqe.remote_qkey = with.qkey;
  on_loop([&] { EXPECT_EQ(al::post_send(kq, wqe), Status::Ok); });
  EXPECT_EQ(one(cq).status, WcStatus::Success);
  const Completion got = b->cq().one(WcStatus::Success);
  EXPECT_EQ(got.byte_len, 140u);  // includes the room of the GRH
  EXPECT_EQ(got.src_qp, kq.made.qpn);
  end();
}

}  // namespace
}  // namespace ib::conformance
