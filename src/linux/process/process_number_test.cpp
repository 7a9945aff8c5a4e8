// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/process/process_number.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ib::os {
namespace {

constexpr int kDiffers = 0;
constexpr int kSame = 1;
constexpr int kCannotTell = 2;

// Runs `body` in a child and returns its result, or kCannotTell.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kCannotTell;
  return WEXITSTATUS(status);
}

TEST(ProcessNumber, StaysTheSameInOneProcess) {
  EXPECT_EQ(process_number(), process_number());
}

TEST(ProcessNumber, DiffersFromThatOfEachAncestor) {
  const std::uint64_t own = process_number();
  EXPECT_EQ(in_child([own] {
              const std::uint64_t childs = process_number();
              if (childs == own) return kSame;
              return in_child([own, childs] {
                const std::uint64_t here = process_number();
                return here == own || here == childs ? kSame : kDiffers;
              });
            }),
            kDiffers);
  EXPECT_EQ(process_number(), own);
}

TEST(ProcessNumber, AChildThatWorksInItsParentsMemoryHasAnother) {
  const std::uint64_t own = process_number();
  volatile std::uint64_t childs = 0;
  const pid_t child = ::vfork();
  if (child == 0) {
    childs = process_number();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_NE(childs, own);
  EXPECT_EQ(process_number(), own);
}

TEST(ProcessNumber, AChildWithTheProcessIdOfItsParentHasAnother) {
  const int outcome = in_child([] {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return kCannotTell;
    return in_child([] {  // process 1 of its namespace
      const std::uint64_t parents = process_number();
      if (::getpid() != 1 || ::unshare(CLONE_NEWPID) != 0) return kCannotTell;
      return in_child([parents] {
        if (::getpid() != 1) return kCannotTell;
        return process_number() == parents ? kSame : kDiffers;
      });
    });
  });
  if (outcome == kCannotTell) GTEST_SKIP() << "no PID namespaces for this user here";
  EXPECT_EQ(outcome, kDiffers);
}

}  // namespace
}  // namespace ib::os
