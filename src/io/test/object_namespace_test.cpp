// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/object_namespace.h"

#include <gtest/gtest.h>

namespace ib::io {
namespace {

constexpr const char* kIbal = "\\Device\\ibal";

struct Names {
  Names() {
    for (const char* host : {"a", "b"}) {
      EXPECT_EQ(names.add_directory(host, "\\Device"), Status::Ok);
      EXPECT_EQ(names.add_directory(host, kIbal, true), Status::Ok);
    }
    EXPECT_EQ(names.add_directory("", "\\Device"), Status::Ok);
    EXPECT_EQ(names.add_device("", "\\Device\\softib", common), Status::Ok);
  }
  void add_hca(const char* host, const char* guid, const char* name, DeviceObject& device) {
    const std::string path = std::string("\\Device\\") + name;
    EXPECT_EQ(names.add_device(host, path, device), Status::Ok);
    EXPECT_EQ(names.add_link(host, std::string(kIbal) + "\\" + guid, path), Status::Ok);
  }
  Status status_of(const char* host, const std::string& path) {
    return names.open(host, path, reason).error();
  }

  DriverObject driver{"test"};
  DeviceObject one{driver, "one", DeviceKind::Functional};
  DeviceObject two{driver, "two", DeviceKind::Functional};
  DeviceObject common{driver, "common", DeviceKind::Functional};
  ObjectNamespace names;
  std::string reason;
};

TEST(ObjectNamespace, AGuidIsReparsedToTheDeviceOfThatHca) {
  Names n;
  n.add_hca("a", "0253460000000100", "softib0", n.one);
  n.add_hca("a", "0253460000000200", "softib1", n.two);
  EXPECT_EQ(*n.names.open("a", "\\Device\\ibal\\0253460000000200", n.reason), &n.two);
  EXPECT_EQ(*n.names.open("a", "\\DEVICE\\IBAL\\0253460000000100", n.reason), &n.one);
  EXPECT_EQ(*n.names.open("a", "\\Device\\softib1", n.reason), &n.two);
}

TEST(ObjectNamespace, OpensTheTopOfAStack) {
  Names n;
  n.add_hca("a", "0253460000000100", "softib0", n.one);
  DeviceObject filter(n.driver, "filter", DeviceKind::Filter);
  ASSERT_EQ(filter.attach(n.one), Status::Ok);
  EXPECT_EQ(*n.names.open("a", "\\Device\\ibal\\0253460000000100", n.reason), &filter);
}

TEST(ObjectNamespace, ADirectoryStandsForItsOnlyEntry) {
  Names n;
  EXPECT_EQ(n.status_of("a", kIbal), Status::NotFound);
  n.add_hca("a", "0253460000000100", "softib0", n.one);
  EXPECT_EQ(*n.names.open("a", kIbal, n.reason), &n.one);
  n.add_hca("a", "0253460000000200", "softib1", n.two);
  EXPECT_EQ(n.status_of("a", kIbal), Status::InvalidParameter);
  EXPECT_NE(n.reason.find("0253460000000100, 0253460000000200"), std::string::npos) << n.reason;
}

TEST(ObjectNamespace, HostsDoNotSeeEachOthersNames) {
  Names n;
  n.add_hca("a", "0253460000000100", "softib0", n.one);
  EXPECT_EQ(n.status_of("b", "\\Device\\ibal\\0253460000000100"), Status::NotFound);
  EXPECT_EQ(*n.names.open("b", "\\Device\\softib", n.reason), &n.common);
  const auto entries = n.names.list("a", "\\Device", n.reason);
  ASSERT_TRUE(entries) << n.reason;
  ASSERT_EQ((*entries).size(), 3u);
  EXPECT_EQ((*entries)[0].name, "ibal");
  EXPECT_EQ((*entries)[1].name, "softib");
  EXPECT_EQ((*entries)[2].device, "one (test)");
}

TEST(ObjectNamespace, SaysWhatThereIs) {
  Names n;
  n.add_hca("a", "0253460000000100", "softib0", n.one);
  EXPECT_EQ(n.status_of("a", "\\Device\\ibal\\77"), Status::NotFound);
  EXPECT_NE(n.reason.find("\\Device\\ibal has: 0253460000000100"), std::string::npos) << n.reason;
  EXPECT_EQ(n.status_of("a", "Device"), Status::InvalidParameter);
  EXPECT_EQ(n.status_of("a", ""), Status::InvalidParameter);
  EXPECT_EQ(n.status_of("a", "\\"), Status::InvalidParameter);
  EXPECT_EQ(n.status_of("a", "\\Device\\\\ibal"), Status::NotFound);
  EXPECT_EQ(n.status_of("nowhere", "\\Device\\ibal"), Status::NotFound);
}

TEST(ObjectNamespace, NamesComeAndGo) {
  Names n;
  n.add_hca("a", "0253460000000100", "softib0", n.one);
  EXPECT_EQ(n.names.add_device("a", "\\device\\SOFTIB0", n.two), Status::AlreadyExists);
  EXPECT_EQ(n.names.add_device("a", "\\Nowhere\\x", n.two), Status::NotFound);
  EXPECT_EQ(n.names.remove("a", kIbal), Status::DeviceBusy);
  EXPECT_EQ(n.names.remove("a", "\\Device\\ibal\\0253460000000100"), Status::Ok);
  EXPECT_EQ(n.names.remove("a", "\\Device\\ibal\\0253460000000100"), Status::NotFound);
  EXPECT_EQ(n.names.remove("a", kIbal), Status::Ok);
}

TEST(ObjectNamespace, ACircleOfLinksEnds) {
  Names n;
  EXPECT_EQ(n.names.add_link("", "\\x", "\\y"), Status::Ok);
  EXPECT_EQ(n.names.add_link("", "\\y", "\\x"), Status::Ok);
  EXPECT_EQ(n.status_of("a", "\\x"), Status::LimitExceeded);
  EXPECT_NE(n.reason.find("circle"), std::string::npos);
}

TEST(ObjectNamespace, LinksLeadIntoDirectories) {
  Names n;
  n.add_hca("a", "0253460000000100", "softib0", n.one);
  EXPECT_EQ(n.names.add_link("", "\\??", "\\Device"), Status::Ok);
  EXPECT_EQ(*n.names.open("a", "\\??\\ibal", n.reason), &n.one);
  EXPECT_TRUE(n.names.list("a", "\\??\\ibal", n.reason));
}

}  // namespace
}  // namespace ib::io
