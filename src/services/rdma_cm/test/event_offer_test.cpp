// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events that are offered with the answer to the command that has caused them: each is taken once,
// by its client or by GET_EVENT (docs/design/0016-rdma-cm-device.md).
#include "services/rdma_cm/test/programs_test.h"
#include "verbs/control_rdma_cm.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ib::services::rdma_cm {
namespace {

class OfferedEvents : public ::testing::Test {
 protected:
  OfferedEvents() {
    program.is_late = true;
    program.offer = &word;
  }

  std::uint32_t create() { return program.create(PortSpace::Tcp, 0x22); }
  Service::Answer resolve(std::uint32_t id) {
    ucma::ResolveIp in;
    in.id = id;
    write_address(Program::at(w.address(1), 7471), in.dst_addr);
    return program.write(Code::ResolveIp, in);
  }
  // An id with an event that nobody is offered.
  std::uint32_t waiting() {
    program.offer = nullptr;
    const std::uint32_t id = create();
    resolve(id);
    program.offer = &word;
    return id;
  }
  // An id whose request has come to the server, and one more with an event that waits.
  std::uint32_t connecting(Program& server) {
    program.offer = nullptr;
    const std::uint32_t listener = server.create(PortSpace::Tcp, 0x11);
    EXPECT_EQ(server.bind(listener, w.address(1), 7471), Error::None);
    EXPECT_EQ(server.listen(listener), Error::None);
    const std::uint32_t id = connect();
    waiting();
    return id;
  }
  // Its request comes to the server.
  std::uint32_t connect() {
    const std::uint32_t id = create();
    resolve(id);
    program.expect(Event::AddrResolved);
    EXPECT_EQ(program.write(Code::ResolveRoute, ucma::ResolveRoute{id, 1000}).error, Error::None);
    program.expect(Event::RouteResolved);
    EXPECT_EQ(program.connect(id, 0x123), Error::None);
    w.executor.advance(std::chrono::milliseconds(1));
    return id;
  }
  void rejects(Program& server) {
    server.destroy(server.expect(Event::ConnectRequest).id);
    w.executor.advance(std::chrono::milliseconds(1));
  }
  // Returns the number of the offer that came with the answer, and the event; 0: none.
  std::uint32_t offered(const AnswersAhead& ahead, ucma::EventOut& event) {
    verbs::control::RdmaCmAhead head;
    if (ahead.size() < sizeof head + sizeof event) return 0;
    std::memcpy(&head, ahead.data(), sizeof head);
    EXPECT_EQ(head.code, verbs::control::kRdmaCmGetEvent);
    EXPECT_EQ(head.size, sizeof event);
    flags = head.option;
    std::memcpy(&event, ahead.data() + sizeof head, sizeof event);
    return head.id;
  }
  std::uint32_t offered(const Service::Answer& answer, ucma::EventOut& event) {
    return offered(answer.ahead, event);
  }
  std::uint32_t offered(const Service::Answer& answer) {
    ucma::EventOut event;
    return offered(answer, event);
  }

  World w{verbs::LinkLayer::InfiniBand};
  Program program{w, 0};
  OfferWord word;
  std::uint32_t flags = 0;  // of the last offer
};

TEST_F(OfferedEvents, OneThatIsTakenIsGone) {
  const std::uint32_t id = create();
  ucma::EventOut event;
  const std::uint32_t offer = offered(resolve(id), event);
  ASSERT_NE(offer, 0u);
  EXPECT_EQ(event.event, Event::AddrResolved);
  EXPECT_EQ(event.uid, 0x22u);
  EXPECT_EQ(event.id, id);
  EXPECT_TRUE(word.take(offer));
  EXPECT_FALSE(program.event());
  program.notice();
  EXPECT_EQ(program.notices, 0);
  EXPECT_EQ(program.destroy(id), 1u) << "it counts as reported";
}

TEST_F(OfferedEvents, ThatOfARouteFollows) {
  const std::uint32_t id = create();
  EXPECT_TRUE(word.take(offered(resolve(id))));
  ucma::EventOut event;
  const std::uint32_t offer =
      offered(program.write(Code::ResolveRoute, ucma::ResolveRoute{id, 1000}), event);
  EXPECT_EQ(event.event, Event::RouteResolved);
  EXPECT_TRUE(word.take(offer));
  EXPECT_EQ(program.destroy(id), 2u);
}

TEST_F(OfferedEvents, GetEventHasOneThatIsNotTaken) {
  const std::uint32_t id = create();
  const std::uint32_t offer = offered(resolve(id));
  program.expect(Event::AddrResolved);
  EXPECT_FALSE(word.take(offer));
  EXPECT_FALSE(program.event());
  EXPECT_EQ(program.destroy(id), 1u);
}

TEST_F(OfferedEvents, NoticeIsGivenOfOneThatIsNotTaken) {
  const std::uint32_t offer = offered(resolve(create()));
  program.notice();
  EXPECT_EQ(program.notices, 1);
  EXPECT_FALSE(word.take(offer)) << "nobody would take the notice";
  program.expect(Event::AddrResolved);
  EXPECT_TRUE(program.is_drained);
}

TEST_F(OfferedEvents, OneComesWithItsNotice) {
  const std::uint32_t id = create();
  resolve(id);
  program.notice();
  ucma::EventOut event;
  const std::uint32_t offer = offered(program.ahead, event);
  EXPECT_EQ(event.event, Event::AddrResolved);
  EXPECT_EQ(event.id, id);
  EXPECT_EQ(flags, verbs::control::rdma_cm_flag::kDrained);
  EXPECT_TRUE(word.take(offer));
  EXPECT_FALSE(program.event());
  EXPECT_FALSE(program.is_drained) << "its client has taken the notice";
  EXPECT_EQ(program.destroy(id), 1u);
}

// The program sends no command then.
TEST_F(OfferedEvents, OneThatIsTakenIsListedAsTaken) {
  const std::uint32_t id = create();
  resolve(id);
  program.notice();
  const auto events_waiting = [&] {
    for (const Listing& one : w.service.list()) {
      if (one.id == id) return static_cast<int>(one.events_waiting);
    }
    return -1;
  };
  EXPECT_EQ(events_waiting(), 1);
  ucma::EventOut event;
  EXPECT_TRUE(word.take(offered(program.ahead, event))) << "a list takes no offer away";
  EXPECT_EQ(events_waiting(), 0);
}

TEST_F(OfferedEvents, ARequestThatIsTakenLeavesItsSeatInTheBacklog) {
  program.offer = nullptr;
  Program server{w, 1};
  server.is_late = true;
  server.offer = &word;
  const std::uint32_t listener = server.create(PortSpace::Tcp, 0x11);
  ASSERT_EQ(server.bind(listener, w.address(1), 7471), Error::None);
  ASSERT_EQ(server.listen(listener, 1), Error::None);
  connect();
  server.notice();
  ucma::EventOut event;
  EXPECT_TRUE(word.take(offered(server.ahead, event)));
  EXPECT_EQ(event.event, Event::ConnectRequest);
  connect();
  EXPECT_FALSE(program.event()) << "it was not refused";
  server.expect(Event::ConnectRequest);
}

TEST_F(OfferedEvents, TheFirstOfTwoLeavesTheNotice) {
  const std::uint32_t first = waiting();
  waiting();
  program.offer = &word;
  program.create(PortSpace::Tcp, 0x44);
  program.notice();
  ucma::EventOut event;
  const std::uint32_t offer = offered(program.ahead, event);
  EXPECT_EQ(event.id, first);
  EXPECT_EQ(flags, 0u);
  EXPECT_TRUE(word.take(offer));
  program.expect(Event::AddrResolved);
  EXPECT_TRUE(program.is_drained);
  EXPECT_FALSE(program.event());
}

TEST_F(OfferedEvents, ANoticeComesAloneWithoutAClient) {
  resolve(create());
  w.service.end_offer(word);
  program.notice();
  EXPECT_EQ(program.notices, 1);
  EXPECT_TRUE(program.ahead.empty());
  EXPECT_FALSE(word.is_out);
}

TEST_F(OfferedEvents, ANoticeComesAloneIfItsClientHasAnotherOffer) {
  Program other{w, 0};
  other.is_late = true;
  other.offer = &word;
  const std::uint32_t id = other.create(PortSpace::Tcp, 0x33);
  resolve(create());
  other.offer = nullptr;
  ASSERT_EQ(other.resolve(id, w.address(1), 7471), Error::None);
  other.notice();
  EXPECT_EQ(other.notices, 1);
  EXPECT_TRUE(other.ahead.empty());
  other.expect(Event::AddrResolved);
}

TEST_F(OfferedEvents, TheNextOneIsNotMissed) {
  const std::uint32_t id = create();
  EXPECT_TRUE(word.take(offered(resolve(id))));
  program.offer = nullptr;
  ASSERT_EQ(program.write(Code::ResolveRoute, ucma::ResolveRoute{id, 1000}).error, Error::None);
  program.notice();
  EXPECT_EQ(program.notices, 1);
  program.expect(Event::RouteResolved);
}

TEST_F(OfferedEvents, TheOneThatIsOfferedIsTheFirst) {
  const std::uint32_t first = waiting();
  const std::uint32_t second = create();
  ucma::EventOut event;
  const std::uint32_t offer = offered(resolve(second), event);
  EXPECT_EQ(event.id, first);
  EXPECT_TRUE(word.take(offer));
  EXPECT_EQ(program.expect(Event::AddrResolved).id, second);
}

TEST_F(OfferedEvents, TheLastOneGoesWithItsNotice) {
  waiting();
  program.notice();
  const std::uint32_t offer = offered(program.write(Code::ResolveRoute, ucma::ResolveRoute{}));
  EXPECT_EQ(flags, verbs::control::rdma_cm_flag::kDrained);
  EXPECT_TRUE(word.take(offer));
  EXPECT_FALSE(program.event());
  EXPECT_FALSE(program.is_drained);
  program.offer = nullptr;
  resolve(create());
  program.notice();
  EXPECT_EQ(program.notices, 2);
}

TEST_F(OfferedEvents, TheNextEventFindsTheLastOneTaken) {
  Program server{w, 1};
  const std::uint32_t id = connecting(server);
  program.notice();
  const std::uint32_t offer = offered(resolve(create()));
  EXPECT_EQ(flags, 0u) << "there are two";
  EXPECT_TRUE(word.take(offer));
  ucma::EventOut event;
  const std::uint32_t last =
      offered(program.write(Code::ResolveRoute, ucma::ResolveRoute{}), event);
  EXPECT_EQ(event.event, Event::AddrResolved);
  EXPECT_EQ(flags, verbs::control::rdma_cm_flag::kDrained);
  EXPECT_TRUE(word.take(last));
  rejects(server);
  program.notice();
  EXPECT_EQ(program.notices, 2) << "the program has taken the first one";
  EXPECT_EQ(program.expect(Event::Rejected).id, id);
  EXPECT_TRUE(program.is_drained);
}

TEST_F(OfferedEvents, TheNextEventFindsTheLastOneNotTaken) {
  Program server{w, 1};
  const std::uint32_t id = connecting(server);
  program.expect(Event::AddrResolved);
  waiting();
  program.notice();
  const std::uint32_t last = offered(program.write(Code::ResolveRoute, ucma::ResolveRoute{}));
  EXPECT_EQ(flags, verbs::control::rdma_cm_flag::kDrained);
  rejects(server);
  EXPECT_FALSE(word.take(last)) << "the notice is of two events now";
  program.expect(Event::AddrResolved);
  EXPECT_FALSE(program.is_drained);
  EXPECT_EQ(program.expect(Event::Rejected).id, id);
  EXPECT_TRUE(program.is_drained);
}

TEST_F(OfferedEvents, OneFollowsAnEventThatNeedsNoCommand) {
  Program server{w, 1};
  const std::uint32_t id = connecting(server);
  program.expect(Event::AddrResolved);
  ASSERT_EQ(server.accept(server.expect(Event::ConnectRequest).id, 0x456, 0x33), Error::None);
  program.expect(Event::ConnectResponse);
  waiting();
  EXPECT_EQ(offered(program.write(Code::GetEvent, ucma::GetEvent{})), 0u) << "commands follow";
  server.offer = &word;
  server.is_late = true;
  ASSERT_EQ(program.make_ready(id), Error::None);
  w.executor.advance(std::chrono::milliseconds(1));
  const std::uint32_t other = server.create(PortSpace::Tcp, 0x44);
  ASSERT_EQ(server.resolve(other, w.address(0), 7471), Error::None);
  w.service.end_offer(word);
  ucma::EventOut event;
  const std::uint32_t offer = offered(server.write(Code::GetEvent, ucma::GetEvent{}), event);
  EXPECT_EQ(event.event, Event::AddrResolved);
  EXPECT_TRUE(word.take(offer));
}

TEST_F(OfferedEvents, OneEndsWithItsId) {
  const std::uint32_t id = create();
  const std::uint32_t offer = offered(resolve(id));
  EXPECT_EQ(program.destroy(id), 0u);
  EXPECT_FALSE(word.take(offer));
  EXPECT_FALSE(word.is_out);
}

TEST_F(OfferedEvents, OneEndsWithItsFile) {
  const std::uint32_t offer = offered(resolve(create()));
  w.service.close(program.file);
  EXPECT_FALSE(word.take(offer));
  EXPECT_FALSE(word.is_out);
}

TEST_F(OfferedEvents, OneOfAClientThatHasGoneIsForOthers) {
  resolve(create());
  w.service.end_offer(word);
  EXPECT_FALSE(word.is_out);
  program.notice();
  EXPECT_EQ(program.notices, 1);
  program.expect(Event::AddrResolved);
}

TEST_F(OfferedEvents, AClientIsOfferedOneEventAtATime) {
  Program other{w, 0};
  other.is_late = true;
  other.offer = &word;
  resolve(create());
  const std::uint32_t id = other.create(PortSpace::Tcp, 0x33);
  ASSERT_EQ(other.resolve(id, w.address(1), 7471), Error::None);
  other.expect(Event::AddrResolved);
  program.expect(Event::AddrResolved);
}

TEST_F(OfferedEvents, OneMovesWithItsId) {
  Program other{w, 0};
  const std::uint32_t id = create();
  const std::uint32_t offer = offered(resolve(id));
  ucma::MigrateId in;
  in.id = id;
  EXPECT_EQ(other.write(Code::MigrateId, in, {}, program.file).error, Error::None);
  EXPECT_FALSE(word.take(offer));
  other.expect(Event::AddrResolved);
}

// It waits if there is no event for it.
TEST_F(OfferedEvents, ACommandMayWaitOnceOneIsTaken) {
  const std::uint32_t offer = offered(resolve(create()));
  EXPECT_FALSE(w.service.await_event(program.file, [] {}));
  EXPECT_FALSE(word.take(offer));
  program.expect(Event::AddrResolved);
  EXPECT_TRUE(word.take(offered(resolve(create()))));
  EXPECT_TRUE(w.service.await_event(program.file, [] {}));
}

}  // namespace
}  // namespace ib::services::rdma_cm
