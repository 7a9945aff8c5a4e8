// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/sysfs/sysfs.h"

#include "drivers/sysfs/dat_conf.h"
#include "drivers/sysfs/hosts.h"
#include "drivers/sysfs/sysfs_items_internal.h"
#include "drivers/sysfs/sysfs_mad_internal.h"
#include "drivers/sysfs/sysfs_text_internal.h"
#include "fabric/port_attributes.h"
#include "verbs/control_umad.h"
#include "verbs/virtual_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace ib::drivers {
namespace {

using sysfs::Attribute;
using sysfs::class_link;
using sysfs::device_link;
using sysfs::directory;
using sysfs::EntryText;
using sysfs::file;
using sysfs::Found;
using sysfs::Item;
using sysfs::link;
using sysfs::Place;
using sysfs::Rest;
using sysfs::subsystem_link;
using sysfs::View;
using verbs::control::CaAttr;
using verbs::control::PortAttr;
using verbs::control::ViewKind;
using verbs::control::ViewStatOut;

constexpr std::size_t kMostPath = sizeof(ViewStatOut::target);  // with a NUL

// A directory of the files in `table` and of `directories`; or the one file that `rest` names.
Found files(std::span<const Attribute> table, std::vector<std::string> directories,
            const Place& place, Rest rest) {
  if (rest.empty()) {
    for (const Attribute& attribute : table) directories.emplace_back(attribute.name);
    return directory(std::move(directories));
  }
  if (rest.size() > 1) return std::nullopt;
  for (const Attribute& attribute : table) {
    if (attribute.name == rest[0]) return file(attribute.text(place));
  }
  return std::nullopt;
}

// "0", "17": the index, below `limit`; no sign, no leading zero.
std::optional<std::uint32_t> parse_index(std::string_view text, std::uint32_t limit) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value >= limit) return {};
  if (text.size() > 1 && text[0] == '0') return {};
  return value;
}

// A directory with one file per table entry: gids/0, gids/1, ...
Found table(EntryText text, std::uint32_t length, Place place, Rest rest) {
  if (rest.empty()) {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < length; ++i) names.push_back(std::to_string(i));
    return directory(std::move(names));
  }
  const auto index = parse_index(rest[0], length);
  if (!index || rest.size() > 1) return std::nullopt;
  place.index = *index;
  return file(text(place));
}

Found port_item(const Place& place, Rest rest) {
  const Rest tail = rest.empty() ? rest : rest.subspan(1);
  const std::string_view name = rest.empty() ? "" : rest[0];
  if (name == "gids") return table(sysfs::gid_line, place.port_attr().gid_tbl_len, place, tail);
  if (name == "pkeys") return table(sysfs::pkey_line, place.port_attr().pkey_tbl_len, place, tail);
  if (name == "counters") return files(sysfs::counter_files(), {}, place, tail);
  if (name == "hw_counters") return files(sysfs::driver_counter_files(), {}, place, tail);
  if (name == "gid_attrs") {
    if (tail.empty()) return directory({"ndevs", "types"});
    const EntryText text = tail[0] == "types"   ? sysfs::gid_type_line
                           : tail[0] == "ndevs" ? sysfs::gid_interface_line
                                                : nullptr;
    if (text == nullptr) return std::nullopt;
    return table(text, place.port_attr().gid_tbl_len, place, tail.subspan(1));
  }
  return files(sysfs::port_files(), {"counters", "gid_attrs", "gids", "hw_counters", "pkeys"},
               place, rest);
}

bool has_port(const fabric::Hca& hca, const fabric::Port* port) {
  return std::any_of(hca.ports.begin(), hca.ports.end(),
                     [port](const fabric::Port& one) { return &one == port; });
}

// Returns the interface of IP over InfiniBand at a port of the HCA, or nullptr if none has the
// name.
const fabric::IpInterface* find_ip_interface(const fabric::Hca& hca,
                                             std::span<const fabric::IpInterface> interfaces,
                                             std::string_view name) {
  for (const fabric::IpInterface& one : interfaces) {
    if (one.name == name && has_port(hca, one.port)) return &one;
  }
  return nullptr;
}

Found ip_interface(Place place, const fabric::IpInterface& interface, Rest rest) {
  place.port = interface.port;
  place.interface = &interface;
  return files(sysfs::ip_interface_files(), {}, place, rest);
}

// The first port of the HCA that an interface of that name belongs to.
const fabric::Port* port_of_interface(const fabric::Hca& hca,
                                      std::span<const fabric::IpInterface> interfaces,
                                      std::string_view name) {
  if (const fabric::IpInterface* one = find_ip_interface(hca, interfaces, name)) return one->port;
  for (const fabric::Port& port : hca.ports) {
    const bool has_it =
        std::any_of(port.gids.begin(), port.gids.end(),
                    [&](const fabric::GidEntry& entry) { return entry.interface == name; });
    if (has_it) return &port;
  }
  return nullptr;
}

// device/net: a directory for each network interface of the HCA.
Found interfaces(Place place, Rest rest) {
  std::vector<std::string> names;
  for (const fabric::Port& port : place.hca.ports) {
    for (const fabric::GidEntry& entry : port.gids) {
      if (!entry.interface.empty()) names.push_back(entry.interface);
    }
  }
  for (const fabric::IpInterface& one : place.interfaces) {
    if (has_port(place.hca, one.port)) names.push_back(one.name);
  }
  if (names.empty()) return std::nullopt;
  if (rest.empty()) {
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return directory(std::move(names));
  }
  const fabric::IpInterface* own = find_ip_interface(place.hca, place.interfaces, rest[0]);
  if (own != nullptr) return ip_interface(place, *own, rest.subspan(1));
  place.port = rest[0].empty() ? nullptr : port_of_interface(place.hca, place.interfaces, rest[0]);
  if (place.port == nullptr) return std::nullopt;
  return files(sysfs::interface_files(), {}, place, rest.subspan(1));
}

std::string uverbs_name(const Place& place) {
  return "uverbs" + std::to_string(place.number);
}

Found hca_item(Place place, Rest rest) {
  if (rest.size() == 1 && rest[0] == "device") return device_link(place);
  if (rest.size() == 1 && rest[0] == "subsystem") return subsystem_link("infiniband");
  if (rest.empty() || rest[0] != "ports")
    return files(sysfs::hca_files(), {"device", "ports", "subsystem"}, place, rest);
  if (rest.size() == 1) {
    std::vector<std::string> names;
    for (const fabric::Port& port : place.hca.ports) names.push_back(std::to_string(port.number));
    return directory(std::move(names));
  }
  for (const fabric::Port& port : place.hca.ports) {
    if (rest[1] != std::to_string(port.number)) continue;
    place.port = &port;
    return port_item(place, rest.subspan(2));
  }
  return std::nullopt;
}

Found uverbs_item(const Place& place, Rest rest) {
  if (rest.size() == 1 && rest[0] == "device") return device_link(place);
  if (rest.size() == 1 && rest[0] == "subsystem") return subsystem_link("infiniband_verbs");
  return files(sysfs::uverbs_files(), {"device", "subsystem"}, place, rest);
}

// /sys/devices/infiniband/softib0, where the PCI device would be. As in Linux its HCA and its
// uverbs device are directories in it, to which the entries of their classes are links.
Found device_item(const Place& place, Rest rest) {
  if (place.cpus == 0 && !rest.empty() && rest[0].starts_with("local_cpu")) return std::nullopt;
  if (!rest.empty() && rest[0] == "net") return interfaces(place, rest.subspan(1));
  for (const auto& [folder, entry, item] :
       {std::tuple{"infiniband", place.hca.name,
                   +[](const Place&p, Rest r) { return hca_item(p, r); }},
        std::tuple{"infiniband_verbs", uverbs_name(place),
                   +[](const Place&p, Rest r) { return uverbs_item(p, r); }}}) {
    if (rest.empty() || rest[0] != folder) continue;
    if (rest.size() == 1) return directory({entry});
    return rest[1] == entry ? item(place, rest.subspan(2)) : std::nullopt;
  }
  if (!rest.empty() && rest[0] == "infiniband_mad")
    return sysfs::mad_folder(place, rest.subspan(1));
  std::vector<std::string> folders{"infiniband", "infiniband_mad", "infiniband_verbs"};
  if (interfaces(place, {})) folders.emplace_back("net");
  Found item = files(sysfs::device_files(), std::move(folders), place, rest);
  if (place.cpus == 0 && rest.empty()) {
    std::erase_if(item->names, [](const std::string& n) { return n.starts_with("local_cpu"); });
  }
  return item;
}

Found char_device(const Place&, Rest rest) {
  if (!rest.empty()) return std::nullopt;
  return Item{ViewKind::CharDevice, 0666, {}, {}, true};
}

Item rdma_cm_device() {
  Item item{ViewKind::CharDevice, 0666, {}, {}, true};
  item.major = verbs::control::kRdmaCmMajor;
  item.minor = verbs::control::kRdmaCmMinor;
  return item;
}

// /sys/devices/virtual/misc, as far as it is ours.
Found misc_item(Rest path) {
  if (path.empty()) return directory({"rdma_cm"});
  if (path[0] != "rdma_cm" || path.size() > 2) return std::nullopt;
  if (path.size() == 1) return directory({"abi_version", "dev", "subsystem", "uevent"});
  if (path[1] == "abi_version") return file("4\n");
  if (path[1] == "subsystem") return link("../../../../class/misc");
  const auto major = verbs::control::kRdmaCmMajor;
  const auto minor = verbs::control::kRdmaCmMinor;
  if (path[1] == "dev") return file(fmt::format("{}:{}\n", major, minor));
  if (path[1] != "uevent") return std::nullopt;
  return file(fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/rdma_cm\n", major, minor));
}

// A directory with one entry per HCA of the node, called `prefix` and its number.
Found per_hca(const View& view, const char* prefix, std::vector<std::string> others,
              Found (*item)(Place, Rest), Rest rest) {
  for (std::size_t i = 0; i < view.node.hcas.size(); ++i) {
    if (!view.node.hcas[i].present) continue;
    std::string name = prefix + std::to_string(i);
    if (!rest.empty() && rest[0] == name) {
      Place place{view.devices, view.node, view.node.hcas[i], i, view.cpus};
      place.interfaces = view.interfaces;
      return item(place, rest.subspan(1));
    }
    others.push_back(std::move(name));
  }
  return rest.empty() ? Found(directory(std::move(others))) : std::nullopt;
}

// /dev/infiniband.
Found char_devices(const View& view, Rest rest) {
  if (rest.size() == 1 && rest[0] == "rdma_cm") return rdma_cm_device();
  if (Found found = rest.empty() ? std::nullopt : sysfs::mad_char_device(view, rest)) return found;
  std::vector<std::string> others = sysfs::mad_names(view);
  others.emplace_back("rdma_cm");
  return per_hca(
      view, "uverbs", std::move(others), [](Place p, Rest r) { return char_device(p, r); }, rest);
}

// /sys/class/net/ib0/pkey and the others that an interface of IP over InfiniBand has on Linux, and
// the kernel's TAP has not, or otherwise.
Found ip_interface_file(const View& view, Rest path) {
  for (std::size_t i = 0; i < view.node.hcas.size(); ++i) {
    const Place place{view.devices, view.node, view.node.hcas[i], i, view.cpus};
    const fabric::IpInterface* own = find_ip_interface(place.hca, view.interfaces, path[0]);
    if (own != nullptr) return ip_interface(place, *own, path.subspan(1));
  }
  return std::nullopt;
}

// /sys/class/net/IF/device/infiniband*: the HCAs with a port that has the interface. The rest of
// /sys/class/net is the kernel's.
Found interface_item(const View& view, Rest path) {
  if (path.size() == 2) return ip_interface_file(view, path);
  if (path.size() < 3 || path[1] != "device") return std::nullopt;
  const bool is_verbs = path[2] == "infiniband_verbs";
  if (!is_verbs && path[2] != "infiniband") return std::nullopt;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < view.node.hcas.size(); ++i) {
    const fabric::Hca& hca = view.node.hcas[i];
    if (!hca.present || port_of_interface(hca, view.interfaces, path[0]) == nullptr) continue;
    std::string name = is_verbs ? "uverbs" + std::to_string(i) : hca.name;
    if (path.size() == 4 && path[3] == name) {
      return link(std::string("../../../../").append(path[2]).append("/").append(name));
    }
    names.push_back(std::move(name));
  }
  if (path.size() > 3 || names.empty()) return std::nullopt;
  return directory(std::move(names));
}

// /dev
Found device_nodes(const View& view, Rest path) {
  if (path.empty()) return directory({"infiniband"});
  if (path[0] != "infiniband") return std::nullopt;
  return char_devices(view, path.subspan(1));
}

// /sys/devices
Found devices(const View& view, Rest path) {
  if (path.empty()) return directory({"infiniband"});
  if (path.size() > 1 && path[0] == "virtual" && path[1] == "misc") {
    return misc_item(path.subspan(2));
  }
  if (path[0] != "infiniband") return std::nullopt;
  return per_hca(
      view, "softib", {}, [](Place p, Rest r) { return device_item(p, r); }, path.subspan(1));
}

// /sys/class
Found classes(const View& view, Rest path) {
  if (path.empty()) return directory({"infiniband", "infiniband_mad", "infiniband_verbs"});
  const Rest rest = path.subspan(1);
  if (path[0] == "misc" && rest.empty()) return directory({"rdma_cm"});
  if (path[0] == "misc" && rest.size() == 1 && rest[0] == "rdma_cm") {
    return link("../../devices/virtual/misc/rdma_cm");
  }
  if (path[0] == "net") return interface_item(view, rest);
  if (path[0] == "infiniband") {
    return per_hca(
        view, "softib", {},
        [](Place p, Rest r) { return class_link(p, "infiniband", p.hca.name, r); }, rest);
  }
  if (path[0] == "infiniband_mad") return sysfs::mad_class(view, rest);
  if (path[0] != "infiniband_verbs") return std::nullopt;
  if (rest.size() == 1 && rest[0] == "abi_version") return file("6\n");
  return per_hca(
      view, "uverbs", {"abi_version"},
      [](Place p, Rest r) { return class_link(p, "infiniband_verbs", uverbs_name(p), r); }, rest);
}

Found walk(const View& view, Rest path) {
  if (path.empty()) return std::nullopt;
  if (path[0] == "dev") return device_nodes(view, path.subspan(1));
  if (path[0] != "sys" || path.size() < 2) return std::nullopt;
  if (path[1] == "devices") return devices(view, path.subspan(2));
  if (path[1] == "class") return classes(view, path.subspan(2));
  return std::nullopt;
}

// "/a/b" -> {"a", "b"}. Returns false if the path is not absolute, or not normalised.
bool split(std::string_view path, std::vector<std::string_view>& components) {
  if (path.empty() || path[0] != '/') return false;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find('/'));
    if (name.empty() || name == "." || name == "..") return false;
    components.push_back(name);
    path.remove_prefix(name.size());
  }
  return true;
}

// `target`, as seen from the directory whose components are `directory`.
std::string resolve(Rest directory, std::string_view target) {
  while (target.substr(0, 3) == "../") {
    IB_ASSERT(!directory.empty());  // our own links stay inside the tree
    directory = directory.first(directory.size() - 1);
    target.remove_prefix(3);
  }
  std::string path;
  for (const std::string_view name : directory) path.append("/").append(name);
  return path.append("/").append(target);
}

Found find(const View& view, std::string path) {
  constexpr int kMaxLinks = 8;
  for (int links = 0; links <= kMaxLinks; ++links) {
    std::vector<std::string_view> components;
    if (!split(path, components)) return std::nullopt;
    const Rest all(components);
    Found item = walk(view, all);
    if (item) {
      item->path = path;
      return item;
    }
    // Perhaps a link in the middle: replace the shortest prefix that is one.
    std::size_t length = 1;
    for (; length < all.size(); ++length) {
      item = walk(view, all.first(length));
      if (item && item->kind == ViewKind::Link) break;
    }
    if (length >= all.size()) return std::nullopt;
    std::string followed = resolve(all.first(length - 1), item->text);
    for (const std::string_view name : all.subspan(length)) followed.append("/").append(name);
    if (followed.size() >= kMostPath) return std::nullopt;
    path = std::move(followed);
  }
  return std::nullopt;
}

Result<Item> find_item(const fabric::Fabric& fabric, const DeviceStatus& devices, unsigned cpus,
                       std::string_view node_name, std::string_view path) {
  if (auto host = host_file(fabric, path)) return file(*std::move(host));
  const fabric::Node* node = fabric.find_node(node_name);
  if (node == nullptr) return Status::NotFound;
  if (path == verbs::kDatConf) return file(dat_conf(*node));
  const auto number = static_cast<std::uint32_t>(node - fabric.nodes().data());
  const View view{devices, *node, cpus, fabric.ip_interfaces().of(number)};
  Found item = find(view, std::string(path));
  if (!item) return Status::NotFound;
  return *std::move(item);
}

}  // namespace

CaAttr DeviceStatus::ca(const fabric::Hca& hca) const {
  CaAttr attr;
  std::copy_n("1.0.0", 5, attr.fw_ver.begin());
  attr.node_guid = hca.node_guid;
  attr.sys_image_guid = hca.node_guid;
  attr.port_count = static_cast<std::uint32_t>(hca.ports.size());
  return attr;
}

PortAttr DeviceStatus::port(const fabric::Hca&, const fabric::Port& port) const {
  PortAttr attr = fabric::port_attributes(port);
  attr.gid_tbl_len = static_cast<std::uint32_t>(port.gids.size());
  return attr;
}

DeviceCounters DeviceStatus::counters(const fabric::Hca&, const fabric::Port&) const {
  return {};
}

Result<ViewStatOut> Sysfs::stat(std::string_view node, std::string_view path) const {
  IB_TRY(item, find_item(fabric_, devices_, cpus_, node, path));
  ViewStatOut out;
  out.kind = item.kind;
  out.mode = item.mode;
  out.size = item.text.size();
  if (item.kind == ViewKind::CharDevice) {
    out.device_major = item.major;
    out.device_minor = item.minor;
  }
  const std::string& target = item.kind == ViewKind::Link ? item.text : item.path;
  IB_ASSERT(target.size() < out.target.size());
  std::copy(target.begin(), target.end(), out.target.begin());
  return out;
}

Result<std::string> Sysfs::read(std::string_view node, std::string_view path) const {
  IB_TRY(item, find_item(fabric_, devices_, cpus_, node, path));
  if (item.kind != ViewKind::File || !item.readable) return Status::InvalidParameter;
  return std::move(item.text);
}

Result<std::string> Sysfs::list(std::string_view node, std::string_view path) const {
  IB_TRY(item, find_item(fabric_, devices_, cpus_, node, path));
  if (item.kind != ViewKind::Directory) return Status::InvalidParameter;
  std::string lines;
  for (const std::string& name : item.names) lines.append(name).append("\n");
  return lines;
}

Result<std::string> Sysfs::readlink(std::string_view node, std::string_view path) const {
  IB_TRY(item, find_item(fabric_, devices_, cpus_, node, path));
  if (item.kind != ViewKind::Link) return Status::InvalidParameter;
  return std::move(item.text);
}

}  // namespace ib::drivers
