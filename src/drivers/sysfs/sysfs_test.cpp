// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/sysfs/sysfs.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace ib::drivers {
namespace {

using verbs::control::ViewKind;

// Devices whose live state the test changes.
class FakeDevices : public DeviceStatus {
 public:
  verbs::control::CaAttr ca(const fabric::Hca& hca) const override {
    auto attr = DeviceStatus::ca(hca);
    attr.vendor_id = 0x5f1b;
    attr.vendor_part_id = 0x42;
    attr.hw_ver = 0x1a;
    return attr;
  }
  verbs::control::PortAttr port(const fabric::Hca& hca, const fabric::Port& port) const override {
    auto attr = DeviceStatus::port(hca, port);
    attr.state = state;
    attr.gid_tbl_len = 3;
    attr.pkey_tbl_len = 2;
    attr.active_speed = speed;
    attr.active_width = width;
    return attr;
  }
  DeviceCounters counters(const fabric::Hca&, const fabric::Port&) const override {
    DeviceCounters counters;
    counters.port.sent.data = xmit_data;
    counters.port.vl15_dropped = 5;
    return counters;
  }
  verbs::PortState state = verbs::PortState::Active;
  std::uint8_t speed = 32;
  std::uint8_t width = 2;
  std::uint64_t xmit_data = 0;
};

class SysfsTest : public ::testing::Test {
 protected:
  static fabric::Fabric make_fabric() {
    fabric::Shape shape;
    shape.nodes = {"alpha", "beta"};
    shape.hcas_per_node = 2;
    shape.ports_per_hca = 2;
    return *fabric::Fabric::create(shape);
  }
  std::string read(const std::string& path, const std::string& node = "") const {
    auto text = view_.read(node, path);
    return text ? *text : std::string("<") + status_text(text.error()) + ">";
  }
  std::string list(const std::string& path, const std::string& node = "") const {
    auto text = view_.list(node, path);
    return text ? *text : std::string("<") + status_text(text.error()) + ">";
  }

  fabric::Fabric fabric_ = make_fabric();
  FakeDevices devices_;
  Sysfs view_{fabric_, devices_, 36};
};

TEST_F(SysfsTest, ANodesAddressesAreAFileOfItsName) {
  EXPECT_EQ(read("/etc/softib/hosts/beta", "alpha"), "127.77.0.2\n");
  EXPECT_EQ(view_.stat("alpha", "/etc/softib/hosts/beta")->size, 11u);
  EXPECT_FALSE(view_.stat("alpha", "/etc/softib/hosts/gamma"));
  EXPECT_FALSE(view_.stat("alpha", "/etc/softib/hosts/"));
  EXPECT_FALSE(view_.stat("alpha", "/etc/softib/hosts")) << "nothing lists them";
}

TEST_F(SysfsTest, TheRegistryOfUdaplHasTheAddressesAndPortsOfTheNode) {
  const std::string text = read("/etc/softib/dat.conf", "beta");
  EXPECT_TRUE(
      text.starts_with("ofa-v2-ib0 u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "
                       "\"127.77.0.2 0\" \"\"\n"))
      << text;
  EXPECT_NE(text.find("\nofa-v2-softib0-1 u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "
                      "\"softib0 1\" \"\"\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nofa-v2-softib0-1u u2.0 nonthreadsafe default libdaploucm.so.2 dapl.2.0 "
                      "\"softib0 1\" \"\"\n"),
            std::string::npos)
      << text;
}

// Every name that a directory lists can be looked up, and a file's size is that of its content.
// Returns how many files there are.
std::size_t check_tree(const Sysfs& view, std::string_view node) {
  std::vector<std::string> todo{"/sys/class", "/sys/devices", "/dev"};
  std::size_t count = 0;
  while (!todo.empty()) {
    const std::string path = todo.back();
    todo.pop_back();
    const auto stat = view.stat(node, path);
    EXPECT_TRUE(stat) << path;
    if (!stat) continue;
    if (stat->kind == ViewKind::File) {
      const auto text = view.read(node, path);
      const bool of_free_gid = !text && path.find("/gid_attrs/") != std::string::npos;
      EXPECT_TRUE(text || of_free_gid) << path;
      EXPECT_EQ(text ? text->size() : 0, stat->size) << path;
      ++count;
    } else if (stat->kind == ViewKind::Directory) {
      const std::string lines = *view.list(node, path);
      std::set<std::string> names;
      for (std::size_t at = 0; at < lines.size();) {
        const std::size_t end = lines.find('\n', at);
        const std::string name = lines.substr(at, end - at);
        EXPECT_TRUE(names.insert(name).second) << path << " has two of " << name;
        todo.push_back(path + "/" + name);
        at = end + 1;
      }
    }
  }
  return count;
}

TEST_F(SysfsTest, TheTreeAgreesWithItself) {
  EXPECT_GT(check_tree(view_, "beta"), 150u);
}

TEST_F(SysfsTest, ListsOneUverbsAndOneHcaPerAdapterOfTheNode) {
  EXPECT_EQ(list("/sys/class"), "infiniband\ninfiniband_mad\ninfiniband_verbs\n");
  EXPECT_EQ(list("/sys/class/infiniband"), "softib0\nsoftib1\n");
  EXPECT_EQ(list("/sys/class/infiniband_verbs"), "abi_version\nuverbs0\nuverbs1\n");
  EXPECT_EQ(list("/dev"), "infiniband\n");
  EXPECT_EQ(list("/dev/infiniband"),
            "issm0\nissm1\nissm2\nissm3\nrdma_cm\numad0\numad1\numad2\numad3\nuverbs0\nuverbs1\n");
  EXPECT_EQ(list("/sys/class/infiniband/softib1/ports", "beta"), "1\n2\n");
}

TEST_F(SysfsTest, TheFilesOfRdmaCmNameItsDevice) {
  EXPECT_EQ(list("/sys/class/misc"), "rdma_cm\n");
  EXPECT_EQ(*view_.readlink("", "/sys/class/misc/rdma_cm"), "../../devices/virtual/misc/rdma_cm");
  EXPECT_EQ(list("/sys/devices/virtual/misc/rdma_cm"), "abi_version\ndev\nsubsystem\nuevent\n");
  EXPECT_EQ(read("/sys/class/misc/rdma_cm/abi_version"), "4\n");
  const auto device = view_.stat("alpha", "/dev/infiniband/rdma_cm");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->kind, ViewKind::CharDevice);
  EXPECT_EQ(read("/sys/class/misc/rdma_cm/dev"), std::to_string(device->device_major) + ":" +
                                                     std::to_string(device->device_minor) + "\n");
}

TEST_F(SysfsTest, HasTheFilesThatLibibverbsReads) {
  const std::string uverbs = "/sys/class/infiniband_verbs/";
  EXPECT_EQ(read(uverbs + "abi_version"), "6\n");
  EXPECT_EQ(read(uverbs + "uverbs1/ibdev"), "softib1\n");
  EXPECT_EQ(read(uverbs + "uverbs1/dev"), "1:3\n");
  EXPECT_EQ(read(uverbs + "uverbs1/abi_version"), "1\n");
  const std::string ca = "/sys/class/infiniband/softib0/";
  EXPECT_EQ(read(ca + "node_type"), "1: CA\n");
  EXPECT_EQ(read(ca + "fw_ver"), "1.0.0\n");
  EXPECT_EQ(read(ca + "hw_rev"), "0x1a\n");
  EXPECT_EQ(read(ca + "node_desc", "beta"), "beta softib0\n");
  EXPECT_EQ(read(ca + "ports/1/gids/0"), "fe80:0000:0000:0000:0253:4600:0000:0001\n");
  EXPECT_EQ(read(ca + "ports/2/gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
  EXPECT_EQ(read(ca + "ports/1/pkeys/0"), "0xffff\n");
  EXPECT_EQ(read(ca + "ports/1/pkeys/1"), "0x0000\n");
  EXPECT_EQ(read(ca + "ports/1/gid_attrs/types/0"), "IB/RoCE v1\n");
  // No network interface belongs to an InfiniBand GID. Linux has the file, and EINVAL for a read.
  EXPECT_TRUE(view_.stat("", ca + "ports/1/gid_attrs/ndevs/0"));
  EXPECT_EQ(view_.read("", ca + "ports/1/gid_attrs/ndevs/0").error(), Status::InvalidParameter);
  EXPECT_EQ(view_.read("", ca + "ports/1/gid_attrs/types/2").error(), Status::InvalidParameter);
  EXPECT_EQ(read(ca + "ports/1/link_layer"), "InfiniBand\n");
  EXPECT_EQ(read(ca + "ports/1/has_smi"), "1\n");
  EXPECT_FALSE(view_.stat("", ca + "device/net"));
}

class EthernetSysfsTest : public ::testing::Test {
 protected:
  static fabric::Fabric make_fabric() {
    fabric::Shape shape;
    shape.nodes = {"alpha", "beta"};
    shape.hcas_per_node = 2;
    shape.ports_per_hca = 2;
    shape.link_layers = {{"", 0, verbs::LinkLayer::Ethernet}};
    return *fabric::Fabric::create(shape);
  }
  std::string read(const std::string& path, const std::string& node = "") const {
    auto text = view_.read(node, path);
    return text ? *text : std::string("<") + status_text(text.error()) + ">";
  }
  std::string list(const std::string& path) const {
    auto text = view_.list("", path);
    return text ? *text : std::string("<") + status_text(text.error()) + ">";
  }

  fabric::Fabric fabric_ = make_fabric();
  FakeDevices devices_;
  Sysfs view_{fabric_, devices_, 1};
  const std::string port_ = "/sys/class/infiniband/softib0/ports/1/";
};

TEST_F(EthernetSysfsTest, APortHasNoLidButAGidTableWithTypesAndInterfaces) {
  EXPECT_EQ(read(port_ + "link_layer"), "Ethernet\n");
  EXPECT_EQ(read(port_ + "lid"), "0x0\n");
  EXPECT_EQ(read(port_ + "sm_lid"), "0x0\n");
  EXPECT_EQ(read(port_ + "lid_mask_count"), "0\n");
  EXPECT_EQ(read(port_ + "has_smi"), "0\n");
  EXPECT_EQ(read(port_ + "cap_mask"), "0x04010000\n");
  EXPECT_EQ(read(port_ + "state"), "4: ACTIVE\n");
  EXPECT_EQ(read(port_ + "phys_state"), "5: LinkUp\n");
  EXPECT_EQ(read(port_ + "rate"), "100 Gb/sec (4X EDR)\n");
  EXPECT_EQ(read(port_ + "pkeys/0"), "0xffff\n");
  EXPECT_EQ(read(port_ + "gids/0"), "fe80:0000:0000:0000:0053:46ff:fe00:0001\n");
  EXPECT_EQ(read(port_ + "gids/1"), "0000:0000:0000:0000:0000:ffff:7f4d:0001\n");
  EXPECT_EQ(read(port_ + "gids/1", "beta"), "0000:0000:0000:0000:0000:ffff:7f4d:0002\n");
  for (const char* index : {"0", "1"}) {
    EXPECT_EQ(read(port_ + "gid_attrs/types/" + index), "RoCE v2\n");
    EXPECT_EQ(read(port_ + "gid_attrs/ndevs/" + index), "lo\n");
  }
  // The other HCA of the node is an InfiniBand one.
  EXPECT_EQ(read("/sys/class/infiniband/softib1/ports/1/gid_attrs/types/0"), "IB/RoCE v1\n");
  EXPECT_EQ(read("/sys/class/infiniband/softib1/ports/1/link_layer"), "InfiniBand\n");
}

TEST_F(EthernetSysfsTest, TheTreeAgreesWithItself) {
  EXPECT_GT(check_tree(view_, "beta"), 150u);
}

TEST_F(EthernetSysfsTest, AFreeGidIsZeroAndHasNeitherTypeNorInterface) {
  EXPECT_EQ(read(port_ + "gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
  for (const char* table : {"types/2", "ndevs/2"}) {
    const std::string path = port_ + "gid_attrs/" + table;
    EXPECT_TRUE(view_.stat("", path)) << "it is listed";
    EXPECT_EQ(view_.read("", path).error(), Status::InvalidParameter) << path;
  }
  EXPECT_EQ(view_.read("", port_ + "gid_attrs/types/3").error(), Status::NotFound);
}

TEST_F(EthernetSysfsTest, TheDeviceHasADirectoryForEachInterfaceOfItsPorts) {
  const std::string device = "/sys/class/infiniband/softib0/device";
  EXPECT_EQ(list(device + "/net"), "lo\n");
  EXPECT_EQ(read(device + "/net/lo/dev_port"), "0\n");
  EXPECT_EQ(read(device + "/net/lo/dev_id"), "0x0\n");
  EXPECT_NE(list("/sys/devices/infiniband/softib0").find("net\n"), std::string::npos);
  EXPECT_EQ(list("/sys/devices/infiniband/softib1").find("net\n"), std::string::npos);
  fabric::Node& node = fabric_.nodes()[0];
  ASSERT_EQ(fabric_.set_addresses(node, {{verbs::ipv4_gid(0x0a000001), "eth7", 1}}), Status::Ok);
  EXPECT_EQ(list(device + "/net"), "eth7\n");
  EXPECT_EQ(read(device + "/net/eth7/dev_port"), "1\n");
  EXPECT_FALSE(view_.stat("", device + "/net/lo"));
  EXPECT_FALSE(view_.stat("", device + "/net/"));
  EXPECT_EQ(view_.read("", port_ + "gid_attrs/ndevs/0").error(), Status::InvalidParameter)
      << "the link-local address of a port without an interface";
}

TEST_F(EthernetSysfsTest, AnInterfaceLeadsToItsHca) {
  const std::string device = "/sys/class/net/lo/device";
  EXPECT_EQ(list(device + "/infiniband"), "softib0\n");
  EXPECT_EQ(list(device + "/infiniband_verbs"), "uverbs0\n");
  EXPECT_EQ(*view_.readlink("", device + "/infiniband/softib0"), "../../../../infiniband/softib0");
  EXPECT_EQ(read(device + "/infiniband/softib0/ports/1/link_layer"), "Ethernet\n");
  EXPECT_EQ(read(device + "/infiniband_verbs/uverbs0/ibdev"), "softib0\n");
  EXPECT_EQ(read("/sys/class/infiniband/softib0/device/net/lo/dev_port"), "0\n") << "and back";
  for (const char* path :
       {"/infiniband/softib1", "/infiniband_verbs/uverbs1", "/infiniband_mad", "/net", ""}) {
    EXPECT_EQ(view_.stat("", device + path).error(), Status::NotFound) << path;
  }
  fabric::Node& node = fabric_.nodes()[0];
  ASSERT_EQ(fabric_.set_addresses(node, {{verbs::ipv4_gid(0x0a000001), "eth7", 1}}), Status::Ok);
  EXPECT_EQ(list("/sys/class/net/eth7/device/infiniband"), "softib0\n");
  EXPECT_FALSE(view_.stat("", device + "/infiniband"));
  EXPECT_TRUE(view_.stat("beta", device + "/infiniband"));
  node.hcas[0].present = false;
  EXPECT_FALSE(view_.stat("", "/sys/class/net/eth7/device/infiniband"));
}

class IpInterfaceSysfsTest : public SysfsTest {
 protected:
  void SetUp() override {
    fabric::Port& port = fabric_.nodes()[0].hcas[1].ports[1];
    port.pkeys = {0xffff, 0x0001};
    fabric::IpInterface interface;
    interface.name = "ib3";
    interface.port = &port;
    interface.pkey = 0xffff;
    interface.hardware_address = {0x80, 0, 1, 2, 0xfe, 0x80};
    interface.hardware_address.back() = 9;
    ASSERT_EQ(fabric_.ip_interfaces().set(0, interface), Status::Ok);
    interface.name = "ib3.0001";
    interface.pkey = 1;
    interface.connected_mode = true;
    ASSERT_EQ(fabric_.ip_interfaces().set(0, interface), Status::Ok);
  }
};

TEST_F(IpInterfaceSysfsTest, HasTheFilesOfIpoib) {
  const std::string ib3 = "/sys/class/net/ib3/";
  EXPECT_EQ(read(ib3 + "mode") + read(ib3 + "pkey") + read(ib3 + "umcast"),
            "datagram\n0xffff\n0\n");
  EXPECT_EQ(read(ib3 + "type") + read(ib3 + "addr_len"), "32\n20\n");
  EXPECT_EQ(read(ib3 + "address"), "80:00:01:02:fe:80:00:00:00:00:00:00:00:00:00:00:00:00:00:09\n");
  EXPECT_EQ(read(ib3 + "broadcast"),
            "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff\n");
  EXPECT_EQ(read(ib3 + "dev_id") + read(ib3 + "dev_port"), "0x1\n1\n");
  EXPECT_EQ(view_.read("", ib3 + "mtu").error(), Status::NotFound) << "the kernel's";
  EXPECT_EQ(view_.read("beta", ib3 + "pkey").error(), Status::NotFound);
  const std::string child = "/sys/class/net/ib3.0001/";
  EXPECT_EQ(read(child + "mode") + read(child + "pkey"), "connected\n0x8001\n");
  EXPECT_EQ(read(child + "dev_id") + read(child + "dev_port"), "0x0\n0\n");
}

TEST_F(IpInterfaceSysfsTest, LeadsToItsHcaAndBack) {
  EXPECT_EQ(list("/sys/class/net/ib3/device/infiniband"), "softib1\n");
  EXPECT_EQ(list("/sys/class/infiniband/softib1/device/net"), "ib3\nib3.0001\n");
  EXPECT_EQ(read("/sys/class/infiniband/softib1/device/net/ib3/dev_port"), "1\n");
  EXPECT_FALSE(view_.stat("", "/sys/class/infiniband/softib0/device/net"));
}

TEST_F(SysfsTest, EachPortHasAnUmadAndAnIssmWithANumberThatStays) {
  const std::string mad = "/sys/class/infiniband_mad/";
  EXPECT_EQ(list("/sys/class/infiniband_mad"),
            "abi_version\nissm0\nissm1\nissm2\nissm3\numad0\numad1\numad2\numad3\n");
  EXPECT_EQ(read(mad + "abi_version"), "5\n");
  EXPECT_EQ(read(mad + "umad2/ibdev") + read(mad + "umad2/port"), "softib1\n1\n");
  EXPECT_EQ(read(mad + "issm3/ibdev") + read(mad + "issm3/port"), "softib1\n2\n");
  EXPECT_EQ(read(mad + "umad3/dev") + read(mad + "issm3/dev"), "231:3\n231:67\n");
  const auto device = view_.stat("", "/dev/infiniband/issm3");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->device_major, 231u);
  EXPECT_EQ(device->device_minor, 67u);
  fabric_.nodes()[0].hcas[0].present = false;
  EXPECT_EQ(list("/sys/class/infiniband_mad"), "abi_version\nissm2\nissm3\numad2\numad3\n");
  EXPECT_FALSE(view_.stat("", "/dev/infiniband/umad0"));
}

TEST_F(SysfsTest, NodesDifferInGuidsAndLids) {
  const std::string file = "/sys/class/infiniband/softib0/node_guid";
  EXPECT_EQ(read(file), "0253:4600:0000:0000\n");
  EXPECT_EQ(read(file, "alpha"), read(file));
  EXPECT_EQ(read(file, "beta"), "0253:4600:0001:0000\n");
  EXPECT_EQ(read("/sys/class/infiniband/softib1/ports/2/lid", "beta"), "0x8\n");
}

TEST_F(SysfsTest, ShowsTheLiveStateOfPorts) {
  const std::string port = "/sys/class/infiniband/softib0/ports/1/";
  EXPECT_EQ(read(port + "state"), "4: ACTIVE\n");
  EXPECT_EQ(read(port + "phys_state"), "5: LinkUp\n");
  EXPECT_EQ(read(port + "rate"), "100 Gb/sec (4X EDR)\n");
  EXPECT_EQ(read(port + "counters/port_xmit_data"), "0\n");
  devices_.state = verbs::PortState::Down;
  devices_.xmit_data = 18446744073709551615u;
  devices_.width = 1;
  devices_.speed = 1;
  EXPECT_EQ(read(port + "state"), "1: DOWN\n");
  EXPECT_EQ(read(port + "rate"), "2.5 Gb/sec (1X)\n");
  EXPECT_EQ(read(port + "counters/port_xmit_data"), "18446744073709551615\n");
  EXPECT_EQ(read(port + "counters/VL15_dropped"), "5\n");
  devices_.state = static_cast<verbs::PortState>(77);
  EXPECT_EQ(read(port + "state"), "77: UNKNOWN\n");
}

TEST_F(SysfsTest, DeviceTellsIdsAndNearCpus) {
  const std::string device = "/sys/class/infiniband/softib0/device/";
  EXPECT_EQ(read(device + "vendor"), "0x5f1b\n");
  EXPECT_EQ(read(device + "device"), "0x0042\n");
  EXPECT_EQ(read(device + "numa_node"), "-1\n");
  EXPECT_EQ(read(device + "local_cpus"), "f,ffffffff\n");
  EXPECT_EQ(read(device + "local_cpulist"), "0-35\n");
}

TEST_F(SysfsTest, WithoutACpuCountThereIsNoLocalCpus) {
  const Sysfs view(fabric_, devices_);
  const std::string device = "/sys/devices/infiniband/softib0";
  EXPECT_FALSE(view.stat("", device + "/local_cpus"));
  EXPECT_EQ(view.list("", device)->find("local_cpu"), std::string::npos);
}

TEST_F(SysfsTest, FollowsLinksInsideAPathButNotTheLastComponent) {
  const std::string link = "/sys/class/infiniband_verbs/uverbs1/device";
  const auto stat = view_.stat("", link);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->kind, ViewKind::Link);
  EXPECT_EQ(std::string(stat->target.data()), "../../../softib1");
  EXPECT_EQ(*view_.readlink("", link), "../../../softib1");
  EXPECT_EQ(read(link + "/vendor"), "0x5f1b\n");
  // There and back again, twice.
  const std::string loop = link + "/infiniband/softib1/device/infiniband_verbs/uverbs1";
  EXPECT_EQ(read(loop + "/ibdev"), "softib1\n");
  EXPECT_FALSE(view_.stat("", link + "/nothing/here"));
}

TEST_F(SysfsTest, AFileThatIsNoLinkComesWithItsPathWithoutLinks) {
  const auto path_of = [&](const std::string& path) {
    return std::string(view_.stat("", path)->target.data());
  };
  const std::string device = "/sys/devices/infiniband/softib1";
  EXPECT_EQ(path_of("/sys/class/infiniband/softib1/ports/1/lid"),
            device + "/infiniband/softib1/ports/1/lid");
  EXPECT_EQ(path_of("/sys/class/infiniband_verbs/uverbs1/device/infiniband"),
            device + "/infiniband");
  EXPECT_EQ(path_of("/sys/class/infiniband"), "/sys/class/infiniband");
  EXPECT_EQ(path_of("/sys/class/misc/rdma_cm/dev"), "/sys/devices/virtual/misc/rdma_cm/dev");
}

TEST_F(SysfsTest, TheEntriesOfClassesAreLinksIntoTheTreeOfDevices) {
  EXPECT_EQ(*view_.readlink("", "/sys/class/infiniband/softib1"),
            "../../devices/infiniband/softib1/infiniband/softib1");
  EXPECT_EQ(*view_.readlink("", "/sys/class/infiniband_verbs/uverbs0"),
            "../../devices/infiniband/softib0/infiniband_verbs/uverbs0");
  const std::string hca = "/sys/devices/infiniband/softib0/infiniband/softib0/";
  EXPECT_EQ(*view_.readlink("", hca + "device"), "../../../softib0");
  EXPECT_EQ(*view_.readlink("", hca + "subsystem"), "../../../../../class/infiniband");
}

TEST_F(SysfsTest, UverbsIsACharacterDeviceThatAnyoneMayOpen) {
  const auto stat = view_.stat("", "/dev/infiniband/uverbs1");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->kind, ViewKind::CharDevice);
  EXPECT_EQ(stat->mode, 0666u);
  EXPECT_EQ(stat->device_major, 1u);
  EXPECT_EQ(stat->device_minor, 3u);
}

TEST_F(SysfsTest, WhatIsNotEmulatedIsAbsent) {
  for (const char* path : {"",
                           "/",
                           "sys/class",
                           "/sys",
                           "/sys/class/",
                           "/sys/class/misc/rdma_cm/x",
                           "/sys/class/misc/fuse",
                           "/dev/null",
                           "/sys/class/infiniband_mad/umad4",
                           "/dev/infiniband/rdma_cm0",
                           "/dev/infiniband/umad4",
                           "/dev/infiniband/umad0/x",
                           "/dev/infiniband/uverbs2",
                           "/dev/infiniband/uverbs00",
                           "/dev/infiniband/uverbs0/x",
                           "/sys/class/infiniband/softib2",
                           "/sys/class/infiniband/softib",
                           "/sys/class/infiniband/",
                           "/sys/class/infiniband//softib0",
                           "/sys/class/infiniband/softib0/../softib0",
                           "/sys/class/infiniband/softib0/.",
                           "/sys/class/infiniband/softib0/ports/0",
                           "/sys/class/infiniband/softib0/ports/3",
                           "/sys/class/infiniband/softib0/ports/1/gids/3",
                           "/sys/class/infiniband/softib0/ports/1/gids/-1",
                           "/sys/class/infiniband/softib0/ports/1/gids/00",
                           "/sys/class/infiniband/softib0/ports/1/gids/4294967296",
                           "/sys/class/infiniband/softib0/ports/1/gid_attrs/no/0",
                           "/sys/class/infiniband/softib0/node_guid/x",
                           "/sys/class/infiniband_verbs/abi_version/x"}) {
    EXPECT_EQ(view_.stat("", path).error(), Status::NotFound) << path;
  }
  EXPECT_EQ(view_.stat("gamma", "/sys/class").error(), Status::NotFound);
}

TEST_F(SysfsTest, KindsAreNotMixedUp) {
  EXPECT_EQ(view_.read("", "/sys/class").error(), Status::InvalidParameter);
  EXPECT_EQ(view_.read("", "/dev/infiniband/uverbs0").error(), Status::InvalidParameter);
  EXPECT_EQ(view_.list("", "/sys/class/infiniband_verbs/abi_version").error(),
            Status::InvalidParameter);
  EXPECT_EQ(view_.readlink("", "/sys/class").error(), Status::InvalidParameter);
}

}  // namespace
}  // namespace ib::drivers
