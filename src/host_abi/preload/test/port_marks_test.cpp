// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/names/port_marks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ib::host_abi::preload {
namespace {

constexpr std::uint64_t kOwn = 0x0123456789abcdef;
constexpr std::uint64_t kOther = 0xfedcba9876543210;

std::string mark(std::uint16_t port, std::uint64_t fabric) {
  char text[kMarkSize];
  return {text, write_mark(port, fabric, 4711, text)};
}

// As /proc/net/unix has it.
std::string line(const std::string& path) {
  return "0000000000000000: 00000002 00000000 00000000 0001 01 184467 " + path + "\n";
}

// Read in parts of `size` bytes.
MarkSearch search(const std::string& text, std::size_t size = 7) {
  MarkSearch found(18515, kOwn);
  for (std::size_t at = 0; at < text.size(); at += size) {
    found.read(text.data() + at, std::min(size, text.size() - at));
  }
  return found;
}

TEST(PortMarks, TellTheFabricsOfAPort) {
  EXPECT_EQ(mark(18515, kOwn), "softib/port/18515/0123456789abcdef/4711");
  const std::string head = "Num       RefCount Protocol Flags    Type St Inode Path\n";
  const MarkSearch none = search(head + line("/run/x") + line("@softib/addresses/127.1.0.0") +
                                 line("@" + mark(1851, kOther)) + line("@" + mark(18516, kOwn)));
  EXPECT_FALSE(none.found_own() || none.found_other());
  const MarkSearch other = search(head + line("@" + mark(18515, kOther)) + line(""));
  EXPECT_TRUE(other.found_other());
  EXPECT_FALSE(other.found_own());
  const MarkSearch both = search(line("@" + mark(18515, kOther)) + line("@" + mark(18515, kOwn)));
  EXPECT_TRUE(both.found_own() && both.found_other());
}

TEST(PortMarks, LongLinesAndOtherTextsAreNoMarks) {
  const std::string other = "@" + mark(18515, kOther);
  EXPECT_FALSE(search(line(std::string(300, 'x') + other)).found_other());
  EXPECT_FALSE(search(line("@softib/port/18515/")).found_other());
  EXPECT_FALSE(search(line("/home/" + other.substr(1))).found_other());
  EXPECT_TRUE(search(line(std::string(500, 'x')) + line(other)).found_other()) << "the next line";
}

}  // namespace
}  // namespace ib::host_abi::preload
