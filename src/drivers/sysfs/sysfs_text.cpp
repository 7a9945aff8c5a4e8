// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/sysfs/sysfs_text_internal.h"
#include "verbs/link_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ib::drivers::sysfs {
namespace {

using verbs::control::PortAttr;

std::string words(std::uint64_t value) {  // 0123:4567:89ab:cdef
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", value >> 48 & 0xffff, value >> 32 & 0xffff,
                     value >> 16 & 0xffff, value & 0xffff);
}
std::string guid_line(std::uint64_t guid) {
  return words(guid) + "\n";
}
std::string line(std::uint64_t value) {
  return fmt::format("{}\n", value);
}
std::string hex(std::uint32_t value) {
  return fmt::format("0x{:x}\n", value);
}
std::string pci_id(std::uint32_t value) {
  return fmt::format("0x{:04x}\n", value);
}

std::string text_of(const std::array<char, 64>& chars) {
  return {chars.begin(), std::find(chars.begin(), chars.end(), '\0')};
}

bool is_ethernet(const Place& place) {
  return place.port_attr().link_layer == verbs::LinkLayer::Ethernet;
}

std::string state_line(const Place& place) {
  static constexpr std::array kNames{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  const auto state = static_cast<std::size_t>(place.port_attr().state);
  return fmt::format("{}: {}\n", state, state < kNames.size() ? kNames[state] : "UNKNOWN");
}

std::string physical_state_line(const Place& place) {
  static constexpr std::array kNames{
      "<unknown>",         "Sleep",   "Polling", "Disabled", "PortConfigurationTraining", "LinkUp",
      "LinkErrorRecovery", "Phy Test"};
  const std::size_t state = place.port_attr().phys_state;
  return fmt::format("{}: {}\n", state, state < kNames.size() ? kNames[state] : "<unknown>");
}

std::string rate_line(const Place& place) {
  const PortAttr attr = place.port_attr();
  const verbs::LinkSpeed speed = verbs::link_speed(attr.active_speed);
  const unsigned lanes = verbs::link_lanes(attr.active_width);
  const unsigned tenths = lanes * speed.tenths;
  return fmt::format("{}{} Gb/sec ({}X{})\n", tenths / 10, tenths % 10 == 0 ? "" : ".5", lanes,
                     speed.name);
}

std::string cpu_mask_line(const Place& place) {
  std::string text;
  for (unsigned group = (place.cpus + 31) / 32; group-- > 0;) {
    const unsigned bits = std::min(place.cpus - group * 32, 32u);
    const unsigned mask = bits == 32 ? ~0u : (1u << bits) - 1;
    text += text.empty() ? fmt::format("{:x}", mask) : fmt::format(",{:08x}", mask);
  }
  return text + "\n";
}

std::string cpu_list_line(const Place& place) {
  return place.cpus == 1 ? "0\n" : fmt::format("0-{}\n", place.cpus - 1);
}

constexpr std::array kHcaFiles = std::to_array<Attribute>({
    {"board_id", [](const Place&) { return std::string("SOFTIB_HCA_1\n"); }},
    {"fw_ver", [](const Place& p) { return text_of(p.ca().fw_ver) + "\n"; }},
    {"hca_type", [](const Place&) { return std::string("softib\n"); }},
    {"hw_rev", [](const Place& p) { return hex(p.ca().hw_ver); }},
    {"node_desc", [](const Place& p) { return p.node.name + " " + p.hca.name + "\n"; }},
    {"node_guid", [](const Place& p) { return guid_line(p.ca().node_guid); }},
    {"node_type", [](const Place&) { return std::string("1: CA\n"); }},
    {"sys_image_guid", [](const Place& p) { return guid_line(p.ca().sys_image_guid); }},
    {"uevent", [](const Place& p) { return "NAME=" + p.hca.name + "\n"; }},
});

// numa_node -1: the device is memory, no node is nearer than another.
constexpr std::array kDeviceFiles = std::to_array<Attribute>({
    {"class", [](const Place&) { return std::string("0x020700\n"); }},  // InfiniBand controller
    {"device", [](const Place& p) { return pci_id(p.ca().vendor_part_id); }},
    {"local_cpulist", cpu_list_line},
    {"local_cpus", cpu_mask_line},
    {"numa_node", [](const Place&) { return std::string("-1\n"); }},
    {"revision", [](const Place& p) { return fmt::format("0x{:02x}\n", p.ca().hw_ver & 0xff); }},
    {"subsystem_device", [](const Place& p) { return pci_id(p.ca().vendor_part_id); }},
    {"subsystem_vendor", [](const Place& p) { return pci_id(p.ca().vendor_id); }},
    {"vendor", [](const Place& p) { return pci_id(p.ca().vendor_id); }},
});

constexpr std::array kPortFiles = std::to_array<Attribute>({
    {"cap_mask",
     [](const Place& p) { return fmt::format("0x{:08x}\n", p.port_attr().port_cap_flags); }},
    {"has_smi", [](const Place& p) { return std::string(is_ethernet(p) ? "0\n" : "1\n"); }},
    {"lid", [](const Place& p) { return hex(p.port_attr().lid); }},
    {"lid_mask_count", [](const Place& p) { return line(p.port_attr().lmc); }},
    {"link_layer",
     [](const Place& p) { return std::string(is_ethernet(p) ? "Ethernet\n" : "InfiniBand\n"); }},
    {"phys_state", physical_state_line},
    {"rate", rate_line},
    {"sm_lid", [](const Place& p) { return hex(p.port_attr().sm_lid); }},
    {"sm_sl", [](const Place& p) { return line(p.port_attr().sm_sl); }},
    {"state", state_line},
});

DeviceCounters counters_of(const Place& place) {
  return place.devices.counters(place.hca, *place.port);
}
template <auto Counter>
std::string counter_line(const Place& place) {
  return line(counters_of(place).port.*Counter);
}
template <std::uint64_t fabric::PacketCounters::*Counter>
std::string sent_line(const Place& place) {
  return line(counters_of(place).port.sent.*Counter);
}
template <std::uint64_t fabric::PacketCounters::*Counter>
std::string received_line(const Place& place) {
  return line(counters_of(place).port.received.*Counter);
}
template <std::uint64_t DeviceCounters::*Counter>
std::string driver_line(const Place& place) {
  return line(counters_of(place).*Counter);
}
std::string zero_line(const Place&) {
  return "0\n";
}

using fabric::PacketCounters;
using fabric::PortCounters;

constexpr std::array kCounters = std::to_array<Attribute>({
    {"VL15_dropped", counter_line<&PortCounters::vl15_dropped>},
    {"excessive_buffer_overrun_errors", counter_line<&PortCounters::buffer_overrun_errors>},
    {"link_downed", counter_line<&PortCounters::link_downed>},
    {"link_error_recovery", counter_line<&PortCounters::link_error_recovery>},
    {"local_link_integrity_errors", counter_line<&PortCounters::local_link_integrity_errors>},
    {"multicast_rcv_packets", received_line<&PacketCounters::multicast>},
    {"multicast_xmit_packets", sent_line<&PacketCounters::multicast>},
    {"port_rcv_constraint_errors", counter_line<&PortCounters::receive_constraint_errors>},
    {"port_rcv_data", received_line<&PacketCounters::data>},
    {"port_rcv_errors", counter_line<&PortCounters::receive_errors>},
    {"port_rcv_packets", received_line<&PacketCounters::packets>},
    {"port_rcv_remote_physical_errors", counter_line<&PortCounters::remote_physical_errors>},
    {"port_rcv_switch_relay_errors", counter_line<&PortCounters::switch_relay_errors>},
    {"port_xmit_constraint_errors", counter_line<&PortCounters::transmit_constraint_errors>},
    {"port_xmit_data", sent_line<&PacketCounters::data>},
    {"port_xmit_discards", counter_line<&PortCounters::transmit_discards>},
    {"port_xmit_packets", sent_line<&PacketCounters::packets>},
    {"port_xmit_wait", counter_line<&PortCounters::transmit_wait>},
    {"symbol_error", counter_line<&PortCounters::symbol_errors>},
    {"unicast_rcv_packets", received_line<&PacketCounters::unicast>},
    {"unicast_xmit_packets", sent_line<&PacketCounters::unicast>},
});

// Named as mlx5 names what it counts, which monitoring reads. `lifespan`: for how many milliseconds
// the numbers may be kept; each read of these is a count of its own.
constexpr std::array kDriverCounters = std::to_array<Attribute>({
    {"lifespan", zero_line},
    {"rx_atomic_requests", driver_line<&DeviceCounters::rx_atomic_requests>},
    {"rx_read_requests", driver_line<&DeviceCounters::rx_read_requests>},
    {"rx_write_requests", driver_line<&DeviceCounters::rx_write_requests>},
});

// The device's own ABI version is "1"; that of the uverbs class is 6, the only one there is.
constexpr std::array kUverbsFiles = std::to_array<Attribute>({
    {"abi_version", [](const Place&) { return std::string("1\n"); }},
    {"dev", [](const Place&) { return std::string("1:3\n"); }},
    {"ibdev", [](const Place& p) { return p.hca.name + "\n"; }},
    {"uevent",
     [](const Place& p) {
       return fmt::format("MAJOR=1\nMINOR=3\nDEVNAME=infiniband/uverbs{}\n", p.number);
     }},
});

// By these, scripts find the port that a network interface belongs to.
constexpr std::array kInterfaceFiles = std::to_array<Attribute>({
    {"dev_id", [](const Place& p) { return hex(p.port->number - 1); }},
    {"dev_port", [](const Place& p) { return line(p.port->number - 1); }},
});

// "80:00:01:02:fe:...": 20 bytes.
std::string hardware_address(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}:", byte);
  text.back() = '\n';
  return text;
}

// The address of the broadcast group [RFC 4391 4]: link-local, IPv4's, with the P_Key.
std::string broadcast_address(const Place& place) {
  std::array<std::uint8_t, fabric::IpInterface::kHardwareAddress> bytes{0,    0xff, 0xff, 0xff,
                                                                        0xff, 0x12, 0x40, 0x1b};
  const std::uint16_t pkey = verbs::as_full_member(place.interface->pkey);
  bytes[8] = static_cast<std::uint8_t>(pkey >> 8);
  bytes[9] = static_cast<std::uint8_t>(pkey);
  std::fill_n(bytes.begin() + 16, 4, std::uint8_t{0xff});
  return hardware_address(bytes);
}

// As ipoib of Linux. A child has the numbers of its device, which it has not set.
std::uint32_t number_of_port(const Place& place) {
  const auto& pkeys = place.port->pkeys;
  const bool is_child = pkeys.empty() || verbs::as_full_member(pkeys.front()) !=
                                             verbs::as_full_member(place.interface->pkey);
  return is_child ? 0 : place.port->number - 1;
}

constexpr std::array kIpInterfaceFiles = std::to_array<Attribute>({
    {"addr_len", [](const Place& p) { return line(p.interface->hardware_address.size()); }},
    {"address", [](const Place& p) { return hardware_address(p.interface->hardware_address); }},
    {"broadcast", broadcast_address},
    {"dev_id", [](const Place& p) { return hex(number_of_port(p)); }},
    {"dev_port", [](const Place& p) { return line(number_of_port(p)); }},
    {"mode",
     [](const Place& p) {
       return std::string(p.interface->connected_mode ? "connected\n" : "datagram\n");
     }},
    {"pkey", [](const Place& p) { return pci_id(verbs::as_full_member(p.interface->pkey)); }},
    {"type", [](const Place&) { return std::string("32\n"); }},  // ARPHRD_INFINIBAND
    {"umcast", zero_line},
});

fabric::GidEntry entry(const Place& place) {
  const auto& gids = place.port->gids;
  return place.index < gids.size() ? gids[place.index] : fabric::GidEntry{};
}

}  // namespace

std::optional<std::string> gid_line(const Place& place) {
  return verbs::long_text(entry(place).gid) + "\n";
}

std::optional<std::string> gid_type_line(const Place& place) {
  const fabric::GidEntry gid = entry(place);
  if (verbs::is_zero(gid.gid)) return std::nullopt;
  return gid.type == verbs::GidType::RoceV2 ? "RoCE v2\n" : "IB/RoCE v1\n";
}

std::optional<std::string> gid_interface_line(const Place& place) {
  const fabric::GidEntry gid = entry(place);
  if (gid.interface.empty()) return std::nullopt;
  return gid.interface + "\n";
}

std::optional<std::string> pkey_line(const Place& place) {
  const auto& pkeys = place.port->pkeys;
  return pci_id(place.index < pkeys.size() ? pkeys[place.index] : 0);
}

std::span<const Attribute> ip_interface_files() {
  return kIpInterfaceFiles;
}
std::span<const Attribute> hca_files() {
  return kHcaFiles;
}
std::span<const Attribute> device_files() {
  return kDeviceFiles;
}
std::span<const Attribute> port_files() {
  return kPortFiles;
}
std::span<const Attribute> counter_files() {
  return kCounters;
}
std::span<const Attribute> driver_counter_files() {
  return kDriverCounters;
}
std::span<const Attribute> uverbs_files() {
  return kUverbsFiles;
}
std::span<const Attribute> interface_files() {
  return kInterfaceFiles;
}

}  // namespace ib::drivers::sysfs
