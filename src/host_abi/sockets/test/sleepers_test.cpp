// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/sleepers.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace ib::host_abi::sockets {
namespace {

bool is_woken(const Sleeper& sleeper) {
  pollfd entry{sleeper.fd(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(Sleepers, NewsWakeAllThatSleep) {
  const std::uint32_t before = count_of_news();
  const Sleeper one;
  const Sleeper other;
  EXPECT_FALSE(is_woken(one));
  wake_sleepers();
  EXPECT_TRUE(is_woken(one));
  EXPECT_TRUE(is_woken(other));
  EXPECT_NE(count_of_news(), before);
}

TEST(Sleepers, TheNextOneInAPlaceSleeps) {
  int fd = -1;
  {
    const Sleeper first;
    fd = first.fd();
    wake_sleepers();
  }
  const Sleeper next;
  EXPECT_EQ(next.fd(), fd);
  EXPECT_FALSE(is_woken(next));
}

}  // namespace
}  // namespace ib::host_abi::sockets
