// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/rsocket_locks.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace ib::host_abi::sockets {

constinit thread_local int Inside::depth = 0;

namespace {

constexpr int kRsocket = 7;

// Whether another thread gets the lock of an rsocket.
bool is_free(int rs) {
  bool result = false;
  std::thread([&] { result = Alone(rs, Alone::Patience::Short).valid(); }).join();
  return result;
}

TEST(RsocketLocks, KeepOtherThreadsOut) {
  {
    const Alone alone(kRsocket);
    EXPECT_TRUE(alone.valid());
    EXPECT_EQ(Inside::depth, 1);
    EXPECT_FALSE(is_free(kRsocket));
    EXPECT_TRUE(is_free(kRsocket + 1));
  }
  EXPECT_EQ(Inside::depth, 0);
  EXPECT_TRUE(is_free(kRsocket));
}

TEST(RsocketLocks, AThreadDoesWithoutAnRsocketThatIsEnded) {
  const Ending ending(kRsocket);
  const Alone ender(kRsocket, Alone::Patience::Endless);
  std::thread([] { EXPECT_FALSE(Alone(kRsocket).valid()); }).join();
}

TEST(RsocketLocks, OfASleepAreTakenOnceForEachRsocket) {
  const std::array entries{pollfd{kRsocket, POLLIN, 0}, pollfd{-1, POLLIN, 0},
                           pollfd{kRsocket - 2, POLLIN, 0}, pollfd{kRsocket, POLLOUT, 0}};
  AllAlone all(entries.data(), entries.size());
  ASSERT_TRUE(all.valid());
  all.take();
  EXPECT_TRUE(all.has(kRsocket));
  EXPECT_TRUE(all.has(kRsocket - 2));
  EXPECT_FALSE(is_free(kRsocket));
  all.release();
  EXPECT_FALSE(all.has(kRsocket));
  EXPECT_TRUE(is_free(kRsocket));
  EXPECT_TRUE(is_free(kRsocket - 2));
}

TEST(RsocketLocks, OfASleepAreFreeAtItsEnd) {
  const pollfd entry{kRsocket, POLLIN, 0};
  {
    AllAlone all(&entry, 1);
    all.take();
  }
  EXPECT_TRUE(is_free(kRsocket));
}

TEST(RsocketLocks, ASleepLeavesOutWhatIsEnded) {
  const std::array entries{pollfd{kRsocket, POLLIN, 0}, pollfd{kRsocket + 1, POLLIN, 0}};
  const Ending ending(kRsocket);
  AllAlone all(entries.data(), entries.size());
  all.take();
  EXPECT_FALSE(all.has(kRsocket));
  EXPECT_TRUE(all.has(kRsocket + 1));
}

}  // namespace
}  // namespace ib::host_abi::sockets
