// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory whose pages the kernel holds for I/O keeps them: the bytes of the I/O must not go to pages
// that the program cannot see.
#include "base/sanitizer.h"
#include "linux/adopt/adopt.h"
#include "linux/adopt/adopt_move.h"
#include "linux/adopt/pin_sources.h"
#include "linux/client/client_host.h"
#include "linux/process/client_handle.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

namespace ib::os {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSize = 64 * kPage;

class PinnedPages : public ::testing::Test {
 protected:
  static constexpr std::size_t kSpace = 3 * kAdoptStep;

  void SetUp() override {
    space_ = static_cast<unsigned char*>(
        ::mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(space_, MAP_FAILED);
    const auto start = reinterpret_cast<std::uint64_t>(space_);
    step_ = space_ + (step_end(start + kAdoptStep, start + kSpace) - start);
    place(step_);
  }
  void TearDown() override {
    forbid_page_move(false);
    ::munmap(space_, kSpace);
  }
  void place(unsigned char* at) {
    if (memory_ != nullptr) {
      ASSERT_EQ(::mprotect(memory_, kSize, PROT_NONE), 0);
    }
    memory_ = at;
    ASSERT_EQ(::mprotect(memory_, kSize, PROT_READ | PROT_WRITE), 0);
    std::memset(memory_, 0x5a, kSize);
  }
  // Registers the memory with an io_uring, which holds its pages from then on.
  bool pin() { return pin(memory_, kSize); }
  bool pin(unsigned char* at, std::size_t size) {
    io_uring_params parameters{};
    ring_ = own_descriptor(static_cast<int>(::syscall(SYS_io_uring_setup, 4, &parameters)));
    if (!ring_.valid()) return false;
    const iovec buffer{at, size};
    return ::syscall(SYS_io_uring_register, ring_.get(), IORING_REGISTER_BUFFERS, &buffer, 1) == 0;
  }
  Status adopt() {
    auto pages = adopt_pages(reinterpret_cast<std::uint64_t>(memory_), kSize);
    if (!pages) return pages.error();
    give_back_pages(*pages);
    return Status::Ok;
  }

  unsigned char* space_ = nullptr;
  unsigned char* step_ = nullptr;  // one step of a move ends here, another begins
  unsigned char* memory_ = nullptr;
  platform::NativeHandle ring_;
};

TEST_F(PinnedPages, DoNotMove) {
  if (!pin()) GTEST_SKIP() << "io_uring is not permitted";
  EXPECT_EQ(adopt(), Status::DeviceBusy);
  EXPECT_EQ(memory_[0], 0x5a);
  EXPECT_EQ(memory_[kSize - 1], 0x5a);
}

// One page in the middle is enough, and those before it come back.
TEST_F(PinnedPages, KeepTheirNeighboursToo) {
  if (!pin(memory_ + 40 * kPage, kPage)) GTEST_SKIP() << "io_uring is not permitted";
  EXPECT_EQ(adopt(), Status::DeviceBusy);
  for (std::size_t at = 0; at < kSize; ++at) ASSERT_EQ(memory_[at], 0x5a) << at;
}

// A step that has moved stays adopted, as something may hold its pages by now.
TEST_F(PinnedPages, EndTheMoveAtTheStepBefore) {
  if (!open_fault_file(platform::AdoptMode::Full).has_move) {
    GTEST_SKIP() << "userfaultfd is not permitted, or has no UFFDIO_MOVE (Linux 6.8)";
  }
  constexpr std::size_t kFirst = 34 * kPage;
  place(step_ - kFirst);
  if (!pin(memory_ + 40 * kPage, kPage)) GTEST_SKIP() << "io_uring is not permitted";
  const auto address = reinterpret_cast<std::uint64_t>(memory_);
  {
    auto pages = adopt_pages(address, kSize);
    ASSERT_TRUE(pages) << status_text(pages.error());
    EXPECT_EQ(pages->address, address);
    EXPECT_EQ(pages->length, kFirst);
    EXPECT_EQ(adopted_presence(*pages, address, kFirst), platform::ClientHost::Presence::Whole);
    EXPECT_EQ(adopted_presence(*pages, address + kFirst, kSize - kFirst),
              platform::ClientHost::Presence::Gone);
    give_back_pages(*pages);
  }
  for (std::size_t at = 0; at < kSize; ++at) ASSERT_EQ(memory_[at], 0x5a) << at;
}

TEST_F(PinnedPages, MoveWhenTheyAreReleased) {
  if (!pin()) GTEST_SKIP() << "io_uring is not permitted";
  ASSERT_EQ(::syscall(SYS_io_uring_register, ring_.get(), IORING_UNREGISTER_BUFFERS, nullptr, 0),
            0);
  // The kernel releases them in its own time.
  Status status = Status::DeviceBusy;
  for (int i = 0; i < 100'000 && status == Status::DeviceBusy; ++i) status = adopt();
  EXPECT_EQ(status, Status::Ok);
}

TEST_F(PinnedPages, PagesSharedWithAChildMoveOnceTheyAreTheProcessesOwn) {
  std::array<int, 2> end{};
  ASSERT_EQ(::pipe(end.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    (void)!::read(end[0], &byte, 1);
    ::_exit(memory_[5] == 0x5a ? 0 : 1);
  }
  EXPECT_EQ(adopt(), Status::Ok);
  memory_[5] = 1;
  ASSERT_EQ(::write(end[1], "x", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(end[0]);
  ::close(end[1]);
}

// Linux before 6.8 does not report it. Then touched pages move only if nothing else runs and
// nothing could hold them.
TEST_F(PinnedPages, WithoutProofOnlyALoneProgramsPagesMove) {
#if IB_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer starts a thread of its own in every process";
#endif
  forbid_page_move(true);
  EXPECT_EQ(adopt(), Status::Ok);
  const auto direct = own_descriptor(::open("/proc/self/exe", O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (direct.valid()) {
    EXPECT_TRUE(may_pin_pages());
    EXPECT_EQ(adopt(), Status::DeviceBusy);
  }
}

TEST_F(PinnedPages, WithoutProofThreadsKeepTouchedPagesInPlace) {
  forbid_page_move(true);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) std::this_thread::yield();
  });
  EXPECT_FALSE(adopt() == Status::Ok);
  // Pages that were never touched hold nothing that could be lost.
  ASSERT_EQ(::madvise(memory_, kSize, MADV_DONTNEED), 0);
  if (adopt_mode() == platform::AdoptMode::Full) {
    EXPECT_EQ(adopt(), Status::Ok);
  }
  stop = true;
  other.join();
}

TEST_F(PinnedPages, AreNotGivenBack) {
  LinuxClientHost& host = client_host();
  auto pages = adopt_pages(reinterpret_cast<std::uint64_t>(memory_), kSize);
  if (!pages) GTEST_SKIP() << "pages cannot move here: " << status_text(pages.error());
  if (!pin()) {
    give_back_pages(*pages);
    GTEST_SKIP() << "io_uring is not permitted";
  }
  EXPECT_FALSE(host.give_back(*pages)) << "the ring would go on with pages nobody sees";
  ring_.reset();
  EXPECT_TRUE(host.give_back(*pages));
}

TEST_F(PinnedPages, AnIoUringIsAPinSource) {
  EXPECT_FALSE(may_pin_pages());
  io_uring_params parameters{};
  ring_ = own_descriptor(static_cast<int>(::syscall(SYS_io_uring_setup, 4, &parameters)));
  if (!ring_.valid()) GTEST_SKIP() << "io_uring is not permitted";
  EXPECT_TRUE(may_pin_pages());
}

// In a child, since it cannot be taken back.
TEST_F(PinnedPages, PagesOfAPipeStay) {
  const pid_t child = ::fork();
  if (child == 0) {
    note_vmsplice();
    ::_exit(may_pin_pages() && adopt() == Status::DeviceBusy ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ib::os
