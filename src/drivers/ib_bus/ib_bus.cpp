// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/ib_bus/ib_bus.h"

#include "drivers/ib_bus/bus_device.h"
#include "drivers/soft_hca/hca_place.h"
#include "drivers/trace/words.h"
#include "io/device_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

namespace ib::drivers {
namespace {

constexpr std::size_t kMaxChildName = 16;

// The filter on one HCA.
struct BusFilter final : io::DeviceObject {
  BusFilter(IbBus& ib_bus, io::DriverObject& driver, HcaPlace where)
      : DeviceObject(driver, where.node.name + "/" + where.hca.name, io::DeviceKind::Filter),
        bus(ib_bus),
        place(where) {}
  ~BusFilter() override { remove_names(); }

  std::string device_path() const { return "\\Device\\" + place.hca.name; }
  std::string guid_path() const { return "\\Device\\ibal\\" + digits(place.hca.node_guid, 16); }

  Status add_names() {
    IB_CHECK(bus.names().add_device(place.node.name, device_path(), *this));
    named = true;
    return bus.names().add_link(place.node.name, guid_path(), device_path());
  }
  // Nobody can open it any more; who has it open keeps it.
  void remove_names() {
    if (!named) return;
    named = false;
    (void)bus.names().remove(place.node.name, guid_path());
    (void)bus.names().remove(place.node.name, device_path());
  }
  void send_down_waiting() {
    while (powered || gone) {
      auto irp = waiting.take();
      if (!irp) return;
      pass_down(*this, *std::move(irp));
    }
  }

  IbBus& bus;
  HcaPlace place;
  io::IrpQueue waiting;  // for the HCA to be in D0
  bool powered = true;
  bool going = false;  // QueryRemove was agreed to
  bool gone = false;   // Remove or SurpriseRemoval: nothing waits any more, the HCA refuses
  bool named = false;
  std::vector<std::shared_ptr<BusDevice>> children;
};

// --- children ---

io::DeviceIds child_ids(const HcaPlace& place, const fabric::Port& port, const PortChild& child) {
  io::DeviceIds ids;
  ids.device = child.device_id;
  ids.instance = fmt::format("{}-{}-{}", digits(port.guid, 16), digits(child.pkey, 4), child.name);
  ids.hardware = child.hardware_ids;
  ids.compatible = child.compatible_ids;
  ids.description = child.description;
  ids.location = fmt::format("{}, port {}", place.hca.name, port.number);
  ids.properties = {{"host", place.node.name},
                    {"ca_guid", digits(place.hca.node_guid, 16)},
                    {"port", std::to_string(port.number)},
                    {"pkey", digits(child.pkey, 4)}};
  return ids;
}

// Those that are wanted now: devices that are there already stay the same objects.
void update_children(BusFilter& self) {
  std::vector<std::shared_ptr<BusDevice>> wanted;
  const auto want = [&](const fabric::Port& port, const PortChild& child) {
    io::DeviceIds ids = child_ids(self.place, port, child);
    const auto known = std::find_if(self.children.begin(), self.children.end(), [&](const auto& c) {
      return c->ids.instance == ids.instance && c->ids.device == ids.device;
    });
    wanted.push_back(known != self.children.end()
                         ? *known
                         : std::make_shared<BusDevice>(self.driver(), std::move(ids)));
  };
  for (const fabric::Port& port : self.place.hca.ports) {
    if (port.is_ethernet()) continue;  // its network interface is there already
    for (const PortChild& child : self.bus.children()) want(port, child);
    for (const fabric::Partition& partition : port.partitions) {
      want(port, partition_child(partition));
    }
  }
  // Those that are there keep their order.
  std::ranges::stable_sort(wanted, {}, [&self](const auto& child) {
    return std::ranges::find(self.children, child) - self.children.begin();
  });
  self.children = std::move(wanted);
}

// --- requests ---

void on_started(io::IrpRef irp, void* context) {
  auto& self = *static_cast<BusFilter*>(context);
  if (irp->status != Status::Ok) return std::move(irp).pass_up();
  const Status named = self.add_names();
  if (named == Status::Ok) return std::move(irp).pass_up();
  self.remove_names();
  std::move(irp).fail(named, fmt::format("the name {} of host {} is taken", self.device_path(),
                                         self.place.node.name));
}

void end(BusFilter& self) {
  self.gone = true;
  self.remove_names();
}

// The HCA has been removed: of the requests that waited for it to wake up it refuses all but those
// that destroy.
void on_gone(io::IrpRef irp, void* context) {
  static_cast<BusFilter*>(context)->send_down_waiting();
  std::move(irp).pass_up();
}

void on_pnp(io::DeviceObject& device, io::IrpRef irp) {
  if (device.kind() == io::DeviceKind::Physical) return answer_bus_pnp(device, std::move(irp));
  auto& self = static_cast<BusFilter&>(device);
  switch (static_cast<io::PnpMinor>(irp->code)) {
    case io::PnpMinor::Start: return call_driver(*self.lower(), std::move(irp), &on_started, &self);
    case io::PnpMinor::QueryRemove: self.going = true; break;
    case io::PnpMinor::CancelRemove: self.going = false; break;
    case io::PnpMinor::Remove: end(self); break;
    case io::PnpMinor::SurpriseRemoval:
      end(self);
      return call_driver(*self.lower(), std::move(irp), &on_gone, &self);
    case io::PnpMinor::QueryDeviceRelations: {
      update_children(self);
      auto& devices = irp->parameters.get<io::DeviceRelations>()->devices;
      devices.insert(devices.end(), self.children.begin(), self.children.end());
      break;
    }
    case io::PnpMinor::QueryId: break;
  }
  pass_down(self, std::move(irp));
}

// The HCA is up, or it could not be switched off: what waited goes on.
void on_powered(io::IrpRef irp, void* context) {
  auto& self = *static_cast<BusFilter*>(context);
  const bool up = irp->parameters.get<io::PowerRequest>()->device == io::DevicePower::D0;
  self.powered = up == (irp->status == Status::Ok);
  self.send_down_waiting();
  std::move(irp).pass_up();
}

void on_power(io::DeviceObject& device, io::IrpRef irp) {
  if (device.kind() == io::DeviceKind::Physical) return pass_down(device, std::move(irp));
  auto& self = static_cast<BusFilter&>(device);
  const auto& request = *irp->parameters.get<io::PowerRequest>();
  const bool set = irp->code == static_cast<std::uint32_t>(io::PowerMinor::Set);
  if (request.is_system || !set) return pass_down(self, std::move(irp));
  if (request.device == io::DevicePower::D3) self.powered = false;
  call_driver(*self.lower(), std::move(irp), &on_powered, &self);
}

// Create and the control requests.
void on_request(io::DeviceObject& device, io::IrpRef irp) {
  if (device.kind() == io::DeviceKind::Physical) return pass_down(device, std::move(irp));
  auto& self = static_cast<BusFilter&>(device);
  if (self.gone) return pass_down(self, std::move(irp));
  if (irp->major == io::Major::Create && self.going) {
    return std::move(irp).fail(Status::DeviceBusy,
                               fmt::format("HCA {} is being removed", self.place.hca.name));
  }
  if (!self.powered) return self.waiting.park(std::move(irp));
  pass_down(self, std::move(irp));
}

Result<std::unique_ptr<io::DeviceObject>> add_device(io::DriverObject& driver, io::DeviceNode& node,
                                                     std::string&) {
  auto& bus = driver.extension<IbBus>();
  const auto& place = node.physical().extension<HcaPlace>();
  return std::unique_ptr<io::DeviceObject>(std::make_unique<BusFilter>(bus, driver, place));
}

}  // namespace

PortChild default_port_child() {
  return {
      "ipoib", "IBA\\IPoIB", {"IBA\\IPoIB"}, {"IBA\\SID_1000066a00020000"}, "IP over InfiniBand",
      0xffff};
}

PortChild partition_child(const fabric::Partition& partition) {
  const bool eoib = partition.name.starts_with('e');
  const std::string id = eoib ? "IBA\\EoIB" : "IBA\\IPoIBP";
  return {partition.name,
          id,
          {id},
          {"IBA\\SID_1000066a00020000"},
          eoib ? "Ethernet over InfiniBand partition" : "IP over InfiniBand partition",
          partition.pkey};
}

bool is_child_name(std::string_view name, std::string& reason) {
  const bool good = !name.empty() && name.size() <= kMaxChildName &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return c > ' ' && c < 0x7f &&
                             std::string_view("-:;,\\/\"").find(c) == std::string_view::npos;
                    });
  if (!good) {
    reason = fmt::format("\"{}\" is no name of a child: 1 to {} characters without - : ; , \\ / \"",
                         name, kMaxChildName);
  }
  return good;
}

io::DriverRegistry::Entry IbBus::entry() {
  return [this](io::DriverObject& driver, std::string&) {
    driver.extension_pointer.set(this);
    driver.add_device = &add_device;
    driver.on(io::Major::Pnp) = &on_pnp;
    driver.on(io::Major::Power) = &on_power;
    driver.on(io::Major::Create) = &on_request;
    driver.on(io::Major::DeviceControl) = &on_request;
    return Status::Ok;
  };
}

}  // namespace ib::drivers
