// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/fabric_config.h"

#include "setup/driver_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ib::softib {
namespace {

std::string complaint(std::string_view text) {
  std::string reason;
  const auto config = parse_fabric_config(text, "/etc", reason);
  return config ? "none" : reason;
}

TEST(FabricConfig, ReadsChildrenPartitionsAndTheDriverStore) {
  std::string reason;
  const auto config = parse_fabric_config(R"(
drivers = "drivers"
[[child]]
name = "ping"
device_id = 'IBA\Ping'
compatible_ids = ['IBA\SID_0000000002139702']
description = "a ping"
[[partition]]
pkey = 0x8001
name = "i8001"
)",
                                          "/etc/softib", reason);
  ASSERT_TRUE(config) << reason;
  const FabricConfig& c = *config;
  EXPECT_EQ(c.drivers, "/etc/softib/drivers");
  ASSERT_EQ(c.children.size(), 2u);
  EXPECT_EQ(c.children[0].name, "ipoib");
  EXPECT_EQ(c.children[1].hardware_ids, std::vector<std::string>{"IBA\\Ping"});
  EXPECT_EQ(c.children[1].pkey, 0xffff);
  ASSERT_EQ(c.partitions.size(), 1u);
  EXPECT_EQ(c.partitions[0].pkey, 0x8001);
  EXPECT_EQ(c.partitions[0].ca, "softib0");
}

TEST(FabricConfig, SaysWhatIsWrong) {
  EXPECT_EQ(complaint("ipoib = 1"), "1:9: top level: \"ipoib\" must be true or false");
  EXPECT_EQ(complaint("# a comment\n  driver = 'x'"),
            "2:3: top level: \"driver\" is not known; known are child, drivers, ipoib, partition");
  EXPECT_EQ(complaint("[[child]]\nname = 'x'"), "1:1: [[child]]: \"device_id\" is missing");
  EXPECT_EQ(complaint("[[partition]]\nname = 'x'\npkey = 70000"),
            "3:8: [[partition]]: \"pkey\" must be a number from 0 to 65535");
  EXPECT_EQ(complaint("child = 1"), "1:9: top level: \"child\" must be tables: [[...]]");
  EXPECT_EQ(complaint("[[child]]\nname = 'x'\ndevice_id = 'y'\nhardware_ids = ['a', 7]"),
            "4:22: [[child]]: \"hardware_ids\" must be a list of texts");
  EXPECT_NE(complaint("[[child]]\nname = 'a-b'\ndevice_id = 'x'").find("is no name of a child"),
            std::string::npos);
  EXPECT_NE(complaint("[[child]]\ndevice_id = 'x'\nname = 'a-b'").find("3:8: "), std::string::npos);
  EXPECT_EQ(complaint("\n\n=").find("3:1: "), 0u);
  EXPECT_EQ(complaint("ipoib = false"), "none");
}

TEST(FabricConfig, AFileThatIsNoFileIsRefusedAtOnce) {
  const std::string path = "/tmp/softib-config-test-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string reason;
  const auto config = read_fabric_config(path, reason);
  ::unlink(path.c_str());
  EXPECT_EQ(config.error(), Status::InvalidParameter);
  EXPECT_EQ(reason, "configuration " + path + " is no regular file");
}

TEST(DriverStore, ReadsManifestsAndLeavesBadOnesOut) {
  const std::string folder = "/tmp/softib-store-test-" + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/b.json")
      << R"({"name": "b", "kind": "filter", "hardware_ids": ["X"], "module": "libb.so"})";
  std::ofstream(folder + "/a.json")
      << R"({"name": "a", "kind": "function", "hardware_ids": ["Y"], "depends": ["b"], "module": "liba.so"})";
  std::ofstream(folder + "/c.json") << "{";
  std::ofstream(folder + "/liba.so") << "not looked at";
  std::vector<std::string> complaints;
  std::string reason;
  const auto drivers = read_driver_store(folder, complaints, reason);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(drivers) << reason;
  ASSERT_EQ((*drivers).size(), 2u);
  EXPECT_EQ((*drivers)[0].name, "a");
  EXPECT_EQ((*drivers)[0].depends, std::vector<std::string>{"b"});
  EXPECT_EQ((*drivers)[1].kind, io::DriverKind::Filter);
  EXPECT_EQ((*drivers)[1].module, folder + "/libb.so");
  ASSERT_EQ(complaints.size(), 1u);
  EXPECT_NE(complaints[0].find("c.json: it is no JSON object"), std::string::npos);
  EXPECT_EQ(read_driver_store("/nowhere", complaints, reason).error(), Status::NotFound);
}

TEST(DriverStore, SaysWhatIsWrongWithAManifest) {
  const auto wrong = [](const char* text) {
    std::string reason;
    EXPECT_EQ(parse_manifest(text, "/d", reason).error(), Status::Malformed);
    return reason;
  };
  EXPECT_EQ(wrong("[]"), "it is no JSON object");
  EXPECT_EQ(wrong(R"({"kind": "filter"})"), "\"name\" must be a text");
  EXPECT_EQ(wrong(R"({"name": "x", "kind": "bus"})"),
            "\"kind\" must be \"function\" or \"filter\"");
  EXPECT_EQ(wrong(R"({"name": "x", "kind": "filter", "hardware_ids": [1]})"),
            "\"hardware_ids\" must be a list of texts that is not empty");
}

}  // namespace
}  // namespace ib::softib
