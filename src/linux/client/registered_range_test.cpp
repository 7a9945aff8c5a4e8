// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/registered_range.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <limits>

namespace ib::os {
namespace {

constexpr std::uint64_t kPage = 4096;

// Eight pages; the tests make holes and change protections.
class RegisteredRange : public ::testing::Test {
 protected:
  void SetUp() override {
    void* pages =
        ::mmap(nullptr, 8 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    base = reinterpret_cast<std::uint64_t>(pages);
  }
  void TearDown() override { ::munmap(page(0), 8 * kPage); }
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  void* page(std::uint64_t i) const { return reinterpret_cast<void*>(base + i * kPage); }
  static bool may(std::uint64_t address, std::uint64_t length, bool write = true) {
    return why_not_registered(address, length, write).empty();
  }
  static bool says(const std::string& reason, const char* what) {
    return reason.find(what) != std::string::npos;
  }
  std::uint64_t base = 0;
};

TEST_F(RegisteredRange, IsMappedFromItsFirstToItsLastByte) {
  EXPECT_TRUE(may(base, 8 * kPage));
  EXPECT_TRUE(may(base + 5, 3));
  ASSERT_EQ(::munmap(page(4), kPage), 0);
  EXPECT_TRUE(may(base, 4 * kPage));
  EXPECT_FALSE(may(base, 4 * kPage + 1));
  EXPECT_FALSE(may(base, 8 * kPage));
  EXPECT_FALSE(may(base + 5 * kPage - 1, 2));
  EXPECT_TRUE(may(base + 5 * kPage, 3 * kPage));
  EXPECT_TRUE(says(why_not_registered(base, 8 * kPage, true), "nothing is mapped at 0x"));
}

TEST_F(RegisteredRange, OfNothingCountsItsPage) {
  ASSERT_EQ(::munmap(page(4), kPage), 0);
  EXPECT_TRUE(may(base + 100, 0));
  EXPECT_FALSE(may(base + 4 * kPage + 100, 0));
}

TEST_F(RegisteredRange, IsReadableAndWritableAsItsRightsWant) {
  ASSERT_EQ(::mprotect(page(6), kPage, PROT_READ), 0);
  EXPECT_TRUE(may(base, 8 * kPage, false));
  EXPECT_TRUE(may(base, 6 * kPage, true));
  const std::string reason = why_not_registered(base, 8 * kPage, true);
  EXPECT_TRUE(says(reason, "is not writable")) << reason;
  ASSERT_EQ(::mprotect(page(6), kPage, PROT_NONE), 0);
  EXPECT_FALSE(may(base, 8 * kPage, false));
  EXPECT_TRUE(says(why_not_registered(base, 8 * kPage, true), "is not readable"));
}

TEST_F(RegisteredRange, IsOfTheProgram) {
  EXPECT_FALSE(may(0, kPage, false));
  EXPECT_FALSE(may(0xffff'8000'0000'0000, kPage, false));
  EXPECT_FALSE(may(std::numeric_limits<std::uint64_t>::max() - kPage, kPage, false));
  EXPECT_FALSE(may(base, 1ull << 46));
}

// The kernel cannot pin what lies behind the end of the file.
TEST_F(RegisteredRange, EndsWithItsFile) {
  const int file = ::memfd_create("two pages", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(file, kPage + 1), 0);
  for (const int kind : {MAP_SHARED, MAP_PRIVATE}) {
    ASSERT_NE(::mmap(page(2), 4 * kPage, PROT_READ | PROT_WRITE, kind | MAP_FIXED, file, 0),
              MAP_FAILED);
    EXPECT_TRUE(may(base, 4 * kPage));
    EXPECT_FALSE(may(base, 4 * kPage + 1));
    EXPECT_FALSE(may(base, 8 * kPage, false));
    EXPECT_TRUE(says(why_not_registered(base, 8 * kPage, true), "ends before 0x"));
  }
  ASSERT_EQ(::ftruncate(file, 4 * kPage), 0);
  EXPECT_TRUE(may(base, 8 * kPage));
  ::close(file);
}

// The pages of [vvar], which are before those of the vDSO, are the kernel's.
TEST_F(RegisteredRange, HasPagesThatCanBePinned) {
  const std::uint64_t vdso = ::getauxval(AT_SYSINFO_EHDR);
  if (vdso == 0) GTEST_SKIP() << "this kernel has no vDSO";
  const std::string reason = why_not_registered(vdso - kPage, kPage, false);
  EXPECT_TRUE(says(reason, "[vvar")) << reason;
  EXPECT_TRUE(may(vdso, kPage, false));
  ASSERT_NE(
      ::mmap(page(2), kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      MAP_FAILED);
  EXPECT_TRUE(may(base, 8 * kPage));
}

TEST_F(RegisteredRange, StaysUntouched) {
  ASSERT_TRUE(may(base, 8 * kPage));
  unsigned char there[8] = {};
  ASSERT_EQ(::mincore(page(0), 8 * kPage, there), 0);
  for (const unsigned char one : there) EXPECT_EQ(one & 1, 0);
}

}  // namespace
}  // namespace ib::os
