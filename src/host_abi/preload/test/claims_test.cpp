// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/claims.h"

#include <gtest/gtest.h>

#include <string>

namespace ib::host_abi::preload {
namespace {

Claim claim(const std::string& path) {
  Path out;
  return normalise("/", path.c_str(), out) ? claim_on(out) : Claim::None;
}

bool parent(const char* path) {
  Path out;
  return normalise("/", path, out) && is_parent(out);
}

TEST(PreloadClaims, SoftibdAloneAnswersForTheseAndWhatIsBelow) {
  for (const char* path :
       {"/sys/class/infiniband", "/sys/class/infiniband_verbs", "/sys/class/infiniband_mad",
        "/sys/class/infiniband_cm", "/dev/infiniband", "/sys//class/./infiniband/",
        "/sys/devices/infiniband", "/sys/class/misc/rdma_cm", "/dev/../sys/class/infiniband"}) {
    for (const char* below : {"", "/x", "/softib0/ports/1/lid"}) {
      EXPECT_EQ(claim(std::string(path) + below), Claim::Ours) << path << below;
      EXPECT_TRUE(may_be_claimed((std::string(path) + below).c_str())) << path << below;
    }
  }
}

TEST(PreloadClaims, TheKernelComesFirstForAnInterfacesAdapter) {
  for (const char* path :
       {"/sys/class/net/eth0/device/infiniband", "/sys/class/net/ib0/device/infiniband/softib0",
        "/sys/class/net/ib0/device/infiniband_verbs/uverbs0"}) {
    EXPECT_EQ(claim(path), Claim::IfAbsent) << path;
    EXPECT_TRUE(may_be_claimed(path)) << path;
  }
}

TEST(PreloadClaims, AnInterfaceOfIpOverInfinibandHasFilesThatATapHasNot) {
  for (const char* name : {"mode", "pkey", "umcast"}) {
    EXPECT_EQ(claim(std::string("/sys/class/net/ib0.8001/") + name), Claim::IfAbsent) << name;
  }
  for (const char* name : {"addr_len", "address", "broadcast", "dev_id", "dev_port", "type"}) {
    EXPECT_EQ(claim(std::string("/sys/class/net/ib0/") + name), Claim::OfTap) << name;
  }
  EXPECT_TRUE(may_be_claimed("/sys/class/net/ib0/pkey"));
  EXPECT_FALSE(may_be_claimed("/sys/class/block/ib0/mode"));
  EXPECT_FALSE(may_be_claimed("mode")) << "a name that many programs have";
}

TEST(PreloadClaims, AllElseIsTheKernels) {
  for (const char* path : {"/",
                           "/sys",
                           "/sys/class",
                           "/sys/class/infinibandx",
                           "/sys/devices",
                           "/sys/class/infinib",
                           "/sys/devices/infiniband_x",
                           "/dev/infiniband_x",
                           "/dev/null",
                           "/tmp/sys/class/infiniband",
                           "/sys/class/infiniband/../net",
                           "/sys/class/net",
                           "/sys/class/misc",
                           "/sys/class/misc/fuse",
                           "/sys/class/misc/rdma_cmx",
                           "/sys/class/misc/rdma",
                           "/dev/rdma_cm",
                           "/sys/class/net/eth0",
                           "/sys/class/net/eth0/device",
                           "/sys/class/net/eth0/mtu",
                           "/sys/class/net/eth0/modes",
                           "/sys/class/net/eth0/x/mode",
                           "/sys/class/net/mode",
                           "/sys/class/net/infiniband",
                           "/sys/class/net/device/infiniband",
                           "/sys/class/net/eth0/device/infinibandx",
                           "/sys/class/net/eth0/x/device/infiniband",
                           "/sys/class/net/eth0/device/net/infiniband"}) {
    EXPECT_EQ(claim(path), Claim::None) << path;
  }
}

TEST(PreloadClaims, TheRegistryOfUdaplIsOursAndNothingAroundIt) {
  EXPECT_EQ(claim("/etc/softib/dat.conf"), Claim::Ours);
  EXPECT_TRUE(may_be_claimed("/etc/softib/dat.conf"));
  EXPECT_EQ(claim("/etc/dat.conf"), Claim::None) << "the machine's";
  EXPECT_EQ(claim("/etc/softib"), Claim::None);
  EXPECT_FALSE(may_be_claimed("/etc/passwd"));
}

TEST(PreloadClaims, OneLookIsEnoughForWhatIsNotOurs) {
  for (const char* path :
       {"/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "/sys/class/block/sda/address", "/dev/null",
        "/home/infiniband/paper.txt", "/usr/share/rdma_cm", "file", "", "/", "softib0",
        "/sys/my_infiniband", "rdma", "infini", "a/"}) {
    EXPECT_FALSE(may_be_claimed(path)) << path;
  }
  for (const char* path :
       {"infiniband", "rdma_cm/dev", "class/infiniband_verbs", "/usr/../sys/class/infiniband",
        "//sys/class/infiniband", "/./dev/infiniband", "/../dev/infiniband"}) {
    EXPECT_TRUE(may_be_claimed(path)) << path;
  }
}

TEST(PreloadClaims, PatternsMayLeadThroughTheDirectoriesAbove) {
  for (const char* pattern : {"/sys/class/*", "/sys/class/*/softib0", "/dev/*", "/sys/devices/*",
                              "/sys/class/misc/*", "*infiniband*", "/sys/*/misc/*rdma_cm"}) {
    EXPECT_TRUE(may_match_claimed(pattern)) << pattern;
  }
  for (const char* pattern : {"/usr/lib/*", "*.cpp", "/sys/bus/*", "/devices/*", "/sys/classes*"}) {
    EXPECT_FALSE(may_match_claimed(pattern)) << pattern;
  }
}

TEST(PreloadClaims, KnowsTheDirectoriesThatGetAnEntry) {
  for (const char* path : {"/dev", "/dev/", "/sys/class/", "/sys/class/.", "/sys/class/misc",
                           "/sys/devices", "/sys/class/../devices"}) {
    EXPECT_TRUE(parent(path)) << path;
    EXPECT_TRUE(may_be_parent(path)) << path;
  }
  for (const char* path : {"/", "/sys", "/dev/infiniband", "/sys/class/net", "/sys/class/miscx",
                           "/sys/class/net/eth0/device", "/sys/class/mis"}) {
    EXPECT_FALSE(parent(path)) << path;
  }
  EXPECT_TRUE(may_be_parent("."));
  EXPECT_FALSE(may_be_parent("/usr/lib"));
  EXPECT_FALSE(may_be_parent(nullptr));
}

}  // namespace
}  // namespace ib::host_abi::preload
