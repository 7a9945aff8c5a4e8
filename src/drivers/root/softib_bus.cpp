// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/softib_bus.h"

#include "drivers/trace/words.h"
#include "verbs/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace ib::drivers {
namespace {

io::DeviceIds raw_ids(std::string device, std::string instance, std::string description) {
  io::DeviceIds ids;
  ids.device = std::move(device);
  ids.instance = std::move(instance);
  ids.hardware = {ids.device};
  ids.description = std::move(description);
  ids.raw = true;
  return ids;
}

io::DeviceIds hca_ids(const fabric::Node& node, const fabric::Hca& hca) {
  namespace limits = verbs::limits;
  io::DeviceIds ids;
  ids.device = fmt::format("SOFTIB\\V{}P{}v{}", digits(limits::kVendorId, 6),
                           digits(limits::kVendorPartId, 4), digits(limits::kHwVersion, 8));
  ids.instance = digits(hca.node_guid, 16);
  ids.hardware = {ids.device, fmt::format("SOFTIB\\V{}P{}", digits(limits::kVendorId, 6),
                                          digits(limits::kVendorPartId, 4))};
  ids.compatible = {"SOFTIB\\HCA"};
  ids.description = "softib host channel adapter";
  ids.location = fmt::format("{}, {}", node.name, hca.name);
  return ids;
}

}  // namespace

SoftibBus::SoftibBus() {
  driver_.on(io::Major::Pnp) = &answer_bus_pnp;
  root_ = std::make_shared<BusDevice>(driver_, raw_ids("ROOT\\SOFTIB", "0", "softib fabric"));
}

void SoftibBus::add_host(fabric::Node& node) {
  auto host = std::make_shared<HostDevice>(
      driver_, raw_ids("SOFTIB\\HOST", node.name, "virtual host " + node.name), node);
  const bool is_new = hosts_.emplace(&node, host).second;
  IB_ASSERT(is_new);
  // In the order of the fabric, which has its nodes in one array.
  auto& all = root_->children;
  const auto place = std::ranges::upper_bound(all, &node, std::less<>{}, [](const auto& device) {
    return &static_cast<const HostDevice&>(*device).node;
  });
  all.insert(place, std::move(host));
  for (fabric::Hca& hca : node.hcas) {
    if (hca.present) plug(node, hca);
  }
}

const io::DeviceObject* SoftibBus::host(const fabric::Node& node) const {
  const auto found = hosts_.find(&node);
  return found == hosts_.end() ? nullptr : found->second.get();
}

const io::DeviceObject* SoftibBus::physical(const fabric::Hca& hca) const {
  const auto found = hcas_.find(hca.index);
  return found == hcas_.end() ? nullptr : found->second.get();
}

void SoftibBus::plug(fabric::Node& node, fabric::Hca& hca) {
  auto device = std::make_shared<HcaDevice>(driver_, hca_ids(node, hca), HcaPlace{node, hca});
  hosts_.at(&node)->children.push_back(device);
  hcas_.insert_or_assign(hca.index, std::move(device));
}

void SoftibBus::unplug(fabric::Node& node, fabric::Hca& hca) {
  const auto found = hcas_.find(hca.index);
  if (found == hcas_.end()) return;
  std::erase(hosts_.at(&node)->children, found->second);
  hcas_.erase(found);
}

}  // namespace ib::drivers
