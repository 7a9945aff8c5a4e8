// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Files, directories and links of the emulated trees, as sysfs.cpp and its parts make them.
#pragma once

#include "drivers/sysfs/sysfs_text_internal.h"
#include "verbs/control.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ib::drivers::sysfs {

using verbs::control::ViewKind;

inline constexpr std::uint32_t kNullMajor = 1;
inline constexpr std::uint32_t kNullMinor = 3;

struct Item {
  ViewKind kind = ViewKind::Directory;
  std::uint32_t mode = 0755;
  std::string text;                  // content of a file, target of a link
  std::vector<std::string> names;    // of a directory
  bool readable = true;              // false: a read of the file fails with EINVAL, as in Linux
  std::uint32_t major = kNullMajor;  // of a character device
  std::uint32_t minor = kNullMinor;
  std::string path{};  // where it is, without links on the way
};
using Found = std::optional<Item>;
using Rest = std::span<const std::string_view>;  // components of the path still to walk

inline Item directory(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return {ViewKind::Directory, 0755, {}, std::move(names), true};
}
inline Item file(std::optional<std::string> text) {
  const bool readable = text.has_value();
  return {ViewKind::File, 0444, std::move(text).value_or(""), {}, readable};
}
inline Item link(std::string target) {
  return {ViewKind::Link, 0777, std::move(target), {}, true};
}

// The links of an HCA or uverbs device, which is two folders below the device. hwloc, for one,
// takes a directory for an HCA without a device.
inline Found device_link(const Place& place) {
  return link("../../../" + place.hca.name);
}
inline Found subsystem_link(const char* name) {
  return link(std::string("../../../../../class/") + name);
}

// The entry of a class: a link into the tree of devices.
inline Found class_link(const Place& place, const char* name, const std::string& entry, Rest rest) {
  if (!rest.empty()) return std::nullopt;
  return link(fmt::format("../../devices/infiniband/{}/{}/{}", place.hca.name, name, entry));
}

struct View {
  const DeviceStatus& devices;
  const fabric::Node& node;
  unsigned cpus;
  std::span<const fabric::IpInterface> interfaces;  // of the node
};

}  // namespace ib::drivers::sysfs
