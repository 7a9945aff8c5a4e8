// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/adopt/adopt.h"

#include "base/sanitizer.h"
#include "linux/adopt/private_range.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace ib::os {
namespace {

using platform::AdoptedPages;
using platform::AdoptMode;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMiB = 1u << 20;

// A mapping of the test, unmapped at its end.
class Memory {
 public:
  explicit Memory(std::size_t size, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int file = -1)
      : size_(size),
        base_(static_cast<unsigned char*>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file, 0))) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::munmap(base_, size_); }
  unsigned char* base() const { return base_; }
  std::size_t size() const { return size_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(base_); }
  std::uint64_t word(std::size_t page) const {
    std::uint64_t value = 0;
    std::memcpy(&value, base_ + page * kPage, sizeof value);
    return value;
  }
  void set_word(std::size_t page, std::uint64_t value) {
    std::memcpy(base_ + page * kPage, &value, sizeof value);
  }
  void number_pages() {
    for (std::size_t i = 0; i < size_ / kPage; ++i) set_word(i, i + 1);
  }
  bool has_numbers() const {
    for (std::size_t i = 0; i < size_ / kPage; ++i) {
      if (word(i) != i + 1) return false;
    }
    return true;
  }

 private:
  std::size_t size_;
  unsigned char* base_;
};

// The bytes that a peer would see.
std::uint64_t word_in_file(const AdoptedPages& pages, std::size_t page) {
  std::uint64_t value = 0;
  EXPECT_EQ(::pread(pages.file.get(), &value, sizeof value, static_cast<off_t>(page * kPage)),
            static_cast<ssize_t>(sizeof value));
  return value;
}

long file_kilobytes(const AdoptedPages& pages) {
  struct stat status {};
  EXPECT_EQ(::fstat(pages.file.get(), &status), 0);
  return status.st_blocks / 2;
}

// ThreadSanitizer starts a thread of its own in every process.
bool has_threads_already() {
#if IB_THREAD_SANITIZER
  return true;
#else
  return false;
#endif
}
constexpr const char* kNotAlone = "ThreadSanitizer starts a thread of its own in every process";

// Every test runs in each mode that this machine has.
class Adopt : public ::testing::TestWithParam<AdoptMode> {
 protected:
  void SetUp() override {
    limit_adopt_mode(std::nullopt);
    if (adopt_mode() < GetParam()) {
      GTEST_SKIP() << "userfaultfd is not permitted to this process in the wanted way";
    }
    if (GetParam() != AdoptMode::Full && has_threads_already()) GTEST_SKIP() << kNotAlone;
    limit_adopt_mode(GetParam());
  }
  void TearDown() override { limit_adopt_mode(std::nullopt); }
};

INSTANTIATE_TEST_SUITE_P(Modes, Adopt,
                         ::testing::Values(AdoptMode::UserFaultsOnly, AdoptMode::Full),
                         [](const auto& instance) {
                           return instance.param == AdoptMode::Full ? "Full" : "UserFaultsOnly";
                         });

// With several threads, where those that touch the pages can be made to wait in system calls too.
class AdoptThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (adopt_mode() != AdoptMode::Full) {
      GTEST_SKIP() << "needs userfaultfd with kernel faults: root or vm.unprivileged_userfaultfd=1";
    }
  }
  void TearDown() override { forbid_write_protection(false); }
};

TEST_P(Adopt, PagesAreTheFilesPagesAtTheSameAddress) {
  Memory memory(9 * kMiB);
  memory.number_pages();
  auto pages = adopt_pages(memory.address(), memory.size());
  ASSERT_TRUE(pages) << status_text(pages.error());
  EXPECT_EQ(pages->address, memory.address());
  EXPECT_EQ(pages->length, memory.size());
  EXPECT_TRUE(memory.has_numbers());
  EXPECT_EQ(word_in_file(*pages, 2000), 2001u);
  memory.set_word(2000, 77);
  EXPECT_EQ(word_in_file(*pages, 2000), 77u);
  give_back_pages(*pages);
}

TEST_P(Adopt, OnlyWholePagesInsideTheRangeMove) {
  Memory memory(4 * kPage);
  memory.number_pages();
  auto pages = adopt_pages(memory.address() + 100, 3 * kPage);
  ASSERT_TRUE(pages);
  EXPECT_EQ(pages->address, memory.address() + kPage);
  EXPECT_EQ(pages->length, 2 * kPage);
  give_back_pages(*pages);
  EXPECT_TRUE(memory.has_numbers());
  EXPECT_EQ(adopt_pages(memory.address() + 100, kPage).error(), Status::NotSupported);
  EXPECT_EQ(adopt_pages(memory.address(), 0).error(), Status::NotSupported);
  EXPECT_EQ(adopt_pages(memory.address(), ~0ull).error(), Status::NotSupported);
}

TEST_P(Adopt, UntouchedPagesTakeNoMemory) {
  Memory memory(16 * kMiB);
  memory.set_word(1, 5);
  memory.set_word(3000, 6);
  auto pages = adopt_pages(memory.address(), memory.size());
  ASSERT_TRUE(pages);
  EXPECT_LE(file_kilobytes(*pages), 2 * 4);
  EXPECT_EQ(memory.word(3000), 6u);
  EXPECT_EQ(memory.word(2), 0u);
  give_back_pages(*pages);
  EXPECT_EQ(memory.word(3000), 6u);
  EXPECT_EQ(memory.word(4), 0u);
}

TEST_P(Adopt, ReturnedPagesKeepTheirContentAndDontNeedZeroesThem) {
  Memory memory(2 * kMiB);
  memory.number_pages();
  auto pages = adopt_pages(memory.address(), memory.size());
  ASSERT_TRUE(pages);
  memory.set_word(7, 700);
  give_back_pages(*pages);
  EXPECT_EQ(memory.word(7), 700u);
  EXPECT_EQ(memory.word(8), 9u);
  EXPECT_EQ(file_kilobytes(*pages), 0);
  EXPECT_EQ(::madvise(memory.base(), memory.size(), MADV_DONTNEED), 0);
  EXPECT_EQ(memory.word(7), 0u);
  EXPECT_EQ(memory.word(8), 0u);
}

TEST_P(Adopt, ReturnedPagesCanBeAdoptedAgainAndAgain) {
  if (has_threads_already()) GTEST_SKIP() << kNotAlone;
  Memory memory(kMiB);
  memory.number_pages();
  for (int round = 0; round < 20; ++round) {
    auto pages = adopt_pages(memory.address(), memory.size());
    ASSERT_TRUE(pages) << "round " << round;
    EXPECT_TRUE(memory.has_numbers());
    EXPECT_EQ(word_in_file(*pages, 9), 10u);
    give_back_pages(*pages);
    ASSERT_TRUE(memory.has_numbers());
  }
  auto part = adopt_pages(memory.address() + 4 * kPage, 8 * kPage);  // and in other pieces
  ASSERT_TRUE(part);
  auto around = adopt_pages(memory.address(), memory.size());
  EXPECT_EQ(around.error(), Status::NotSupported);  // part of it is shared
  give_back_pages(*part);
  EXPECT_TRUE(memory.has_numbers());
}

TEST_P(Adopt, AReturnedMappingCanGrow) {
  constexpr std::size_t kSize = 9 * kMiB;  // several steps
  auto* base = static_cast<unsigned char*>(
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(base, 1, kSize);
  auto pages = adopt_pages(reinterpret_cast<std::uint64_t>(base), kSize);
  ASSERT_TRUE(pages);
  give_back_pages(*pages);
  auto* grown = static_cast<unsigned char*>(::mremap(base, kSize, 2 * kSize, MREMAP_MAYMOVE));
  ASSERT_NE(grown, MAP_FAILED);
  EXPECT_EQ(grown[0], 1);
  EXPECT_EQ(grown[kSize - 1], 1);
  EXPECT_EQ(grown[kSize + 5], 0);
  grown[kSize + 5] = 3;
  EXPECT_EQ(grown[kSize + 5], 3);
  ::munmap(grown, 2 * kSize);
}

TEST_P(Adopt, AllocatorsGoOnWorking) {
  for (const std::size_t size : {std::size_t{64 * 1024}, std::size_t{3 * kMiB}}) {
    auto* block = static_cast<unsigned char*>(std::malloc(size));
    std::memset(block, 0x5a, size);
    auto pages = adopt_pages(reinterpret_cast<std::uint64_t>(block), size);
    ASSERT_TRUE(pages);
    give_back_pages(*pages);
    auto* larger = static_cast<unsigned char*>(std::realloc(block, 2 * size));
    ASSERT_NE(larger, nullptr);
    EXPECT_EQ(larger[size - 1], 0x5a);
    std::memset(larger, 0x77, 2 * size);
    std::free(larger);
    ::malloc_trim(0);
    auto* zeros = static_cast<unsigned char*>(std::calloc(1, 2 * size));
    for (std::size_t i = 0; i < 2 * size; ++i) ASSERT_EQ(zeros[i], 0) << i;
    std::free(zeros);
  }
}

TEST_P(Adopt, WhatTheProgramUnmappedIsNotMappedBack) {
  Memory memory(kMiB);
  memory.number_pages();
  auto pages = adopt_pages(memory.address(), memory.size());
  ASSERT_TRUE(pages);
  ASSERT_EQ(::munmap(memory.base() + 16 * kPage, 16 * kPage), 0);
  // Another mapping is put there.
  ASSERT_EQ(::mmap(memory.base() + 16 * kPage, kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            memory.base() + 16 * kPage);
  memory.set_word(16, 1234);
  give_back_pages(*pages);
  EXPECT_EQ(memory.word(16), 1234u);
  EXPECT_EQ(memory.word(15), 16u);
  EXPECT_EQ(memory.word(32), 33u);
  unsigned char present = 0;
  EXPECT_EQ(::mincore(memory.base() + 17 * kPage, kPage, &present), -1);  // still a hole
}

TEST_P(Adopt, RefusesWhatIsNotPrivateAnonymousMemory) {
  const auto refuses = [](const void* at, std::size_t length) {
    return adopt_pages(reinterpret_cast<std::uint64_t>(at), length).error() == Status::NotSupported;
  };
  Memory shared(4 * kPage, MAP_SHARED | MAP_ANONYMOUS);
  EXPECT_TRUE(refuses(shared.base(), shared.size()));

  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  Memory of_file(4 * kPage, MAP_PRIVATE, file);
  EXPECT_TRUE(refuses(of_file.base(), of_file.size()));
  ::close(file);

  Memory holey(8 * kPage);
  holey.number_pages();
  ::munmap(holey.base() + 4 * kPage, kPage);
  EXPECT_TRUE(refuses(holey.base(), holey.size()));
  EXPECT_EQ(holey.word(0), 1u);

  Memory read_only(4 * kPage);
  ::mprotect(read_only.base(), kPage, PROT_READ);
  EXPECT_TRUE(refuses(read_only.base(), read_only.size()));
}

TEST_P(Adopt, RefusesStacks) {
  const auto refuses_own = [] {
    alignas(kPage) unsigned char local[4 * kPage];
    local[0] = 1;
    return adopt_pages(reinterpret_cast<std::uint64_t>(&local[0]), sizeof local).error();
  };
  EXPECT_EQ(refuses_own(), Status::NotSupported);
  Status in_thread = Status::Ok;
  std::thread([&] { in_thread = refuses_own(); }).join();
  EXPECT_EQ(in_thread, Status::NotSupported);

  std::atomic<unsigned char*> other{nullptr};
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    alignas(kPage) unsigned char local[4 * kPage];
    local[0] = 1;
    other = local;
    while (!stop) std::this_thread::yield();
  });
  while (other == nullptr) std::this_thread::yield();
  EXPECT_EQ(adopt_pages(reinterpret_cast<std::uint64_t>(other.load()), 4 * kPage).error(),
            Status::NotSupported);
  stop = true;
  thread.join();
}

TEST_P(Adopt, AFileSizeLimitIsNoReasonToDie) {
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  Memory memory(kMiB);
  memory.number_pages();
  rlimit low = old;
  low.rlim_cur = kPage;
  ::setrlimit(RLIMIT_FSIZE, &low);
  const Status refused = adopt_pages(memory.address(), memory.size()).error();
  auto small = adopt_pages(memory.address(), kPage);
  if (small) give_back_pages(*small);
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(refused, Status::NotSupported);
  EXPECT_TRUE(small);
  EXPECT_TRUE(memory.has_numbers());
}

TEST(AdoptUserFaultsOnly, LeavesProgramsWithThreadsAlone) {
  Memory memory(kMiB);
  memory.number_pages();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) std::this_thread::yield();
  });
  limit_adopt_mode(AdoptMode::UserFaultsOnly);
  // A system call of the other thread would fail at a page that is moving.
  EXPECT_EQ(adopt_pages(memory.address(), memory.size()).error(), Status::NotSupported);
  limit_adopt_mode(std::nullopt);
  stop = true;
  other.join();
  EXPECT_TRUE(memory.has_numbers());
}

// Counts increments of two threads all over a range and compares with the counters in the range.
class Writers {
 public:
  explicit Writers(Memory& memory) : pages_(memory.size() / kPage) {
    counters_.reserve(pages_);
    for (std::size_t i = 0; i < pages_; ++i) {
      counters_.push_back(new (memory.base() + i * kPage) std::atomic<std::uint64_t>(0));
    }
    for (unsigned seed : {1u, 2u}) threads_.emplace_back([this, seed] { run(seed); });
  }
  // Returns the number of lost increments.
  std::uint64_t stop() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
    std::uint64_t counted = 0;
    for (const auto* counter : counters_) counted += counter->load();
    return done_.load() - counted;
  }
  std::uint64_t done() const { return done_.load(); }

 private:
  void run(unsigned seed) {
    unsigned x = seed * 7919 + 1;
    while (!stop_.load(std::memory_order_relaxed)) {
      x = x * 1664525 + 1013904223;
      counters_[(x >> 8) % pages_]->fetch_add(1, std::memory_order_relaxed);
      done_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::size_t pages_;
  std::vector<std::atomic<std::uint64_t>*> counters_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> done_{0};
  std::vector<std::thread> threads_;
};

void expect_no_lost_write(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    Memory memory(8 * kMiB);
    Writers writers(memory);
    while (writers.done() < 10000) std::this_thread::yield();
    auto pages = adopt_pages(memory.address(), memory.size());
    ASSERT_TRUE(pages) << "round " << round << ": " << status_text(pages.error());
    std::this_thread::yield();
    give_back_pages(*pages);
    ASSERT_EQ(writers.stop(), 0u) << "round " << round;
  }
}

TEST_F(AdoptThreads, NoWriteOfAnotherThreadIsLost) {
  expect_no_lost_write(30);
}

TEST_F(AdoptThreads, ReturnedMemoryIsAnonymousAndCanBeAdoptedAgain) {
  Memory memory(12 * kMiB);
  Writers writers(memory);
  for (int round = 0; round < 20; ++round) {
    auto pages = adopt_pages(memory.address(), memory.size());
    ASSERT_TRUE(pages) << "round " << round << ": " << status_text(pages.error());
    give_back_pages(*pages);
    MapsReader maps;
    Mapping m;
    for (std::uint64_t at = memory.address(); at < memory.address() + memory.size(); at = m.end) {
      ASSERT_TRUE(maps.find(at, m));
      ASSERT_EQ(m.inode, 0u);
      ASSERT_FALSE(m.shared);
    }
    EXPECT_EQ(file_kilobytes(*pages), 0);
  }
  EXPECT_EQ(writers.stop(), 0u);
}

// A system call that writes to the memory waits as a store does.
TEST_F(AdoptThreads, ASystemCallOfAnotherThreadWaitsForTheReturn) {
  Memory memory(8 * kMiB);
  std::atomic<bool> stop{false};
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    const int zero = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    std::vector<unsigned char> expected(kPage);
    for (std::size_t page = 0; !stop; page = (page + 37) % (memory.size() / kPage)) {
      unsigned char* at = memory.base() + page * kPage;
      if (::read(zero, at, kPage) != static_cast<ssize_t>(kPage)) ++wrong;
      std::memcpy(expected.data(), at, kPage);
      std::this_thread::yield();
      if (std::memcmp(expected.data(), at, kPage) != 0) ++wrong;
    }
    ::close(zero);
  });
  for (int round = 0; round < 30; ++round) {
    auto pages = adopt_pages(memory.address(), memory.size());
    ASSERT_TRUE(pages) << status_text(pages.error());
    give_back_pages(*pages);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0u);
}

// A fiber may run on memory that was adopted before.
TEST_F(AdoptThreads, MemoryIsReturnedToAThreadWhoseStackItIs) {
  Memory memory(kMiB);
  memory.number_pages();
  auto pages = adopt_pages(memory.address(), memory.size());
  ASSERT_TRUE(pages);
  static ucontext_t back, fiber;
  static AdoptedPages* given;
  given = &*pages;
  ASSERT_EQ(::getcontext(&fiber), 0);
  fiber.uc_stack = {memory.base() + 64 * kPage, 0, memory.size() - 64 * kPage};
  fiber.uc_link = &back;
  ::makecontext(
      &fiber, [] { give_back_pages(*given); }, 0);
  ASSERT_EQ(::swapcontext(&back, &fiber), 0);
  for (std::size_t page = 0; page < 64; ++page) EXPECT_EQ(memory.word(page), page + 1);
  EXPECT_EQ(file_kilobytes(*pages), 0);
}

// Rights that the program has taken away meanwhile stay away.
TEST_F(AdoptThreads, ReturnedMemoryKeepsItsRights) {
  Memory memory(kMiB);
  memory.number_pages();
  auto pages = adopt_pages(memory.address(), memory.size());
  ASSERT_TRUE(pages);
  ASSERT_EQ(::mprotect(memory.base(), 16 * kPage, PROT_READ), 0);
  give_back_pages(*pages);
  EXPECT_TRUE(memory.has_numbers());
  MapsReader maps;
  Mapping m;
  ASSERT_TRUE(maps.find(memory.address(), m));
  EXPECT_TRUE(m.readable && !m.writable && m.inode == 0);
  ASSERT_TRUE(maps.find(memory.address() + 16 * kPage, m));
  EXPECT_TRUE(m.readable && m.writable && m.inode == 0);
}

// Without write protection the memory stays a private mapping of the file, of whose pages nothing
// proves that none is held for I/O: so with threads it stays.
TEST_F(AdoptThreads, MemoryReturnedAsCopiesStaysWhereThreadsAre) {
  forbid_write_protection(true);
  Memory memory(4 * kMiB);
  auto pages = adopt_pages(memory.address(), memory.size());
  ASSERT_TRUE(pages);
  memory.number_pages();
  Writers writers(memory);
  give_back_pages(*pages);
  while (writers.done() < 1000) std::this_thread::yield();
  EXPECT_EQ(adopt_pages(memory.address(), memory.size()).error(), Status::DeviceBusy);
  EXPECT_EQ(writers.stop(), 0u);
}

TEST_F(AdoptThreads, NoWriteIsLostWhereMemoryIsReturnedAsCopies) {
  forbid_write_protection(true);
  expect_no_lost_write(10);
}

// The first touch of a page, by reading or writing, during the move.
TEST_F(AdoptThreads, PagesFirstTouchedDuringTheMoveAreNotLost) {
  for (int round = 0; round < 40; ++round) {
    Memory memory(4 * kMiB);
    std::atomic<std::size_t> reached{0};
    std::thread toucher([&] {
      for (std::size_t page = 0; page < memory.size() / kPage; ++page) {
        auto& word = *reinterpret_cast<std::atomic<std::uint64_t>*>(memory.base() + page * kPage);
        if (page % 2 == 0 && word.load() != 0) std::abort();
        word.store(page + 1);
        reached = page;
      }
    });
    while (reached < 100) std::this_thread::yield();
    auto pages = adopt_pages(memory.address(), memory.size());
    ASSERT_TRUE(pages);
    give_back_pages(*pages);
    toucher.join();
    ASSERT_TRUE(memory.has_numbers()) << "round " << round;
  }
}

TEST_P(Adopt, AForkedChildHasItsOwnCopy) {
  Memory memory(6 * kMiB);
  memory.number_pages();
  auto pages = adopt_pages(memory.address(), memory.size());
  ASSERT_TRUE(pages);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!memory.has_numbers()) ::_exit(1);
    memory.set_word(3, 333);
    // tidy: allow(sleep) time itself is what is tested, or a poll with a deadline
    ::usleep(20'000);
    if (memory.word(5) != 6) ::_exit(2);  // the parent has changed its own by now
    give_back_pages(*pages);              // not the child's to give
    if (memory.word(3) != 333 || memory.word(4) != 5) ::_exit(3);
    auto own = adopt_pages(memory.address(), memory.size());
    if (!own || memory.word(3) != 333) ::_exit(4);
    give_back_pages(*own);
    ::madvise(memory.base(), memory.size(), MADV_DONTNEED);
    ::_exit(memory.word(4) == 0 ? 0 : 5);
  }
  memory.set_word(5, 555);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(memory.word(3), 4u);
  EXPECT_EQ(memory.word(4), 5u);
  EXPECT_EQ(word_in_file(*pages, 5), 555u);
  give_back_pages(*pages);
  const pid_t later = ::fork();  // returned memory is copied on write like any other
  if (later == 0) {
    memory.set_word(3, 1);
    ::_exit(memory.word(5) == 555 ? 0 : 1);
  }
  ASSERT_EQ(::waitpid(later, &status, 0), later);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory.word(3), 4u);
}

TEST_F(AdoptThreads, ForksDuringMovesFindAllPages) {
  std::vector<std::unique_ptr<Memory>> memories;
  for (int i = 0; i < 60; ++i) {
    memories.push_back(std::make_unique<Memory>(kMiB));
    memories.back()->number_pages();
  }
  const auto all_numbered = [&] {
    return std::all_of(memories.begin(), memories.end(),
                       [](const auto& m) { return m->has_numbers(); });
  };
  std::atomic<std::size_t> moved{0};
  std::jthread mover([&](const std::stop_token& no_more_forks) {
    for (const auto& memory : memories) {
      auto pages = adopt_pages(memory->address(), memory->size());
      // A fork() meanwhile leaves pages shared with the child for a moment.
      if (!pages && pages.error() != Status::DeviceBusy) std::abort();
      if (pages) give_back_pages(*pages);
      ++moved;
    }
    // TSan reports a thread that had ended before a fork() as a leak of the child's.
    while (!no_more_forks.stop_requested()) std::this_thread::yield();
  });
  while (moved < memories.size()) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(all_numbered() ? 0 : 1);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  mover.request_stop();
  mover.join();
  EXPECT_TRUE(all_numbered());
}

TEST_P(Adopt, AMappingThatIsMovedAndGrownIsItsChildsOwn) {
  auto* base = static_cast<unsigned char*>(
      ::mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(base, 1, kMiB);
  auto pages = adopt_pages(reinterpret_cast<std::uint64_t>(base), kMiB);
  ASSERT_TRUE(pages);
  // A mapping above it, so that it has to move.
  (void)::mmap(base + kMiB, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* grown = static_cast<unsigned char*>(::mremap(base, kMiB, 2 * kMiB, MREMAP_MAYMOVE));
  ASSERT_NE(grown, MAP_FAILED);
  EXPECT_EQ(grown[0], 1);
  EXPECT_EQ(grown[2 * kMiB - 1], 0);
  grown[kMiB + 5] = 3;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool right = grown[0] == 1 && grown[kMiB + 5] == 3 && grown[2 * kMiB - 1] == 0;
    grown[0] = grown[kMiB + 5] = 77;
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(grown[0], 1);
  EXPECT_EQ(grown[kMiB + 5], 3);
  give_back_pages(*pages);
  ::munmap(grown, 2 * kMiB);
}

TEST_P(Adopt, AGrownMappingIsReturnedWhole) {
  auto* base = static_cast<unsigned char*>(
      ::mmap(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(::munmap(base + kMiB, 3 * kMiB), 0);  // room to grow in place
  std::memset(base, 1, kMiB);
  auto pages = adopt_pages(reinterpret_cast<std::uint64_t>(base), kMiB);
  ASSERT_TRUE(pages);
  if (::mremap(base, kMiB, 2 * kMiB, 0) != base) GTEST_SKIP() << "something else took the room";
  base[kMiB + 5] = 3;
  give_back_pages(*pages);
  EXPECT_EQ(base[kMiB + 5], 3);
  MapsReader maps;
  Mapping m;
  ASSERT_TRUE(maps.find(reinterpret_cast<std::uint64_t>(base) + kMiB, m));
  EXPECT_FALSE(m.shared);
  ::munmap(base, 2 * kMiB);
}

// Whether a backing may serve another region: only if it is mapped as a whole, and is the same
// mapping.
TEST_P(Adopt, PresenceTellsWhatTheProgramHasLeft) {
  using Presence = platform::ClientHost::Presence;
  Memory memory(16 * kPage);
  memory.number_pages();
  auto pages = adopt_pages(memory.address(), memory.size());
  ASSERT_TRUE(pages);
  const auto presence = [&](std::size_t first, std::size_t count) {
    return adopted_presence(*pages, memory.address() + first * kPage, count * kPage);
  };
  EXPECT_EQ(presence(0, 16), Presence::Whole);
  ASSERT_EQ(::munmap(memory.base() + 4 * kPage, 4 * kPage), 0);
  EXPECT_EQ(presence(0, 16), Presence::Partial);
  EXPECT_EQ(presence(0, 4), Presence::Whole);
  EXPECT_EQ(presence(4, 4), Presence::Gone);
  ASSERT_NE(::mmap(memory.base() + 4 * kPage, 4 * kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  EXPECT_EQ(presence(0, 16), Presence::Partial) << "others are at the address";
  EXPECT_EQ(presence(4, 4), Presence::Gone);
  EXPECT_EQ(presence(3, 2), Presence::Partial);
  give_back_pages(*pages);
  EXPECT_EQ(presence(0, 4), Presence::Gone);
}

// PROCMAP_QUERY and the text (kernels before 6.11) must agree.
TEST(MapsReader, BothWaysFindTheSameMappings) {
  MapsReader query;
  MapsReader text;
  text.read_text_only();
  std::size_t count = 0;
  Mapping a;
  Mapping b;
  for (std::uint64_t at = 0; query.find(at, a); at = a.end, ++count) {
    ASSERT_TRUE(text.find(at, b));
    if (a.name_view() == "[vsyscall]" || b.name_view() == "[vsyscall]") break;
    ASSERT_EQ(a.start, b.start);
    ASSERT_EQ(a.end, b.end);
    ASSERT_EQ(a.offset, b.offset);
    ASSERT_EQ(a.inode, b.inode);
    ASSERT_EQ(a.device_major, b.device_major);
    ASSERT_EQ(a.device_minor, b.device_minor);
    ASSERT_EQ(a.readable, b.readable);
    ASSERT_EQ(a.writable, b.writable);
    ASSERT_EQ(a.executable, b.executable);
    ASSERT_EQ(a.shared, b.shared);
    ASSERT_EQ(a.name_view(), b.name_view());
  }
  EXPECT_GT(count, 10u);
}

TEST_F(AdoptThreads, ASystemCallOfAnotherThreadWaitsForTheMove) {
  constexpr std::size_t kPieces = 20;
  Memory memory(kPieces * 4 * kMiB);
  memory.number_pages();
  const int zero = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::atomic<std::size_t> piece{0};
  std::atomic<int> reads{0};
  std::thread reader([&] {
    constexpr std::size_t kPagesOfPiece = 4 * kMiB / kPage;
    for (std::size_t page = 0; !stop; page = (page + 1) % kPagesOfPiece) {
      unsigned char* at = memory.base() + (piece * kPagesOfPiece + page) * kPage;
      if (::read(zero, at + 64, 64) != 64) ++failures;
      ++reads;
    }
  });
  for (std::size_t i = 0; i < kPieces; ++i) {
    piece = i;
    for (const int before = reads; reads < before + 10;) std::this_thread::yield();
    auto pages = adopt_pages(memory.address() + i * 4 * kMiB, 4 * kMiB);
    ASSERT_TRUE(pages);
    give_back_pages(*pages);
  }
  stop = true;
  reader.join();
  ::close(zero);
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(memory.has_numbers());
}

TEST(AdoptWithoutUserfaultfd, WorksIffThereIsOneThread) {
  if (has_threads_already()) GTEST_SKIP() << kNotAlone;
  Memory memory(kMiB);
  memory.number_pages();
  const pid_t child = ::fork();  // certainly one thread, whatever a sanitizer runs here
  if (child == 0) {
    limit_adopt_mode(AdoptMode::None);
    if (adopt_mode() != AdoptMode::None) ::_exit(1);
    auto pages = adopt_pages(memory.address(), memory.size());
    if (!pages) ::_exit(4);
    if (!pages || !memory.has_numbers() || word_in_file(*pages, 1) != 2) ::_exit(2);
    give_back_pages(*pages);
    ::_exit(memory.has_numbers() ? 0 : 3);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);

  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) std::this_thread::yield();
  });
  limit_adopt_mode(AdoptMode::None);
  EXPECT_EQ(adopt_pages(memory.address(), memory.size()).error(), Status::NotSupported);
  limit_adopt_mode(std::nullopt);
  stop = true;
  other.join();
  EXPECT_TRUE(memory.has_numbers());
}

}  // namespace
}  // namespace ib::os
