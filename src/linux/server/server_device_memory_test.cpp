// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/server_device_memory.h"

#include "base/sanitizer.h"
#include "linux/process/client_handle.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ib::os {
namespace {

constexpr std::uint64_t kMib = 1u << 20;

struct Memory : ServerDeviceMemory {
  Memory() { EXPECT_EQ(create(4 * kMib, 64 * kMib, reason), Status::Ok) << reason; }
  std::string reason;
};

TEST(ServerDeviceMemory, IsZeroCostsNothingUntilTouchedAndCannotShrink) {
  Memory m;
  EXPECT_EQ(m.size(), 4 * kMib);
  EXPECT_EQ(m.used_bytes(), 0u);
  EXPECT_EQ(m.base()[kMib], std::byte{0});
  m.base()[kMib] = std::byte{1};
  EXPECT_LE(m.used_bytes(), 2 * m.page_size());
  const auto handle = *m.device_memory_handle(m.reason);
  EXPECT_NE(::ftruncate(handle.get(), 0), 0);
  EXPECT_EQ(m.size(), 4 * kMib);
}

TEST(ServerDeviceMemory, GrowsInPlace) {
  Memory m;
  std::byte* before = m.base();
  EXPECT_EQ(m.grow(8 * kMib, m.reason), Status::Ok);
  EXPECT_EQ(m.grow(2 * kMib, m.reason), Status::Ok);
  EXPECT_EQ(m.size(), 8 * kMib);
  m.base()[8 * kMib - 1] = std::byte{7};
  EXPECT_EQ(m.base(), before);
}

TEST(ServerDeviceMemory, TakesLessAddressSpaceWhereThereIsLess) {
#if IB_ADDRESS_SANITIZER || IB_THREAD_SANITIZER
  GTEST_SKIP() << "sanitizers need more address space than the limit of this test";
#endif
  rlimit old{};
  ::getrlimit(RLIMIT_AS, &old);
  rlimit low = old;
  low.rlim_cur = 4ull << 30;
  ::setrlimit(RLIMIT_AS, &low);
  ServerDeviceMemory m;
  std::string reason;
  const Status status = m.create(4 * kMib, 32ull << 30, reason);
  ::setrlimit(RLIMIT_AS, &old);
  ASSERT_EQ(status, Status::Ok) << reason;
  EXPECT_LT(m.space(), 4ull << 30);
  EXPECT_GE(m.space(), 1ull << 30);
  EXPECT_EQ(m.grow(m.space(), reason), Status::Ok) << reason;
  m.base()[m.space() - 1] = std::byte{1};
}

TEST(ServerDeviceMemory, PunchMakesZerosToTheByteAndGivesPagesBack) {
  Memory m;
  std::fill_n(m.base(), kMib, std::byte{9});
  const std::uint64_t full = m.used_bytes();
  m.punch(100, kMib / 2);
  EXPECT_LT(m.used_bytes(), full);
  EXPECT_EQ(m.base()[99], std::byte{9});
  EXPECT_EQ(std::count(m.base() + 100, m.base() + 100 + kMib / 2, std::byte{0}), kMib / 2);
  EXPECT_EQ(m.base()[100 + kMib / 2], std::byte{9});
}

TEST(ServerDeviceMemory, TextCanBeReadFromTheStartAndNotChanged) {
  Memory m;
  const auto file = *m.make_text("hello\n", m.reason);
  std::array<char, 16> buffer{};
  EXPECT_EQ(::read(file.get(), buffer.data(), buffer.size()), 6);
  EXPECT_STREQ(buffer.data(), "hello\n");
  EXPECT_LT(::write(file.get(), "x", 1), 0);
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
  const auto empty = *m.make_text("", m.reason);
  EXPECT_EQ(::read(empty.get(), buffer.data(), buffer.size()), 0);
}

TEST(ServerDeviceMemory, SealsTheFilesOfClientsOrRefusesThem) {
  Memory m;
  auto file = own_descriptor(::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), 8192), 0);
  EXPECT_EQ(*m.seal_and_measure(file, m.reason), 8192u);
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_TRUE(m.seal_and_measure(file, m.reason));  // again is no harm

  file = own_descriptor(::memfd_create("t", MFD_CLOEXEC));  // may not be sealed
  EXPECT_EQ(m.seal_and_measure(file, m.reason).error(), Status::InvalidParameter);
  file = own_descriptor(::open("/dev/null", O_RDWR));
  EXPECT_EQ(m.seal_and_measure(file, m.reason).error(), Status::InvalidParameter);
  EXPECT_EQ(m.seal_and_measure({}, m.reason).error(), Status::InvalidParameter);
}

TEST(ServerDeviceMemory, KnowsThePipesOfClientsAndNeverWaitsForThem) {
  Memory m;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // blocking, to see that it does no harm
  auto reader = own_descriptor(ends[0]);
  const auto writer = own_descriptor(ends[1]);
  EXPECT_TRUE(m.is_pipe_end(reader, false));
  EXPECT_TRUE(m.is_pipe_end(writer, true));
  EXPECT_FALSE(m.is_pipe_end(reader, true));
  EXPECT_FALSE(m.is_pipe_end({}, true));
  EXPECT_FALSE(m.is_pipe_end(own_descriptor(::open("/dev/null", O_WRONLY)), true));
  const std::array<std::byte, 1024> bytes{};
  int written = 0;
  while (m.write_pipe(writer, bytes)) ++written;
  EXPECT_EQ(written, 64);
  EXPECT_EQ(m.unread_bytes(reader), 64 * bytes.size());
  EXPECT_EQ(m.unread_bytes({}), 0u);
  reader.reset();
  EXPECT_FALSE(m.write_pipe(writer, bytes));  // and no SIGPIPE
}

TEST(ServerDeviceMemory, AProcessIsAliveUntilItHasEnded) {
  Memory m;
  EXPECT_TRUE(m.is_alive(m.pid()));
  EXPECT_FALSE(m.is_alive(0));
  EXPECT_FALSE(m.is_alive(0xffffffffu));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char c = 0;
    (void)!::read(ends[0], &c, 1);
    ::_exit(0);
  }
  EXPECT_TRUE(m.is_alive(static_cast<std::uint32_t>(child)));
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(m.is_alive(static_cast<std::uint32_t>(child)));  // a zombie
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(m.is_alive(static_cast<std::uint32_t>(child)));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace ib::os
