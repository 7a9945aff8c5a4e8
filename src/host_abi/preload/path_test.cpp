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

bool ours(const char* path) {
  Path out;
  return normalise("/", path, out) && is_ours(out);
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
  // Long on the way but short in the end is still refused rather than overrun.
  EXPECT_EQ(normalised("/", ("/" + name + "/y/../..").c_str()), "<too long>");
}

TEST(PreloadPath, KnowsItsOwn) {
  for (const char* path :
       {"/sys/class/infiniband", "/sys/class/infiniband/softib0/node_guid",
        "/sys/class/infiniband_verbs/uverbs0", "/sys/class/infiniband_mad", "/dev/infiniband",
        "/dev/infiniband/rdma_cm", "/sys//class/./infiniband/", "/sys/devices/infiniband",
        "/sys/devices/infiniband/softib0/vendor"}) {
    EXPECT_TRUE(ours(path)) << path;
    EXPECT_TRUE(may_be_ours(path)) << path;
  }
  for (const char* path :
       {"/", "/sys", "/sys/class", "/sys/class/infinibandx", "/sys/devices",
        "/sys/devices/infiniband_x", "/dev/infiniband_x", "/dev/null", "/tmp/sys/class/infiniband",
        "/sys/class/infiniband/../net", "/sys/class/net"}) {
    EXPECT_FALSE(ours(path)) << path;
  }
  EXPECT_FALSE(may_be_ours("/usr/lib/x86_64-linux-gnu/libibverbs.so.1"));
}

TEST(PreloadPath, KnowsTheDirectoriesThatGetAnEntry) {
  Path path;
  for (const char* parent : {"/dev", "/dev/", "/sys/class/", "/sys/class/."}) {
    ASSERT_TRUE(normalise("/", parent, path));
    EXPECT_TRUE(is_parent(path)) << parent;
  }
  for (const char* other : {"/", "/sys", "/dev/infiniband", "/sys/class/net"}) {
    ASSERT_TRUE(normalise("/", other, path));
    EXPECT_FALSE(is_parent(path)) << other;
  }
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

}  // namespace
}  // namespace ib::host_abi::preload
