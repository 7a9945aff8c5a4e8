// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How many mappings adoption leaves behind (adopt_kept.h, adopt_room.h).
#include "base/sanitizer.h"
#include "linux/adopt/adopt.h"
#include "linux/adopt/adopt_room.h"
#include "linux/adopt/private_range.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ib::os {
namespace {

using platform::AdoptedPages;
using platform::AdoptMode;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kPages = 512;

// The mappings in [start, end).
int mappings_in(std::uint64_t start, std::uint64_t end) {
  MapsReader maps;
  Mapping m;
  int count = 0;
  for (std::uint64_t at = start; at < end && maps.find(at, m) && m.start < end; at = m.end) ++count;
  return count;
}

// Numbered pages between pages without access, with which the kernel joins nothing. (With fewer
// of these the buffer would look like a stack.)
class Buffer {
 public:
  Buffer() {
    void* const all = ::mmap(nullptr, kSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = static_cast<unsigned char*>(all) + kAround;
    (void)::mprotect(base_, kPages * kPage, PROT_READ | PROT_WRITE);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { (void)::munmap(base_ - kAround, kSpace); }

  void number_pages() {
    for (std::uint64_t i = 0; i < kPages; ++i) std::memcpy(at(i), &i, sizeof i);
  }
  std::uint64_t wrong_pages() const {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < kPages; ++i) wrong += std::memcmp(at(i), &i, sizeof i) != 0;
    return wrong;
  }
  unsigned char* at(std::uint64_t page) const { return base_ + page * kPage; }
  std::uint64_t address(std::uint64_t page = 0) const {
    return reinterpret_cast<std::uint64_t>(at(page));
  }
  int mappings() const { return mappings_in(address(), address(kPages)); }
  Result<AdoptedPages> adopt(std::uint64_t page, std::uint64_t pages) const {
    return adopt_pages(address(page), pages * kPage);
  }

 private:
  static constexpr std::uint64_t kAround = 32 * kPage;
  static constexpr std::uint64_t kSpace = kPages * kPage + 2 * kAround;

  unsigned char* base_;
};

// Every test runs in each mode that this machine has, with and without a second thread.
struct Way {
  AdoptMode mode;
  bool has_thread;
};

class AdoptMappings : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (adopt_mode() < GetParam().mode) {
      GTEST_SKIP() << "userfaultfd is not permitted to this process in the wanted way";
    }
#if IB_THREAD_SANITIZER
    if (!GetParam().has_thread) GTEST_SKIP() << "ThreadSanitizer starts a thread of its own";
#endif
    limit_adopt_mode(GetParam().mode);
    if (GetParam().has_thread) {
      thread_ = std::thread([this] { stop_.wait(false); });
    }
  }
  void TearDown() override {
    stop_ = true;
    stop_.notify_all();
    if (thread_.joinable()) thread_.join();
    limit_adopt_mode(std::nullopt);
    limit_mappings(std::nullopt);
  }

  Buffer buffer;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

INSTANTIATE_TEST_SUITE_P(Modes, AdoptMappings,
                         ::testing::Values(Way{AdoptMode::Full, true}, Way{AdoptMode::Full, false},
                                           Way{AdoptMode::UserFaultsOnly, false},
                                           Way{AdoptMode::None, false}),
                         [](const auto& instance) {
                           const Way& way = instance.param;
                           return std::string(way.mode == AdoptMode::Full   ? "Full"
                                              : way.mode == AdoptMode::None ? "None"
                                                                            : "UserFaultsOnly") +
                                  (way.has_thread ? "WithThread" : "");
                         });

TEST_P(AdoptMappings, PagesThatAreGivenBackJoinTheirNeighbours) {
  buffer.number_pages();
  auto pages = buffer.adopt(100, 50);
  ASSERT_TRUE(pages) << status_text(pages.error());
  EXPECT_EQ(buffer.mappings(), 3);
  give_back_pages(*pages);
  EXPECT_EQ(buffer.mappings(), 1);
  EXPECT_EQ(buffer.wrong_pages(), 0u);
}

TEST_P(AdoptMappings, AlsoPagesThatNoOneHadTouched) {
  auto pages = buffer.adopt(100, 50);
  auto others = buffer.adopt(300, 50);
  ASSERT_TRUE(pages && others);
  buffer.number_pages();
  give_back_pages(*pages);
  give_back_pages(*others);
  EXPECT_EQ(buffer.mappings(), 1);
  EXPECT_EQ(buffer.wrong_pages(), 0u);
}

TEST_P(AdoptMappings, AlsoPagesThatWereOnlyRead) {
  unsigned sum = 0;
  for (std::uint64_t i = 0; i < kPages; ++i) sum += *buffer.at(i);
  EXPECT_EQ(sum, 0u);
  auto pages = buffer.adopt(100, 50);
  ASSERT_TRUE(pages);
  buffer.number_pages();
  give_back_pages(*pages);
  EXPECT_EQ(buffer.mappings(), 1);
  EXPECT_EQ(buffer.wrong_pages(), 0u);
}

TEST_P(AdoptMappings, EverySecondPageInAnyOrder) {
  buffer.number_pages();
  const int before = mappings_in(0, ~std::uint64_t{0});
  std::mt19937 random(34);
  for (int round = 0; round < 3; ++round) {
    std::vector<AdoptedPages> adopted;
    for (std::uint64_t page = 0; page < kPages; page += 2) {
      auto pages = buffer.adopt(page, 1);
      ASSERT_TRUE(pages) << "page " << page << ": " << status_text(pages.error());
      adopted.push_back(*std::move(pages));
    }
    std::shuffle(adopted.begin(), adopted.end(), random);
    for (const AdoptedPages& pages : adopted) give_back_pages(pages);
    EXPECT_EQ(buffer.mappings(), 1) << "round " << round;
    EXPECT_EQ(buffer.wrong_pages(), 0u);
  }
  // Of the whole process: what was put aside is gone. (The heap may have grown, a sanitizer's by
  // several.)
  EXPECT_LE(mappings_in(0, ~std::uint64_t{0}), before + 16);
}

TEST_P(AdoptMappings, RangesThatOverlapOneAfterTheOther) {
  buffer.number_pages();
  std::mt19937 random(35);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t page = random() % (kPages - 40);
    auto pages = buffer.adopt(page, 1 + random() % 40);
    ASSERT_TRUE(pages);
    give_back_pages(*pages);
    ASSERT_EQ(buffer.mappings(), 1) << "round " << round;
  }
  EXPECT_EQ(buffer.wrong_pages(), 0u);
}

TEST_P(AdoptMappings, EachMappingUnderARangeComesBackAsItWas) {
  buffer.number_pages();
  // A child does not inherit the middle.
  ASSERT_EQ(::madvise(buffer.at(200), 100 * kPage, MADV_DONTFORK), 0);
  ASSERT_EQ(buffer.mappings(), 3);
  auto pages = buffer.adopt(150, 200);
  ASSERT_TRUE(pages);
  EXPECT_EQ(buffer.mappings(), 3);
  give_back_pages(*pages);
  EXPECT_EQ(buffer.mappings(), 3);
  EXPECT_EQ(buffer.wrong_pages(), 0u);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(mappings_in(buffer.address(), buffer.address(kPages)) == 2 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(::madvise(buffer.at(200), 100 * kPage, MADV_DOFORK), 0);
  EXPECT_EQ(buffer.mappings(), 1);
}

TEST_P(AdoptMappings, APartThatTheProgramUnmappedStaysAHole) {
  buffer.number_pages();
  auto pages = buffer.adopt(100, 50);
  ASSERT_TRUE(pages);
  ASSERT_EQ(::munmap(buffer.at(120), 10 * kPage), 0);
  give_back_pages(*pages);
  EXPECT_EQ(buffer.mappings(), 2);
  std::uint64_t number = 0;
  for (const std::uint64_t page : {std::uint64_t{100}, std::uint64_t{119}, std::uint64_t{130}}) {
    std::memcpy(&number, buffer.at(page), sizeof number);
    EXPECT_EQ(number, page);
  }
  unsigned char present = 0;
  EXPECT_EQ(::mincore(buffer.at(125), kPage, &present), -1);
}

TEST_P(AdoptMappings, NothingIsLeftOfARangeThatTheProgramUnmapped) {
  buffer.number_pages();
  const int before = mappings_in(0, ~std::uint64_t{0});
  for (int round = 0; round < 20; ++round) {
    auto pages = buffer.adopt(100, 50);
    ASSERT_TRUE(pages);
    ASSERT_NE(::mmap(buffer.at(100), 50 * kPage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
    // Another range at the address of one that is still known, every second time.
    auto again = round % 2 == 0 ? Result<AdoptedPages>(Status::NotFound) : buffer.adopt(100, 50);
    give_back_pages(*pages);
    if (again) give_back_pages(*again);
    ASSERT_EQ(buffer.mappings(), 1) << "round " << round;
  }
  EXPECT_LE(mappings_in(0, ~std::uint64_t{0}), before + 16);
}

TEST_P(AdoptMappings, AForkedChildHasNothingThatWasPutAside) {
  buffer.number_pages();
  std::vector<AdoptedPages> adopted;
  for (std::uint64_t page = 0; page < kPages; page += 8) {
    auto pages = buffer.adopt(page, 4);
    ASSERT_TRUE(pages);
    adopted.push_back(*std::move(pages));
  }
  const int before = mappings_in(0, ~std::uint64_t{0});
  const pid_t child = ::fork();
  if (child == 0) {
    const int most = before - static_cast<int>(adopted.size()) / 2;
    ::_exit(buffer.wrong_pages() == 0 && mappings_in(0, ~std::uint64_t{0}) <= most ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const AdoptedPages& pages : adopted) give_back_pages(pages);
  EXPECT_EQ(buffer.wrong_pages(), 0u);
  EXPECT_EQ(buffer.mappings(), 1);
}

TEST_P(AdoptMappings, NoneIsAdoptedWhereTheProgramNeedsTheMappings) {
  buffer.number_pages();
  const auto now = static_cast<std::uint64_t>(mappings_in(0, ~std::uint64_t{0}));
  limit_mappings(2 * now - 2);
  EXPECT_EQ(buffer.adopt(100, 50).error(), Status::InsufficientResources);
  limit_mappings(20 * now + 64);
  auto pages = buffer.adopt(100, 50);
  ASSERT_TRUE(pages);
  limit_mappings(64 + 2 * now + 64);
  give_back_pages(*pages);
}

// Each range is worth 64 of vm.max_map_count.
TEST_P(AdoptMappings, RangesTakeASmallShareOfTheLimit) {
  buffer.number_pages();
  constexpr std::uint64_t kRanges = 16;
  limit_mappings(64 * kRanges);
  std::vector<AdoptedPages> adopted;
  while (adopted.size() <= kRanges) {
    auto pages = buffer.adopt(4 * adopted.size(), 2);
    if (!pages) break;
    adopted.push_back(*std::move(pages));
  }
  EXPECT_EQ(adopted.size(), kRanges);
  for (const AdoptedPages& pages : adopted) give_back_pages(pages);
  auto pages = buffer.adopt(100, 50);
  ASSERT_TRUE(pages);
  give_back_pages(*pages);
}

}  // namespace
}  // namespace ib::os
