// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/common/file_identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace ib::host_abi::sockets {
namespace {

int open_null() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}
int open_zero() {
  return ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
}

TEST(FileIdentity, ANumberMeansItsFileUntilItIsClosed) {
  const int fd = open_null();
  const std::uint64_t file = os::file_word(fd);
  EXPECT_TRUE(still_means(fd, file));
  ASSERT_EQ(::close(fd), 0);
  EXPECT_FALSE(still_means(fd, file));
  ASSERT_EQ(open_zero(), fd);
  EXPECT_FALSE(still_means(fd, file));
  ::close(fd);
}

TEST(FileIdentity, WithoutALookAnOpenNumberIsTheFile) {
  const int fd = open_null();
  EXPECT_TRUE(still_means(fd, 0));
  ::close(fd);
  EXPECT_FALSE(still_means(fd, 0));
}

TEST(LastUse, NeedsNoLookOnlyAtTheSameNumberAndAtOnce) {
  quickest_look.store(200);
  LastUse use;
  EXPECT_FALSE(use.was_just_now(5, 1000));
  use.end(5, 1000);
  EXPECT_TRUE(use.was_just_now(5, 1099));
  EXPECT_FALSE(use.was_just_now(5, 1100));
  EXPECT_FALSE(use.was_just_now(6, 1001));
  EXPECT_FALSE(use.was_just_now(5, 999));  // a clock that is behind
}

TEST(LastUse, BeforeTheFirstLookAndWithoutAClockEachUseNeedsOne) {
  quickest_look.store(UINT64_MAX);
  LastUse use;
  use.end(5, 1000);
  EXPECT_FALSE(use.was_just_now(5, 1000));
  quickest_look.store(200);
  use.end(5, 0);
  EXPECT_FALSE(use.was_just_now(5, 0));
}

TEST(LastUse, AnotherFileTakesLonger) {
  quickest_look.store(UINT64_MAX);
  const int other = open_null();
  for (int i = 0; i < 1000; ++i) {
    const int fd = open_null();
    EXPECT_TRUE(still_means(fd, os::file_word(fd)));
    LastUse use;
    use.end(fd, ticks());
    ASSERT_EQ(::syscall(SYS_dup3, static_cast<long>(other), static_cast<long>(fd), 0L), fd);
    EXPECT_FALSE(use.was_just_now(fd, ticks()));
    use.end(fd, ticks());
    ASSERT_EQ(::syscall(SYS_close, static_cast<long>(fd)), 0);
    ASSERT_EQ(::syscall(SYS_dup, 0L), fd);
    EXPECT_FALSE(use.was_just_now(fd, ticks()));
    ::close(fd);
  }
  ::close(other);
  EXPECT_LT(quickest_look.load(), UINT64_MAX);
}

TEST(OwnDescriptor, IsAwayFromTheProgramsNumbersAndEnds) {
  const int low = open_null();
  int number = -1;
  {
    const OwnDescriptor own(low);
    number = own.get();
    EXPECT_GE(number, os::kHighNumbers[1]);
    EXPECT_TRUE(own.is_intact());
    EXPECT_FALSE(still_means(low, 0));
  }
  EXPECT_FALSE(still_means(number, 0));
}

TEST(OwnDescriptor, LeavesANumberAloneThatIsTheProgramsByNow) {
  int number = -1;
  {
    const OwnDescriptor own(open_null());
    number = own.get();
    const int other = open_zero();
    ASSERT_EQ(::dup2(other, number), number);
    ::close(other);
    EXPECT_FALSE(own.is_intact());
  }
  EXPECT_TRUE(still_means(number, 0));
  ::close(number);
}

}  // namespace
}  // namespace ib::host_abi::sockets
