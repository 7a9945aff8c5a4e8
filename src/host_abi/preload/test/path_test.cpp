// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/path.h"

#include <gtest/gtest.h>

#include <string>

namespace ib::host_abi::preload {
namespace {

std::string normalised(const char* base, const char* path) {
  Path out;
  return normalise(base, path, out) ? std::string(out.text, out.length) : "<too long>";
}

TEST(PreloadPath, NormalisesAbsolutePaths) {
  EXPECT_EQ(normalised("/ignored", "/"), "/");
  EXPECT_EQ(normalised("/ignored", "///"), "/");
  EXPECT_EQ(normalised("/ignored", "/a//b/./c/"), "/a/b/c");
  EXPECT_EQ(normalised("/ignored", "/a/b/../c"), "/a/c");
  EXPECT_EQ(normalised("/ignored", "/a/../../.."), "/");
  EXPECT_EQ(normalised("/ignored", "/../a"), "/a");
  EXPECT_EQ(normalised("/ignored", "/a/..b/.c/d."), "/a/..b/.c/d.");
}

TEST(PreloadPath, JoinsRelativePathsToTheirDirectory) {
  EXPECT_EQ(normalised("/sys/class", "infiniband"), "/sys/class/infiniband");
  EXPECT_EQ(normalised("/sys/class/", "./infiniband/"), "/sys/class/infiniband");
  EXPECT_EQ(normalised("/sys/class/infiniband", ".."), "/sys/class");
  EXPECT_EQ(normalised("/", "dev"), "/dev");
  EXPECT_EQ(normalised("/a", "."), "/a");
  EXPECT_EQ(normalised("/a", ""), "/a");
}

TEST(PreloadPath, RefusesWhatDoesNotFit) {
  const std::string name(kPathSize - 2, 'x');
  EXPECT_EQ(normalised("/", ("/" + name).c_str()), "/" + name);
  EXPECT_EQ(normalised("/", ("/" + name + "y").c_str()), "<too long>");
  EXPECT_EQ(normalised(("/" + name).c_str(), "y"), "<too long>");
  // A path that is too long on the way but short in the end is refused, too.
  EXPECT_EQ(normalised("/", ("/" + name + "/y/../..").c_str()), "<too long>");
}

TEST(PreloadPath, SeesATrailingSlash) {
  EXPECT_TRUE(ends_like_directory("/a/"));
  EXPECT_TRUE(ends_like_directory("/a/."));
  EXPECT_TRUE(ends_like_directory("/a/.."));
  EXPECT_FALSE(ends_like_directory("/a"));
  EXPECT_FALSE(ends_like_directory("/a/x."));
  EXPECT_FALSE(ends_like_directory(""));
}

TEST(PreloadPath, InodesDependOnThePathAlone) {
  Path path;
  ASSERT_TRUE(normalise("/", "/sys/class/infiniband/softib0", path));
  EXPECT_EQ(inode_of(path), inode_of("/sys/class/infiniband", "softib0"));
  EXPECT_NE(inode_of(path), inode_of("/sys/class/infiniband", "softib1"));
  EXPECT_LT(inode_of(path), 1u << 28);
  EXPECT_NE(inode_of(path), 0u);
}

TEST(PreloadPath, WritesNumbers) {
  char text[16];
  for (const unsigned value : {0u, 7u, 10u, 65535u, 4294967295u}) {
    write_number(value, text);
    EXPECT_EQ(text, std::to_string(value));
  }
}

}  // namespace
}  // namespace ib::host_abi::preload
