// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// KernelClient: a client of the access layer in the test's own softibd. Its calls run on softibd's
// thread at dispatch level; the test waits for them on its own thread.
#pragma once

#include "al/verbs.h"
#include "softibd/in_process_daemon.h"
#include "verbs_fixture.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace ib::conformance {

class KernelClient : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    on_loop([this] {
      al = std::make_unique<al::Al>(daemon().access_layer(), driver);
      al->set_on_event([this](const control::EventOut& event) { events.push_back(event); });
      ca = std::make_unique<al::Ca>(*al);
    });
    ASSERT_EQ(
        wait_for([this](io::IrpRef irp) { al->open(home(), "kernel_client", std::move(irp)); }),
        Status::Ok)
        << reason;
    ASSERT_EQ(wait_for([this](io::IrpRef irp) { ca->open("\\Device\\ibal", std::move(irp)); }),
              Status::Ok)
        << reason;
  }
  void TearDown() override {
    EXPECT_EQ(wait_for([this](io::IrpRef irp) { ca->close(std::move(irp)); }), Status::Ok)
        << reason;
    EXPECT_EQ(wait_for([this](io::IrpRef irp) { al->close(std::move(irp)); }), Status::Ok)
        << reason;
    on_loop([this] {  // after everything that close() has queued
      EXPECT_EQ(driver.references.total(), 0u);
      ca.reset();
      al.reset();
    });
    VerbsTest::TearDown();
  }

  static softib::InProcessDaemon& daemon() { return TestFabric::shared().daemon(); }
  template <class Work>
  static void on_loop(Work&& work) {
    daemon().on_loop(work);
  }
  // Issues a request at dispatch level and waits here for its completion.
  template <class Issue>
  Status wait_for(Issue&& issue) {
    io::Irp irp;
    std::promise<void> done;
    on_loop([&] {
      issue(irp.start(
          [](io::Irp&, void* context) { static_cast<std::promise<void>*>(context)->set_value(); },
          &done));
    });
    if (done.get_future().wait_for(std::chrono::milliseconds(kTimeLimitMs)) !=
        std::future_status::ready) {
      // The memory of the request is on this stack, so returning is not safe.
      std::fprintf(stderr, "a request of a kernel client has not ended in %u ms\n", kTimeLimitMs);
      std::abort();
    }
    reason = irp.reason;
    information = irp.information;
    return irp.status;
  }
  // Fails the test with the reason unless the request succeeds.
  template <class Issue>
  void must(Issue&& issue) {
    ASSERT_EQ(wait_for(issue), Status::Ok) << reason;
  }
  template <class Object>
  void gone(Object& object) {
    must([&](io::IrpRef irp) { al::destroy(object, std::move(irp)); });
  }
  std::uint16_t lid_of(al::Ca& of) {
    control::PortAttr port;
    const control::PortIn first{1, 0};
    EXPECT_EQ(wait_for([&](io::IrpRef irp) {
                of.call(control::Code::QueryPort, first, port, std::move(irp));
              }),
              Status::Ok);
    return port.lid;
  }
  // Checks the condition on softibd's thread until it holds. Returns false after kTimeLimitMs.
  template <class Condition>
  bool comes(Condition&& condition) {
    for (std::uint32_t ms = 0; ms < kTimeLimitMs; ++ms) {
      bool so = false;
      on_loop([&] { so = condition(); });
      if (so) return true;
      // tidy: allow(sleep) looks again until the deadline
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  Completion one(al::Cq& from) {
    Completion got;
    EXPECT_TRUE(comes([&] { return al::poll(from, {&got, 1}) == 1; })) << "no completion came";
    return got;
  }

  void make(QpType type) {
    const control::AllocDmIn room{8192, 12, 0};
    ASSERT_EQ(wait_for([&](io::IrpRef irp) { al::alloc_pd(*ca, pd, std::move(irp)); }), Status::Ok);
    EXPECT_EQ(information, pd.handle);
    ASSERT_EQ(wait_for([&](io::IrpRef irp) { al::alloc_dm(*ca, room, memory, std::move(irp)); }),
              Status::Ok)
        << reason;
    ASSERT_EQ(wait_for([&](io::IrpRef irp) {
                al::reg_dm(pd, memory, access::kLocalWrite | access::kRemoteAny, region,
                           std::move(irp));
              }),
              Status::Ok)
        << reason;
    ASSERT_EQ(wait_for([&](io::IrpRef irp) { al::create_cq(*ca, 64, cq, std::move(irp)); }),
              Status::Ok)
        << reason;
    cq.on_completion = [this](al::Cq&) { ++wakes; };
    const control::QpCaps caps{16, 16, 2, 2, 64, 0};
    ASSERT_EQ(wait_for([&](io::IrpRef irp) {
                al::create_qp(pd, type, caps, cq, cq, kq, std::move(irp));
              }),
              Status::Ok)
        << reason;
  }
  Status modify(QpType type, QpState from, const control::QpAttr& attr) {
    return wait_for([&](io::IrpRef irp) {
      al::modify_qp(kq, required(type, from, attr.state), attr, std::move(irp));
    });
  }
  // Connects side b's queue pair and the kernel client's.
  void connect_to_b(QpType type, const Connection& with = {}) {
    make(type);
    QpSpec spec;
    spec.type = type;
    qb = b->new_qp(spec);
    lid = lid_of(*ca);
    ASSERT_EQ(modify(type, QpState::Reset, init_attributes(with)), Status::Ok) << reason;
    to_init(qb, type, with);
    control::QpAttr rtr = rtr_attributes(qb, qb, with);
    rtr.dest_qpn = qb.qpn;
    rtr.av = qb.side->path_to(*b);
    ASSERT_EQ(modify(type, QpState::Init, rtr), Status::Ok) << reason;
    rtr.dest_qpn = kq.made.qpn;
    rtr.av.dlid = lid;
    ASSERT_EQ(qb.try_modify(required(type, QpState::Init, QpState::Rtr), rtr), Status::Ok);
    ASSERT_EQ(modify(type, QpState::Rtr, rts_attributes(with)), Status::Ok) << reason;
    to_rts(qb, type, with);
  }
  void end() {
    if (kq.exists()) {
      EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(kq, std::move(irp)); }), Status::Ok);
    }
    EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(region, std::move(irp)); }), Status::Ok);
    EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(memory, std::move(irp)); }), Status::Ok);
    EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(cq, std::move(irp)); }), Status::Ok);
    EXPECT_EQ(wait_for([&](io::IrpRef irp) { al::destroy(pd, std::move(irp)); }), Status::Ok);
  }
  Status post(WrOpcode opcode, std::uint64_t wr_id, const Sge& sge, std::uint64_t remote = 0,
              std::uint32_t rkey = 0) {
    hca::SendWqe wqe;
    wqe.wr_id = wr_id;
    wqe.opcode = opcode;
    wqe.flags = send_flag::kSignaled;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    wqe.remote_address = remote;
    wqe.rkey = rkey;
    Status status = Status::Pending;
    on_loop([&] { status = al::post_send(kq, wqe); });
    return status;
  }
  Status receive(std::uint64_t wr_id, const Sge& sge) {
    Status status = Status::Pending;
    on_loop([&] { status = al::post_recv(kq, wr_id, {&sge, 1}); });
    return status;
  }
  Sge piece(std::uint64_t offset, std::uint32_t length) const {
    return {offset, length, region.made.lkey};
  }

  io::DriverObject driver{"kernel_client_test"};
  std::unique_ptr<al::Al> al;
  std::unique_ptr<al::Ca> ca;
  al::Pd pd;
  al::DeviceMemory memory;
  al::Region region;
  al::Cq cq;
  al::Qp kq;
  std::uint16_t lid = 0;
  int wakes = 0;
  std::vector<control::EventOut> events;
  std::string reason;
  std::uint64_t information = 0;
};

}  // namespace ib::conformance
