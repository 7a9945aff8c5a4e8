// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/power_manager.h"

#include "io/test/test_tree.h"

#include <gmock/gmock.h>

namespace ib::io::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kFn = "TEST\\FN";

struct Powered : TestTree {
  Powered() {
    auto host = plug(*root, "host", "");
    auto hca = plug(*host, "hca", kFn);
    plug(*hca, "port", kFn);
    begin();
    heard();
  }
};

TEST(PowerManager, AsksAndSleepsChildrenFirstAndWakesParentsFirst) {
  Powered t;
  EXPECT_EQ(t.set_power("root", SystemPower::Sleep), Status::Ok);
  EXPECT_THAT(t.heard(),
              ElementsAre("port: query D3", "hca: query D3", "port: set D3", "hca: set D3"));
  EXPECT_EQ(t.node("hca")->device_power(), DevicePower::D3);
  EXPECT_EQ(t.set_power("root", SystemPower::Working), Status::Ok);
  EXPECT_THAT(t.heard(), ElementsAre("hca: set D0", "port: set D0"));
  EXPECT_EQ(t.node("root")->system_power(), SystemPower::Working);
}

TEST(PowerManager, ADeviceThatWasRemovedInItsSleepStartsAwake) {
  Powered t;
  EXPECT_EQ(t.set_power("root", SystemPower::Sleep), Status::Ok);
  EXPECT_EQ(t.remove("port"), Status::Ok);
  EXPECT_EQ(t.set_power("root", SystemPower::Working), Status::Ok);
  EXPECT_EQ(t.start("port"), Status::Ok);
  EXPECT_EQ(t.state("port"), NodeState::Started);
  EXPECT_EQ(t.node("port")->system_power(), SystemPower::Working);
  EXPECT_EQ(t.node("port")->device_power(), DevicePower::D0);
}

TEST(PowerManager, AChildsVetoKeepsAllAwake) {
  Powered t;
  t.behaviour["hca"].veto_power = "a firmware update";
  EXPECT_EQ(t.set_power("root", SystemPower::Hibernate), Status::DeviceBusy);
  EXPECT_THAT(t.reason, HasSubstr("hca cannot go to hibernate now: a firmware update"));
  EXPECT_THAT(t.heard(),
              ElementsAre("port: query D3", "hca: query D3", "hca: set D0", "port: set D0"));
  EXPECT_EQ(t.node("port")->device_power(), DevicePower::D0);
}

TEST(PowerManager, AFailureIsRolledBack) {
  Powered t;
  t.behaviour["hca"].fail_power_down = "stuck";
  EXPECT_EQ(t.set_power("root", SystemPower::Sleep), Status::DeviceBusy);
  EXPECT_THAT(t.reason, HasSubstr("failed to power down: stuck"));
  EXPECT_THAT(t.heard(), ElementsAre("port: query D3", "hca: query D3", "port: set D3",
                                     "hca: set D3", "hca: set D0", "port: set D0"));
  for (const char* name : {"root", "hca", "port"}) {
    EXPECT_EQ(t.node(name)->system_power(), SystemPower::Working);
  }
}

TEST(PowerManager, WhatDoesNotWakeUpIsGoneWithItsChildren) {
  Powered t;
  EXPECT_EQ(t.set_power("host", SystemPower::Sleep), Status::Ok);
  t.behaviour["hca"].fail_wake = "dead";
  EXPECT_EQ(t.set_power("host", SystemPower::Working), Status::Ok);
  EXPECT_EQ(t.node("hca"), nullptr);
  EXPECT_EQ(t.functions, 0u);
  // The bus still reports it: plugged in again, it is started again.
  t.behaviour.clear();
  EXPECT_EQ(t.enumerate("host"), Status::Ok);
  EXPECT_EQ(t.state("hca"), NodeState::Started);
}

TEST(PowerManager, WhatComesWhileItsHostSleepsStartsWhenThatWakesUp) {
  Powered t;
  EXPECT_EQ(t.remove("port"), Status::Ok);
  t.heard();
  // As they are queued: the sleep is under way, nothing sleeps yet.
  Status slept = Status::Pending;
  Status asked = Status::Pending;
  Status started = Status::Pending;
  t.plug(*t.root->children[0], "late", kFn);
  t.power.set(t.node("root")->id(), SystemPower::Sleep, t.into(slept));
  t.pnp.enumerate(t.node("host")->id(), t.into(asked));
  t.pnp.start({t.node("port")->id()}, t.into(started));
  (void)t.run();
  EXPECT_EQ(slept, Status::Ok);
  EXPECT_EQ(asked, Status::Ok);
  EXPECT_EQ(started, Status::Ok);
  EXPECT_THAT(t.heard(), ElementsAre("hca: query D3", "hca: set D3"));
  for (const char* name : {"late", "port"}) {
    EXPECT_EQ(t.state(name), NodeState::Present);
    EXPECT_THAT(t.node(name)->problem(), HasSubstr(" sleeps"));
  }
  EXPECT_EQ(t.set_power("root", SystemPower::Working), Status::Ok);
  EXPECT_EQ(t.state("late"), NodeState::Started);
  EXPECT_EQ(t.state("port"), NodeState::Started);
  EXPECT_EQ(t.node("late")->problem(), "");
}

TEST(PowerManager, WhatWaitsForItsHostCanGo) {
  Powered t;
  EXPECT_EQ(t.set_power("host", SystemPower::Sleep), Status::Ok);
  t.plug(*t.root->children[0], "late", kFn);
  EXPECT_EQ(t.enumerate("host"), Status::Ok);
  t.behaviour["hca"].veto_remove = "busy";
  EXPECT_EQ(t.remove("host"), Status::DeviceBusy);
  EXPECT_EQ(t.state("late"), NodeState::Present);
  t.unplug(*t.root->children[0], "late");
  EXPECT_EQ(t.enumerate("host"), Status::Ok);
  EXPECT_EQ(t.node("late"), nullptr);
  EXPECT_EQ(t.set_power("host", SystemPower::Working), Status::Ok);
}

TEST(PowerManager, OneHostSleepsAlone) {
  Powered t;
  EXPECT_EQ(t.set_power("host", SystemPower::Sleep), Status::Ok);
  EXPECT_EQ(t.node("root")->system_power(), SystemPower::Working);
  EXPECT_EQ(t.set_power("host", SystemPower::Hibernate), Status::InvalidState);
  EXPECT_EQ(t.set_power("root", SystemPower::Sleep), Status::Ok);
  EXPECT_EQ(t.set_power("host", SystemPower::Working), Status::InvalidState);
  EXPECT_EQ(t.set_power("root", SystemPower::Working), Status::Ok);
  EXPECT_EQ(t.node("host")->system_power(), SystemPower::Working);
}

TEST(PowerManager, WakingAllWakesAHostThatSleepsAlone) {
  Powered t;
  EXPECT_EQ(t.set_power("root", SystemPower::Working), Status::InvalidState) << "nothing sleeps";
  EXPECT_EQ(t.set_power("host", SystemPower::Sleep), Status::Ok);
  EXPECT_EQ(t.set_power("root", SystemPower::Working), Status::Ok);
  EXPECT_EQ(t.node("port")->device_power(), DevicePower::D0);
  EXPECT_EQ(t.node("host")->system_power(), SystemPower::Working);
  // Also one that slept before the others.
  EXPECT_EQ(t.set_power("host", SystemPower::Sleep), Status::Ok);
  EXPECT_EQ(t.set_power("root", SystemPower::Sleep), Status::Ok);
  EXPECT_EQ(t.set_power("root", SystemPower::Working), Status::Ok);
  EXPECT_EQ(t.node("port")->device_power(), DevicePower::D0);
  EXPECT_EQ(t.node("host")->system_power(), SystemPower::Working);
}

TEST(PowerManager, ASleepThatIsRolledBackLeavesAHostAsleepThatWas) {
  Powered t;
  auto other = t.plug(*t.root, "other", "");
  t.plug(*other, "hca2", kFn);
  EXPECT_EQ(t.enumerate("root"), Status::Ok);
  EXPECT_EQ(t.set_power("host", SystemPower::Sleep), Status::Ok);
  t.behaviour["hca2"].veto_power = "a firmware update";
  EXPECT_EQ(t.set_power("root", SystemPower::Sleep), Status::DeviceBusy);
  EXPECT_EQ(t.node("host")->system_power(), SystemPower::Sleep);
  EXPECT_EQ(t.node("hca")->device_power(), DevicePower::D3);
  EXPECT_EQ(t.node("root")->system_power(), SystemPower::Working);
}

TEST(PowerManager, BeforeShutdownThereIsALastChance) {
  Powered t;
  DeviceObject& port = t.node("port")->top();
  DeviceObject& hca = t.node("hca")->top();
  t.power.add_last_chance(port);
  t.power.add_last_chance(hca);
  t.behaviour["hca"].fail_power_down = "stuck";  // nobody can stop it
  EXPECT_EQ(t.set_power("root", SystemPower::Shutdown), Status::Ok);
  EXPECT_THAT(t.heard(),
              ElementsAre("hca: last chance", "port: last chance", "port: set D3", "hca: set D3"));
  t.power.remove_last_chance(port);
  t.power.remove_last_chance(hca);
}

TEST(PowerManager, ARemovalWaitsUntilTheTransitionIsOver) {
  Powered t;
  t.behaviour["port"].take_time = true;
  Status slept = Status::Pending;
  Status removed = Status::Pending;
  t.power.set(t.node("root")->id(), SystemPower::Sleep, t.into(slept));
  t.pnp.surprise_remove(t.node("hca")->id(), t.into(removed));
  (void)t.run();
  EXPECT_EQ(removed, Status::Pending);
  (*t.slow.take()).complete(Status::Ok);
  (void)t.run();
  EXPECT_EQ(slept, Status::Ok);
  EXPECT_EQ(removed, Status::Ok);
  EXPECT_EQ(t.functions, 0u);
}

}  // namespace
}  // namespace ib::io::test
