// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/device_names.h"

#include <gtest/gtest.h>

namespace ib::io {
namespace {

struct World {
  DriverObject driver{"d"};
  DeviceObject a{driver, "softib0", DeviceKind::Functional};
  DeviceObject a_top{driver, "ib_bus", DeviceKind::Filter};
  DeviceObject b{driver, "softib1", DeviceKind::Functional};
  DeviceNames names;
  std::string reason;

  World() {
    EXPECT_EQ(a_top.attach(a), Status::Ok);
    EXPECT_EQ(names.add_hca("node0", 0x0002c90300abcdef, a), Status::Ok);
  }
  DeviceObject* open(std::string_view host, std::string_view path) {
    auto found = names.resolve(host, path, reason);
    return found ? *found : nullptr;
  }
  Status error(std::string_view host, std::string_view path) {
    return names.resolve(host, path, reason).error();
  }
};

TEST(DeviceNames, AGuidIsReparsedToTheStackOfItsHca) {
  World w;
  EXPECT_EQ(w.open("node0", "\\Device\\ibal\\0002c90300abcdef"), &w.a_top);
  EXPECT_EQ(w.open("node0", "\\DEVICE\\IBAL\\0002C90300ABCDEF"), &w.a_top);
}

TEST(DeviceNames, TheDirectoryStandsForAnOnlyHca) {
  World w;
  EXPECT_EQ(w.open("node0", "\\Device\\ibal"), &w.a_top);
  EXPECT_EQ(w.names.add_hca("node0", 2, w.b), Status::Ok);
  EXPECT_EQ(w.error("node0", "\\Device\\ibal"), Status::InvalidParameter);
  EXPECT_NE(w.reason.find("0000000000000002 (softib1)"), std::string::npos) << w.reason;
  w.names.remove_hca("node0", 2);
  EXPECT_EQ(w.open("node0", "\\Device\\ibal"), &w.a_top);
  w.names.remove_hca("node0", 0x0002c90300abcdef);
  EXPECT_EQ(w.error("node0", "\\Device\\ibal"), Status::NotFound);
}

TEST(DeviceNames, HostsDoNotSeeEachOther) {
  World w;
  EXPECT_EQ(w.error("node1", "\\Device\\ibal"), Status::NotFound);
  EXPECT_EQ(w.names.add_hca("node1", 2, w.b), Status::Ok);
  EXPECT_EQ(w.open("node1", "\\Device\\ibal"), &w.b);
  EXPECT_EQ(w.error("node1", "\\Device\\ibal\\0002c90300abcdef"), Status::NotFound);
  EXPECT_NE(w.reason.find("it has: 0000000000000002"), std::string::npos) << w.reason;
  EXPECT_EQ(w.names.add_hca("node1", 2, w.a), Status::AlreadyExists);
}

TEST(DeviceNames, OtherPathsAreRefused) {
  World w;
  for (const char* path : {"", "\\", "\\Device", "\\Device\\iba", "\\Device\\ibalx",
                           "\\Device\\null", "/Device/ibal"}) {
    EXPECT_EQ(w.error("node0", path), Status::NotFound) << path;
  }
  for (const char* path :
       {"\\Device\\ibal\\", "\\Device\\ibal\\2", "\\Device\\ibal\\0x02c90300abcdef",
        "\\Device\\ibal\\-002c90300abcdef", "\\Device\\ibal\\0002c90300abcdef0",
        "\\Device\\ibal\\0002c90300abcdeg", "\\Device\\ibal\\0002c90300abcdef\\x"}) {
    EXPECT_EQ(w.error("node0", path), Status::InvalidParameter) << path;
  }
}

}  // namespace
}  // namespace ib::io
