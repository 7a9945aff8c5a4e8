// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/tree_requests.h"

#include "base/buffers.h"
#include "drivers/soft_hca/handlers.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace ib::drivers {
namespace {

// Completes the request when the action that it has started ends. The request cannot be cancelled
// meanwhile: a device that is half removed is of no use, and actions end soon.
io::PnpManager::Done finish(Core& core, io::IrpRef irp) {
  auto held = std::make_shared<io::IrpRef>(std::move(irp));
  return [&core, held](Status status, const std::string& reason) {
    if (status == Status::Ok) return succeed(std::move(*held));
    fail(core, std::move(*held), status, reason);
  };
}

fabric::Hca* find_hca(fabric::Node& node, std::string_view name) {
  const auto found = std::find_if(node.hcas.begin(), node.hcas.end(),
                                  [&](const fabric::Hca& hca) { return hca.name == name; });
  return found == node.hcas.end() ? nullptr : &*found;
}

std::string no_hca(const fabric::Node& node, std::string_view name) {
  return fmt::format("node {} has no HCA \"{}\"; `softib devices` lists them", node.name, name);
}

// Returns the port that a request names, or nullptr and in `reason` what is absent.
struct Place {
  fabric::Node* node = nullptr;
  fabric::Hca* hca = nullptr;
  fabric::Port* port = nullptr;
};
Place find_place(Core& core, std::string_view node, std::string_view ca, std::uint32_t port,
                 std::string& reason) {
  Place place;
  place.node = core.fabric.find_node(node);
  if (place.node == nullptr) {
    reason = no_node(node);
    return place;
  }
  place.hca = find_hca(*place.node, ca);
  if (place.hca == nullptr || !place.hca->present) {
    reason = no_hca(*place.node, ca);
    return place;
  }
  if (port >= 1 && port <= place.hca->ports.size()) {
    place.port = &place.hca->ports[port - 1];
  } else {
    reason = fmt::format("HCA {} has ports 1 to {}, not {}", ca, place.hca->ports.size(), port);
  }
  return place;
}

const char* kind_name(io::ObjectNamespace::Kind kind) {
  switch (kind) {
    case io::ObjectNamespace::Kind::Directory: return "directory";
    case io::ObjectNamespace::Kind::Device: return "device";
    case io::ObjectNamespace::Kind::Link: return "link";
  }
  return "unknown";
}

void list_names_of(FabricTree& tree, fabric::Node& node, const control::ViewIn& in,
                   io::IrpRef irp) {
  Core& core = tree.core();
  std::string reason;
  const auto entries = tree.names().list(node.name, text_in(in.path), reason);
  if (!entries) return fail(core, std::move(irp), entries.error(), std::move(reason));
  auto json = nlohmann::ordered_json::array();
  for (const io::ObjectNamespace::Entry& entry : *entries) {
    json.push_back({{"name", entry.name},
                    {"kind", kind_name(entry.kind)},
                    {"target", entry.target},
                    {"device", entry.device}});
  }
  answer_text(core, std::move(irp), json.dump(2) + '\n');
}

void change_hca_of(FabricTree& tree, fabric::Node& node, const control::ChangeHcaIn& in,
                   io::IrpRef irp) {
  Core& core = tree.core();
  const std::string name(text_in(in.ca));
  if (in.action == control::HcaAction::Add) {
    auto held = std::make_shared<io::IrpRef>(std::move(irp));
    auto made = std::make_shared<fabric::Hca*>(nullptr);
    std::string reason;
    const auto added = tree.add_hca(node, name, reason,
                                    [&core, held, made](Status status, const std::string& why) {
                                      if (status != Status::Ok)
                                        return fail(core, std::move(*held), status, why);
                                      control::CaName out;
                                      put_text(out.name, (*made)->name);
                                      out.node_guid = (*made)->node_guid;
                                      succeed_with(std::move(*held), out);
                                    });
    if (!added) return fail(core, std::move(*held), added.error(), std::move(reason));
    *made = *added;
    return;
  }
  fabric::Hca* hca = find_hca(node, name);
  if (hca == nullptr) {
    return fail(core, std::move(irp), Status::NotFound, no_hca(node, name));
  }
  if (in.action == control::HcaAction::Remove) {
    return tree.remove_hca(node, *hca, finish(core, std::move(irp)));
  }
  if (in.action == control::HcaAction::Eject) {
    return tree.eject_hca(node, *hca, finish(core, std::move(irp)));
  }
  fail(core, std::move(irp), Status::InvalidParameter,
       fmt::format("there is no action {} on an HCA", static_cast<std::uint32_t>(in.action)));
}

// The devices of the node that a request names are there when it is carried out.
template <class In, void (*kCarryOut)(FabricTree&, fabric::Node&, const In&, io::IrpRef)>
void at_node(FabricTree& tree, const In& in, io::IrpRef irp) {
  Core& core = tree.core();
  fabric::Node* node = core.fabric.find_node(text_in(in.node));
  if (node == nullptr) {
    return fail(core, std::move(irp), Status::NotFound, no_node(text_in(in.node)));
  }
  auto held = std::make_shared<io::IrpRef>(std::move(irp));
  tree.hosts().make(*node,
                    [&tree, node, in, held] { kCarryOut(tree, *node, in, std::move(*held)); });
}

}  // namespace

std::string no_node(std::string_view name) {
  return fmt::format("this fabric has no node \"{}\"; `softib status` lists them", name);
}

void answer_text(Core& core, io::IrpRef irp, std::string_view text) {
  std::string reason;
  auto file = core.memory.host().make_text(text, reason);
  if (!file) return fail(core, std::move(irp), file.error(), std::move(reason));
  irp->out_handles[0] = *std::move(file);
  succeed(std::move(irp), text.size());
}

void set_port(FabricTree& tree, const control::SetPortIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  std::string reason;
  const Place place = find_place(core, text_in(in.node), text_in(in.ca), in.port, reason);
  if (place.port == nullptr) return fail(core, std::move(irp), Status::NotFound, reason);
  set_port_state(core, *place.port, in.up != 0);
  succeed(std::move(irp));
}

void list_names(FabricTree& tree, const control::ViewIn& in, io::IrpRef irp) {
  at_node<control::ViewIn, list_names_of>(tree, in, std::move(irp));
}

void change_hca(FabricTree& tree, const control::ChangeHcaIn& in, io::IrpRef irp) {
  at_node<control::ChangeHcaIn, change_hca_of>(tree, in, std::move(irp));
}

void list_devices(FabricTree& tree, io::IrpRef irp) {
  auto held = std::make_shared<io::IrpRef>(std::move(irp));
  tree.hosts().make_all(
      [&tree, held] { answer_text(tree.core(), std::move(*held), tree.devices_json()); });
}

void change_partition(FabricTree& tree, const control::ChangePartitionIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  std::string reason;
  const Place place = find_place(core, text_in(in.node), text_in(in.ca), in.port, reason);
  if (place.port == nullptr) return fail(core, std::move(irp), Status::NotFound, reason);
  io::PnpManager::Done done = finish(core, std::move(irp));
  if (in.remove != 0) {
    return tree.remove_partition(*place.hca, *place.port, in.pkey, done);
  }
  tree.add_partition(*place.hca, *place.port, in.pkey, text_in(in.name), std::move(done));
}

void set_power(FabricTree& tree, const control::SetPowerIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  const std::string_view name = text_in(in.node);
  fabric::Node* node = name.empty() ? nullptr : core.fabric.find_node(name);
  if (!name.empty() && node == nullptr) {
    return fail(core, std::move(irp), Status::NotFound, no_node(name));
  }
  const bool known = in.state <= control::PowerState::Shutdown;
  if (!known || (node != nullptr && in.state == control::PowerState::Shutdown)) {
    return fail(
        core, std::move(irp), Status::InvalidParameter,
        known ? "shutdown is for the whole fabric: softibd ends with it"
              : fmt::format("there is no power state {}", static_cast<std::uint32_t>(in.state)));
  }
  const auto go = [&tree, node, state = static_cast<io::SystemPower>(in.state),
                   done = finish(core, std::move(irp))] { tree.set_power(node, state, done); };
  node != nullptr ? tree.hosts().make(*node, go) : tree.hosts().make_all(go);
}

void change_driver(FabricTree& tree, const control::ChangeDriverIn& in, io::IrpRef irp) {
  Core& core = tree.core();
  tree.hosts().make_all([&tree, name = std::string(text_in(in.name)), unload = in.unload != 0,
                         done = finish(core, std::move(irp))] {
    unload ? tree.unload_driver(name, done) : tree.load_driver(name, done);
  });
}

}  // namespace ib::drivers
