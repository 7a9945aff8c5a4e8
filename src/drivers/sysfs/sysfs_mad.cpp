// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/sysfs/sysfs_mad_internal.h"
#include "verbs/control_umad.h"

#include <fmt/format.h>

#include <utility>

namespace ib::drivers::sysfs {
namespace {

// An entry of the class. The ports of an HCA count on from those of the HCAs before it.
struct MadDevice {
  std::string name;  // umad0
  std::uint32_t minor = 0;
  const fabric::Port* port = nullptr;
};
std::vector<MadDevice> mad_devices(const Place& place) {
  std::uint32_t unit = 0;
  for (const fabric::Hca& hca : place.node.hcas) {
    if (&hca == &place.hca) break;
    unit += static_cast<std::uint32_t>(hca.ports.size());
  }
  std::vector<MadDevice> devices;
  for (const fabric::Port& port : place.hca.ports) {
    devices.push_back({fmt::format("umad{}", unit), unit, &port});
    devices.push_back({fmt::format("issm{}", unit), verbs::control::kIssmFirstMinor + unit, &port});
    ++unit;
  }
  return devices;
}

// A file or link of one of them.
Found mad_device_item(const Place& place, const MadDevice& device, Rest rest) {
  if (rest.empty()) return directory({"dev", "device", "ibdev", "port", "subsystem", "uevent"});
  if (rest.size() > 1) return std::nullopt;
  if (rest[0] == "device") return device_link(place);
  if (rest[0] == "subsystem") return subsystem_link("infiniband_mad");
  if (rest[0] == "ibdev") return file(place.hca.name + "\n");
  if (rest[0] == "port") return file(fmt::format("{}\n", device.port->number));
  const auto major = verbs::control::kUmadMajor;
  if (rest[0] == "dev") return file(fmt::format("{}:{}\n", major, device.minor));
  if (rest[0] != "uevent") return std::nullopt;
  return file(
      fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/{}\n", major, device.minor, device.name));
}

// A directory with an entry for each of them, or the one that `rest` names.
template <class ItemOf>
Found per_mad_device(const View& view, std::vector<std::string> others, ItemOf item, Rest rest) {
  for (std::size_t i = 0; i < view.node.hcas.size(); ++i) {
    if (!view.node.hcas[i].present) continue;
    const Place place{view.devices, view.node, view.node.hcas[i], i, view.cpus};
    for (MadDevice& device : mad_devices(place)) {
      if (!rest.empty() && rest[0] == device.name) {
        return rest.size() == 1 ? item(place, device) : std::nullopt;
      }
      others.push_back(std::move(device.name));
    }
  }
  return rest.empty() ? Found(directory(std::move(others))) : std::nullopt;
}

}  // namespace

std::vector<std::string> mad_names(const View& view) {
  const auto none = [](const Place&, const MadDevice&) { return Found(); };
  return per_mad_device(view, {}, none, {})->names;
}

Found mad_char_device(const View& view, Rest rest) {
  const auto item_of = [](const Place&, const MadDevice& device) {
    Item item{ViewKind::CharDevice, 0666, {}, {}, true};
    item.major = verbs::control::kUmadMajor;
    item.minor = device.minor;
    return Found(std::move(item));
  };
  return per_mad_device(view, {}, item_of, rest);
}

Found mad_class(const View& view, Rest rest) {
  if (rest.size() == 1 && rest[0] == "abi_version") return file("5\n");
  return per_mad_device(
      view, {"abi_version"},
      [](const Place& place, const MadDevice& device) {
        return class_link(place, "infiniband_mad", device.name, {});
      },
      rest);
}

Found mad_folder(const Place& place, Rest rest) {
  std::vector<std::string> names;
  for (MadDevice& device : mad_devices(place)) {
    if (!rest.empty() && rest[0] == device.name) {
      return mad_device_item(place, device, rest.subspan(1));
    }
    names.push_back(std::move(device.name));
  }
  return rest.empty() ? Found(directory(std::move(names))) : std::nullopt;
}

}  // namespace ib::drivers::sysfs
