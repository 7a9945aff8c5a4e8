// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Programs with the services of drivers (user/services), against a whole softibd: groups,
// paths, connections, and the ends of a program, of an HCA and of softibd in the middle.
#include "peer/child.h"
#include "peer/programs.h"
#include "services/services_fixture.h"

#include <gtest/gtest.h>

#include <array>

namespace ib::conformance {
namespace {

using control::CmEventKind;

class UserServices : public ServicesFixture {
 protected:
  void TearDown() override {
    const bool is_up = !daemon_->has_ended();
    east_.reset();
    west_.reset();
    if (is_up) {
      EXPECT_EQ(wait_until_left(socket_), "");
    }
    daemon_.reset();  // fails if the verifier has found something
  }

  control::CmHandle listen(ServiceClient& client, std::uint64_t service = kService) {
    control::CmListenIn in;
    in.service_id = service;
    Done done;
    EXPECT_EQ(client.cm().listen(in, done.take()), Status::Ok);
    EXPECT_EQ(client.end_of(done), Status::Ok) << done.reason;
    return done.handle;
  }
  control::SaPath path() {
    const auto path = east_->path_to(west_->gid());
    EXPECT_TRUE(path) << user::last_reason();
    return path ? *path : control::SaPath{};
  }
  Status change_hca(const char* node, control::HcaAction action) {
    control::ChangeHcaIn in;
    put_text(in.node, node);
    put_text(in.ca, "softib0");
    in.action = action;
    std::string reason;
    auto channel = os::connect_channel(socket_, reason);
    if (!channel) return channel.error();
    control::CaName added;
    return (*channel)
        ->call(static_cast<std::uint32_t>(control::Code::ChangeHca), 0, bytes_of(in),
               room_of(added))
        .status;
  }

  void set_port(const char* node, bool up) {
    control::SetPortIn in;
    put_text(in.node, node);
    put_text(in.ca, "softib0");
    in.port = 1;
    in.up = up ? 1 : 0;
    std::string reason;
    auto channel = os::connect_channel(socket_, reason);
    ASSERT_TRUE(channel) << reason;
    const auto code = static_cast<std::uint32_t>(control::Code::SetPort);
    EXPECT_EQ((*channel)->call(code, 0, bytes_of(in), {}).status, Status::Ok);
  }

  // An established connection from east to west.
  struct Ends {
    user::QueuePair* east_qp = nullptr;
    user::QueuePair* west_qp = nullptr;
    control::CmHandle east = 0;
    control::CmHandle west = 0;
  };
  Ends connect_both() {
    Ends ends;
    const control::CmHandle listener = listen(*west_);
    ends.east_qp = east_->make_qp();
    ends.west_qp = west_->make_qp();
    Answered<control::CmRequest> request;
    EXPECT_EQ(west_->cm().get_request(listener, request.take()), Status::Ok);
    Answered<control::CmReply> reply;
    control::CmConnectIn in = connect_in(path(), ends.east_qp->qpn());
    in.data.put(std::array<std::uint8_t, 3>{1, 2, 3});
    EXPECT_EQ(east_->cm().connect(in, reply.take()), Status::Ok);
    EXPECT_EQ(west_->end_of(request), Status::Ok) << request.reason;
    EXPECT_EQ(request.out.remote_qpn, ends.east_qp->qpn());
    EXPECT_EQ(request.out.data.bytes[2], 3);
    ends.west = request.out.handle;
    for (const QpState state : {QpState::Init, QpState::Rtr, QpState::Rts}) {
      EXPECT_EQ(west_->to_state(*ends.west_qp, ends.west, state, 7), Status::Ok);
    }
    control::CmAcceptIn accept;
    accept.handle = ends.west;
    accept.qpn = ends.west_qp->qpn();
    accept.starting_psn = 7;
    Answered<control::CmEvent> accepted;
    EXPECT_EQ(west_->cm().accept(accept, accepted.take()), Status::Ok);
    EXPECT_EQ(east_->end_of(reply), Status::Ok) << reply.reason;
    EXPECT_EQ(reply.out.remote_qpn, ends.west_qp->qpn());
    ends.east = reply.out.handle;
    for (const QpState state : {QpState::Init, QpState::Rtr, QpState::Rts}) {
      EXPECT_EQ(east_->to_state(*ends.east_qp, ends.east, state), Status::Ok);
    }
    Done established;
    EXPECT_EQ(east_->cm().establish({ends.east, 0, {}}, established.take()), Status::Ok);
    EXPECT_EQ(east_->end_of(established), Status::Ok) << established.reason;
    EXPECT_EQ(west_->end_of(accepted), Status::Ok) << accepted.reason;
    return ends;
  }
};

TEST_F(UserServices, TwoProgramsJoinOneGroup) {
  control::SaJoinIn in;
  in.mgid = group(1);
  Answered<control::SaGroup> alone;
  ASSERT_EQ(west_->sa().join(in, alone.take()), Status::Ok);
  EXPECT_EQ(west_->end_of(alone), Status::InvalidParameter) << "it may not make the group";
  EXPECT_NE(alone.reason, "");
  in.may_create = true;
  in.qkey = 0xb1b;
  Answered<control::SaGroup> east;
  ASSERT_EQ(east_->sa().join(in, east.take()), Status::Ok);
  ASSERT_EQ(east_->end_of(east), Status::Ok) << east.reason;
  in.may_create = false;
  Answered<control::SaGroup> west;
  ASSERT_EQ(west_->sa().join(in, west.take()), Status::Ok);
  ASSERT_EQ(west_->end_of(west), Status::Ok) << west.reason;
  EXPECT_EQ(west.out.mlid, east.out.mlid);
  EXPECT_EQ(west.out.qkey, 0xb1bu);
  EXPECT_EQ(west.out.mtu, verbs::Mtu::B4096);
  Done left;
  ASSERT_EQ(west_->sa().destroy(west.out.handle, left.take()), Status::Ok);
  EXPECT_EQ(west_->end_of(left), Status::Ok);
  ASSERT_EQ(west_->sa().destroy(west.out.handle, left.take()), Status::Ok);
  EXPECT_TRUE(west_->comes([&] { return left.times == 2; }));
  EXPECT_EQ(left.status, Status::NotFound);
}

TEST_F(UserServices, PathsAndReports) {
  const control::SaPath found = path();
  EXPECT_EQ(found.path.dgid, west_->gid());
  EXPECT_NE(found.path.dlid, 0);
  Answered<control::SaPath> nowhere;
  control::SaPathIn in;
  in.dgid = group(7);
  in.dgid[0] = 0xfe;
  ASSERT_EQ(east_->sa().query_path(in, nowhere.take()), Status::Ok);
  EXPECT_NE(east_->end_of(nowhere), Status::Ok);
  EXPECT_NE(nowhere.reason, "");

  Done subscribed;
  ASSERT_EQ(east_->sa().subscribe({1, 66, 0}, subscribed.take()), Status::Ok);
  ASSERT_EQ(east_->end_of(subscribed), Status::Ok) << subscribed.reason;
  Answered<control::SaEvent> report;
  ASSERT_EQ(east_->sa().wait_event(subscribed.handle, report.take()), Status::Ok);
  control::SaJoinIn join;
  join.mgid = group(2);
  join.may_create = true;
  Answered<control::SaGroup> joined;
  ASSERT_EQ(west_->sa().join(join, joined.take()), Status::Ok);
  ASSERT_EQ(west_->end_of(joined), Status::Ok) << joined.reason;
  EXPECT_EQ(east_->end_of(report), Status::Ok) << report.reason;
  EXPECT_EQ(report.out.trap, 66);
  EXPECT_EQ(report.out.subject, group(2));
}

TEST_F(UserServices, APortThatGoesDownEndsMembershipsWithAnEvent) {
  control::SaJoinIn in;
  in.mgid = group(3);
  in.may_create = true;
  Answered<control::SaGroup> joined;
  ASSERT_EQ(west_->sa().join(in, joined.take()), Status::Ok);
  ASSERT_EQ(west_->end_of(joined), Status::Ok) << joined.reason;
  Answered<control::SaEvent> lost;
  ASSERT_EQ(west_->sa().wait_event(joined.out.handle, lost.take()), Status::Ok);
  set_port(kWest, false);
  EXPECT_EQ(west_->end_of(lost), Status::Ok) << lost.reason;
  EXPECT_EQ(lost.out.kind, control::SaEventKind::MembershipLost);
  Answered<control::SaGroup> refused;
  ASSERT_EQ(west_->sa().join(in, refused.take()), Status::Ok);
  EXPECT_EQ(west_->end_of(refused), Status::InvalidState) << refused.reason;
  set_port(kWest, true);
  const auto joins = [&] {
    Answered<control::SaGroup> again;
    return west_->sa().join(in, again.take()) == Status::Ok && west_->end_of(again) == Status::Ok;
  };
  bool has_joined = false;
  for (int i = 0; i < 10'000 && !has_joined; ++i) has_joined = joins();
  EXPECT_TRUE(has_joined) << "the subnet manager has made the port active";
}

TEST_F(UserServices, ConnectsAndDisconnects) {
  const Ends ends = connect_both();
  user::SendWqe wqe;
  wqe.opcode = WrOpcode::Send;
  user::set_flags(wqe, send_flag::kSignaled);
  user::set_sges(wqe, {});
  EXPECT_EQ(ends.west_qp->queues().post_recv(1, {}), Status::Ok);
  ends.east_qp->queues().send_lock().lock();
  EXPECT_EQ(ends.east_qp->queues().post_send(wqe), Status::Ok);
  ends.east_qp->queues().send_lock().unlock();
  EXPECT_TRUE(east_->completes());
  EXPECT_TRUE(west_->completes());

  Answered<control::CmEvent> heard;
  ASSERT_EQ(west_->cm().wait_event(ends.west, heard.take()), Status::Ok);
  Answered<control::CmEvent> over;
  ASSERT_EQ(east_->cm().disconnect({ends.east, 0, {}}, over.take()), Status::Ok);
  ASSERT_EQ(west_->end_of(heard), Status::Ok);
  EXPECT_EQ(heard.out.kind, CmEventKind::Disconnecting);
  Done confirmed;
  ASSERT_EQ(west_->cm().confirm_disconnect({ends.west, 0, {}}, confirmed.take()), Status::Ok);
  EXPECT_EQ(west_->end_of(confirmed), Status::Ok) << confirmed.reason;
  EXPECT_EQ(east_->end_of(over), Status::Ok) << over.reason;
  EXPECT_EQ(over.out.by, control::CmEndedBy::Answer);
}

TEST_F(UserServices, ARejectionBringsItsReasonAndData) {
  const control::CmHandle listener = listen(*west_);
  Answered<control::CmRequest> request;
  ASSERT_EQ(west_->cm().get_request(listener, request.take()), Status::Ok);
  Answered<control::CmReply> reply;
  const control::CmConnectIn in = connect_in(path(), east_->make_qp()->qpn());
  ASSERT_EQ(east_->cm().connect(in, reply.take()), Status::Ok);
  ASSERT_EQ(west_->end_of(request), Status::Ok);
  control::CmRejectIn reject;
  reject.handle = request.out.handle;
  reject.data.put(std::array<std::uint8_t, 2>{8, 9});
  ASSERT_EQ(west_->cm().reject(reject), Status::Ok);
  (void)west_->channel().process();
  EXPECT_EQ(east_->end_of(reply), Status::Disconnected);
  EXPECT_EQ(reply.out.reject_reason, 28u);
  EXPECT_EQ(reply.out.data.bytes[1], 9);
  EXPECT_NE(reply.reason.find("rejected"), std::string::npos) << reply.reason;
  EXPECT_EQ(reply.out.handle, 0u);
}

TEST_F(UserServices, AQueuePairOfAnotherProgramIsNoEndOfAConnection) {
  const control::CmHandle listener = listen(*west_);
  const auto other = start(kEast);
  ASSERT_NE(other, nullptr);
  const std::uint32_t foreign = other->make_qp()->qpn();
  for (const std::uint32_t qpn : {foreign, foreign + 1, 1u, 0u, 0xffffffu, 0xffffffffu}) {
    Answered<control::CmReply> reply;
    ASSERT_EQ(east_->cm().connect(connect_in(path(), qpn), reply.take()), Status::Ok);
    EXPECT_EQ(east_->end_of(reply), Status::AccessDenied) << qpn;
  }
  Answered<control::CmRequest> request;
  ASSERT_EQ(west_->cm().get_request(listener, request.take()), Status::Ok);
  Answered<control::CmReply> reply;
  const control::CmConnectIn in = connect_in(path(), east_->make_qp()->qpn());
  ASSERT_EQ(east_->cm().connect(in, reply.take()), Status::Ok);
  ASSERT_EQ(west_->end_of(request), Status::Ok);
  control::CmAcceptIn accept;
  accept.handle = request.out.handle;
  accept.qpn = foreign;
  Answered<control::CmEvent> accepted;
  ASSERT_EQ(west_->cm().accept(accept, accepted.take()), Status::Ok);
  EXPECT_EQ(west_->end_of(accepted), Status::AccessDenied);
}

TEST_F(UserServices, DroppingAFileWithdrawsWhatItHas) {
  const Ends ends = connect_both();
  Answered<control::CmEvent> heard;
  ASSERT_EQ(east_->cm().wait_event(ends.east, heard.take()), Status::Ok);
  Answered<control::CmEvent> never;
  ASSERT_EQ(west_->cm().wait_event(ends.west, never.take()), Status::Ok);
  west_->drop_cm();
  EXPECT_EQ(east_->end_of(heard), Status::Ok);
  EXPECT_EQ(heard.out.kind, CmEventKind::Disconnecting);
  EXPECT_TRUE(west_->comes([&] { return west_->channel().under_way() == 0; }));
  EXPECT_EQ(never.times, 0);
  Done done;
  user::Cm again(west_->channel());
  ASSERT_EQ(again.open(west_->hca(), done.take()), Status::Ok);
  ASSERT_EQ(west_->end_of(done), Status::Ok) << done.reason;
  Done listening;
  control::CmListenIn in;
  in.service_id = kService;
  ASSERT_EQ(again.listen(in, listening.take()), Status::Ok);
  EXPECT_EQ(west_->end_of(listening), Status::Ok) << "the old listener is gone";
}

TEST_F(UserServices, AKilledProgramLeavesNothing) {
  Child child({conformance_peer(), socket_, "auto", kWest, "--services"});
  ASSERT_TRUE(child.lives() && child.has_output(kTimeLimitMs));
  std::uint8_t byte = 0;
  ASSERT_EQ(::recv(child.socket(), &byte, 1, 0), 1);
  user::QueuePair* qp = east_->make_qp();
  Answered<control::CmReply> reply;
  ASSERT_EQ(east_->cm().connect(connect_in(path(), qp->qpn()), reply.take()), Status::Ok);
  ASSERT_EQ(east_->end_of(reply), Status::Ok) << reply.reason;
  ASSERT_EQ(east_->cm().establish({reply.out.handle, 0, {}}), Status::Ok);
  ASSERT_TRUE(child.has_output(kTimeLimitMs));
  control::SaJoinIn join;
  join.mgid = group(kPeersGroup);
  join.join_state = 2;  // does not keep the group
  Answered<control::SaGroup> joined;
  ASSERT_EQ(east_->sa().join(join, joined.take()), Status::Ok);
  ASSERT_EQ(east_->end_of(joined), Status::Ok) << joined.reason;
  Done subscribed;
  ASSERT_EQ(east_->sa().subscribe({1, 67, 0}, subscribed.take()), Status::Ok);
  ASSERT_EQ(east_->end_of(subscribed), Status::Ok) << subscribed.reason;
  Answered<control::SaEvent> deleted;  // the group
  ASSERT_EQ(east_->sa().wait_event(subscribed.handle, deleted.take()), Status::Ok);
  Answered<control::CmEvent> heard;
  ASSERT_EQ(east_->cm().wait_event(reply.out.handle, heard.take()), Status::Ok);
  child.kill();
  ASSERT_EQ(east_->end_of(heard), Status::Ok) << heard.reason;
  EXPECT_EQ(heard.out.kind, CmEventKind::Disconnecting);
  EXPECT_NE(listen(*west_), 0u) << "its listener is gone";
  EXPECT_EQ(east_->end_of(deleted), Status::Ok) << deleted.reason;
  EXPECT_EQ(deleted.out.subject, group(kPeersGroup));
}

TEST_F(UserServices, AnHcaThatIsPulledOutEndsAllRequests) {
  const Ends ends = connect_both();
  Answered<control::CmEvent> waits;
  ASSERT_EQ(west_->cm().wait_event(ends.west, waits.take()), Status::Ok);
  Done subscribed;
  ASSERT_EQ(west_->sa().subscribe({1, 64, 0}, subscribed.take()), Status::Ok);
  ASSERT_EQ(west_->end_of(subscribed), Status::Ok) << subscribed.reason;
  Answered<control::SaEvent> report;
  ASSERT_EQ(west_->sa().wait_event(subscribed.handle, report.take()), Status::Ok);
  Answered<control::CmRequest> request;
  ASSERT_EQ(west_->cm().get_request(listen(*west_, kService + 1), request.take()), Status::Ok);
  ASSERT_EQ(change_hca(kWest, control::HcaAction::Eject), Status::Ok);
  EXPECT_EQ(west_->end_of(waits), Status::DeviceRemoved);
  EXPECT_EQ(west_->end_of(report), Status::DeviceRemoved);
  EXPECT_EQ(west_->end_of(request), Status::DeviceRemoved);
  Done done;
  ASSERT_EQ(west_->cm().destroy(ends.west, done.take()), Status::Ok);
  EXPECT_EQ(west_->end_of(done), Status::Ok);
  Answered<control::SaPath> path;
  control::SaPathIn in;
  in.dgid = east_->gid();
  ASSERT_EQ(west_->sa().query_path(in, path.take()), Status::Ok);
  EXPECT_EQ(west_->end_of(path), Status::DeviceRemoved);
  EXPECT_TRUE(west_->is_up()) << "the channel goes on";
}

TEST_F(UserServices, TheEndOfSoftibdEndsAllRequests) {
  const Ends ends = connect_both();
  Answered<control::CmEvent> waits;
  ASSERT_EQ(west_->cm().wait_event(ends.west, waits.take()), Status::Ok);
  EXPECT_EQ(daemon_->stop(), softib::DaemonExit::Ended);
  (void)west_->comes([&] { return !west_->is_up(); });
  EXPECT_EQ(waits.times, 1);
  EXPECT_EQ(waits.status, Status::Disconnected);
  EXPECT_NE(waits.reason, "");
  EXPECT_EQ(west_->channel().under_way(), 0u);
  EXPECT_EQ(west_->cm().destroy(ends.west), Status::Disconnected);
}

TEST_F(UserServices, ACallbackMayDestroyItsFile) {
  int called = 0;
  auto sa = std::make_unique<user::Sa>(east_->channel());
  ASSERT_EQ(sa->open(east_->hca(),
                     [&](const user::ServiceEnd&) {
                       ++called;
                       sa.reset();
                     }),
            Status::Ok);
  EXPECT_TRUE(east_->comes([&] { return called == 1; }));
  auto dropped = std::make_unique<user::Sa>(east_->channel());
  ASSERT_EQ(dropped->open(east_->hca(), [&](const user::ServiceEnd&) { ++called; }), Status::Ok);
  dropped.reset();  // while it is being opened
  EXPECT_TRUE(east_->comes([&] { return east_->channel().under_way() == 0; }));
  EXPECT_EQ(called, 1);
}

}  // namespace
}  // namespace ib::conformance
