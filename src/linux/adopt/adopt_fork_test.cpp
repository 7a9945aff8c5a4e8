// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Children that are made without the handlers of fork(), by clone() or vfork(), must not have the
// pages that their parent shares with its peers: their writes would change the parent's memory.
#include "linux/adopt/adopt.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace ib::os {
namespace {

constexpr std::size_t kSize = 8u << 20;  // more than one step of a move

// Whether a child of clone(), called by its number, has any mapping there.
bool raw_child_has(const unsigned char* page) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
  const long child = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    unsigned char resident = 0;
    const bool mapped = ::syscall(SYS_mincore, page, 4096, &resident) == 0;
    ::syscall(SYS_exit_group, mapped ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(static_cast<pid_t>(child), &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) != 0;
}

TEST(AdoptedPagesInAChild, AreNotThereWithoutTheHandlersOfFork) {
  if (adopt_mode() != platform::AdoptMode::Full) {
    GTEST_SKIP() << "needs userfaultfd with kernel faults: root or vm.unprivileged_userfaultfd=1";
  }
  auto* base = static_cast<unsigned char*>(
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(base, MAP_FAILED);
  std::memset(base, 1, kSize);
  const auto parts = {base, base + kSize / 2, base + kSize - 4096};
  for (const unsigned char* at : parts) EXPECT_TRUE(raw_child_has(at)) << "private still";
  auto pages = adopt_pages(reinterpret_cast<std::uint64_t>(base), kSize);
  ASSERT_TRUE(pages) << status_text(pages.error());
  for (const unsigned char* at : parts) EXPECT_FALSE(raw_child_has(at));
  // fork() shows its child the pages for a moment.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(base[kSize / 2]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1) << "a copy of its own";
  for (const unsigned char* at : parts) EXPECT_FALSE(raw_child_has(at)) << "after a fork()";
  give_back_pages(*pages);
  for (const unsigned char* at : parts) EXPECT_TRUE(raw_child_has(at)) << "private again";
  (void)::munmap(base, kSize);
}

}  // namespace
}  // namespace ib::os
