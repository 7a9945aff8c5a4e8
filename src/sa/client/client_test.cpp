// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The path cache, registrations with their leases, subscriptions.
#include "sa/client/path_cache.h"
#include "sa/client/registrations.h"
#include "sa/client/subscriber.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <vector>

namespace ib::sa {
namespace {

using std::chrono::seconds;

verbs::Gid gid(std::uint64_t number) {
  return verbs::make_gid(0xfe80000000000000, number);
}

class PathCacheTest : public testing::Test {
 protected:
  static PathCache::Key key(std::uint64_t to) { return {gid(1), gid(to), 0xffff}; }
  static PathRecord path(std::uint16_t dlid) {
    PathRecord record;
    record.dlid = dlid;
    return record;
  }
  std::uint16_t found(std::uint64_t to) { return cache.find(key(to), now).value_or(path(0)).dlid; }
  void fill(std::uint64_t to) {
    ASSERT_EQ(cache.wait(key(to), 1), Status::Ok);
    (void)cache.on_answer(key(to), path(static_cast<std::uint16_t>(to)), now);
  }

  PathCache cache{{.lifetime = seconds(10), .paths = 2, .waiting = 3}};
  Instant now{seconds(100)};
};

TEST_F(PathCacheTest, OneQueryServesAllThatWait) {
  EXPECT_EQ(cache.wait(key(2), 1), Status::Ok);
  EXPECT_EQ(cache.wait(key(2), 2), Status::Pending);
  EXPECT_EQ(cache.wait(key(3), 3), Status::Ok);
  EXPECT_EQ(cache.wait(key(3), 4), Status::LimitExceeded);
  EXPECT_EQ(cache.on_answer(key(2), path(2), now), (std::vector<Ticket>{1, 2}));
  EXPECT_EQ(cache.on_answer(key(2), path(2), now), (std::vector<Ticket>{}));
  EXPECT_EQ(found(2), 2);
}

TEST_F(PathCacheTest, AQueryIsWithdrawnWithTheLastThatWaits) {
  (void)cache.wait(key(2), 1);
  (void)cache.wait(key(2), 2);
  EXPECT_FALSE(cache.withdraw(key(2), 1));
  EXPECT_TRUE(cache.withdraw(key(2), 2));
  EXPECT_FALSE(cache.withdraw(key(2), 2));
  EXPECT_EQ(cache.wait(key(2), 3), Status::Ok);
}

TEST_F(PathCacheTest, PathsGrowOldAndErrorsAreNotKept) {
  fill(2);
  now += seconds(9);
  EXPECT_EQ(found(2), 2);
  now += seconds(1);
  EXPECT_EQ(found(2), 0);
  (void)cache.wait(key(3), 1);
  EXPECT_EQ(cache.on_answer(key(3), std::nullopt, now).size(), 1u);
  EXPECT_EQ(found(3), 0);
}

TEST_F(PathCacheTest, TheOldestMakesRoom) {
  fill(2);
  fill(3);
  fill(4);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(found(2), 0);
  EXPECT_EQ(found(3), 3);
  EXPECT_EQ(found(4), 4);
}

TEST_F(PathCacheTest, ChangesOfAPortForgetItsPathsAlsoThoseOnTheirWay) {
  fill(2);
  fill(3);
  (void)cache.wait(key(2), 1);
  cache.forget(gid(2));
  EXPECT_EQ(found(2), 0);
  EXPECT_EQ(found(3), 3);
  EXPECT_EQ(cache.on_answer(key(2), path(2), now).size(), 1u);
  EXPECT_EQ(found(2), 0);
  cache.forget(gid(1));
  EXPECT_EQ(cache.size(), 0u);
}

class RegistrationsTest : public testing::Test {
 protected:
  static ServiceRecord record(std::uint32_t lease) {
    ServiceRecord made;
    made.id = 7;
    made.gid = gid(1);
    made.lease_seconds = lease;
    return made;
  }
  Outgoing sent() {
    const std::optional<Outgoing> out = all.poll_outgoing();
    EXPECT_TRUE(out.has_value());
    return out.value_or(Outgoing{});
  }
  void grant(const Outgoing& out) { all.on_answer(out.operation, {}, out.record, now); }
  void wait(Duration span) {
    now += span;
    all.on_time(now);
  }

  Registrations all{{.retry = seconds(5), .registrations = 2}};
  Instant now{seconds(100)};
};

TEST_F(RegistrationsTest, ALeaseIsRenewedWhenHalfOfItIsOver) {
  ASSERT_EQ(all.add(1, record(60), {}, now), Status::Ok);
  grant(sent());
  EXPECT_EQ(all.poll_event()->ticket, 1u);
  EXPECT_EQ(all.deadline(), now + seconds(30));
  wait(seconds(29));
  EXPECT_FALSE(all.poll_outgoing().has_value());
  wait(seconds(1));
  EXPECT_EQ(sent().method, method::kSet);
}

TEST_F(RegistrationsTest, AShortLeaseIsNotRenewedWithoutPause) {
  (void)all.add(1, record(1), {}, now);
  grant(sent());
  EXPECT_FALSE(all.poll_outgoing().has_value());
  EXPECT_EQ(all.deadline(), now + std::chrono::milliseconds(500));
}

TEST_F(RegistrationsTest, ALeaseThatIsOverAtOnceIsTriedAgainLater) {
  (void)all.add(1, record(0), {}, now);
  grant(sent());
  EXPECT_FALSE(all.poll_outgoing().has_value());
  EXPECT_EQ(all.deadline(), now + seconds(5));
}

TEST_F(RegistrationsTest, ALeaseWithoutEndIsNotRenewed) {
  (void)all.add(1, record(kLeaseWithoutEnd), {}, now);
  grant(sent());
  EXPECT_EQ(all.deadline(), std::nullopt);
}

TEST_F(RegistrationsTest, AfterAFailureItIsTriedAgain) {
  (void)all.add(1, record(60), {}, now);
  all.on_answer(sent().operation, {Status::Timeout, 0, "no answer"}, {}, now);
  EXPECT_FALSE(all.poll_event()->outcome.is_ok());
  wait(seconds(5));
  grant(sent());
  EXPECT_TRUE(all.poll_event()->outcome.is_ok());
}

TEST_F(RegistrationsTest, WhatIsGivenUpIsDeletedAlsoWhileItIsRegistered) {
  (void)all.add(1, record(60), {}, now);
  const Outgoing set = sent();
  all.remove(1, now);
  EXPECT_FALSE(all.poll_outgoing().has_value());
  grant(set);
  EXPECT_FALSE(all.poll_event().has_value());
  const Outgoing deletion = sent();
  EXPECT_EQ(deletion.method, method::kDelete);
  grant(deletion);
  EXPECT_EQ(all.size(), 0u);
}

TEST_F(RegistrationsTest, WhatWasNeverRegisteredIsNotDeleted) {
  (void)all.add(1, record(60), {}, now);
  all.on_answer(sent().operation, {Status::Ok, sa_status::kRequestDenied, {}}, {}, now);
  all.remove(1, now);
  EXPECT_FALSE(all.poll_outgoing().has_value());
  EXPECT_EQ(all.size(), 0u);
  EXPECT_EQ(all.deadline(), std::nullopt);
}

TEST_F(RegistrationsTest, ReregistrationRegistersAtOnce) {
  (void)all.add(1, record(60), {}, now);
  grant(sent());
  all.on_reregister(gid(2), now);
  EXPECT_FALSE(all.poll_outgoing().has_value());
  all.on_reregister(gid(1), now);
  grant(sent());
  EXPECT_EQ(all.deadline(), now + seconds(30));
}

TEST_F(RegistrationsTest, RegistrationsAreLimited) {
  EXPECT_EQ(all.add(1, record(60), {}, now), Status::Ok);
  EXPECT_EQ(all.add(2, record(60), {}, now), Status::Ok);
  EXPECT_EQ(all.add(3, record(60), {}, now), Status::LimitExceeded);
}

class SubscriberTest : public testing::Test {
 protected:
  Outgoing sent() {
    const std::optional<Outgoing> out = all.poll_outgoing();
    EXPECT_TRUE(out.has_value());
    return out.value_or(Outgoing{});
  }
  static Notice notice(std::uint16_t trap) { return gid_notice(trap, gid(9), 1, gid(8)); }

  Subscriber all;
};

TEST_F(SubscriberTest, OneSubscriptionServesAllThatWantTheTrap) {
  (void)all.add(1, gid(1), 64, {});
  (void)all.add(2, gid(1), 64, {});
  const Outgoing out = sent();
  EXPECT_EQ(decode_some<InformInfo>(out.record).trap, 64);
  EXPECT_FALSE(all.poll_outgoing().has_value());
  all.on_answer(out.operation, {});
  EXPECT_EQ(all.poll_event()->ticket, 1u);
  EXPECT_EQ(all.poll_event()->ticket, 2u);
  EXPECT_EQ(all.on_report(gid(1), notice(64)), (std::vector<Ticket>{1, 2}));
  EXPECT_TRUE(all.on_report(gid(1), notice(65)).empty());
  EXPECT_TRUE(all.on_report(gid(2), notice(64)).empty());
  all.remove(1);
  EXPECT_FALSE(all.poll_outgoing().has_value());
  all.remove(2);
  const Outgoing end = sent();
  EXPECT_EQ(decode_some<InformInfo>(end.record).subscribe, 0);
  EXPECT_EQ(decode_some<InformInfo>(end.record).qpn, 1u);
  all.on_answer(end.operation, {});
  EXPECT_EQ(all.size(), 0u);
}

TEST_F(SubscriberTest, AllTrapsFitEveryNotice) {
  (void)all.add(1, gid(1), kAllTraps, {});
  all.on_answer(sent().operation, {});
  EXPECT_EQ(all.on_report(gid(1), notice(67)).size(), 1u);
  EXPECT_EQ(all.on_report(gid(1), notice(kAllTraps)).size(), 1u);
}

TEST_F(SubscriberTest, ARefusalVoidsTheTickets) {
  (void)all.add(1, gid(1), 64, {});
  all.on_answer(sent().operation, {Status::Timeout, 0, "no answer"});
  EXPECT_FALSE(all.poll_event()->outcome.is_ok());
  EXPECT_EQ(all.size(), 0u);
  all.remove(1);
}

TEST_F(SubscriberTest, ReregistrationSubscribesAgain) {
  (void)all.add(1, gid(1), 64, {});
  all.on_answer(sent().operation, {});
  (void)all.poll_event();
  all.on_reregister(gid(1));
  all.on_answer(sent().operation, {});
  EXPECT_FALSE(all.poll_event().has_value());
  EXPECT_EQ(all.size(), 1u);
}

}  // namespace
}  // namespace ib::sa
