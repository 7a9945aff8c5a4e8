// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/root/fabric_root.h"

#include "drivers/diagnostics/resources.h"
#include "drivers/diagnostics/status.h"
#include "drivers/diagnostics/trace_error.h"
#include "drivers/root/address_requests.h"
#include "drivers/root/cable_requests.h"
#include "drivers/root/interface_requests.h"
#include "drivers/root/subnet_requests.h"
#include "drivers/root/tree_requests.h"
#include "drivers/soft_hca/events.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/lifetime/leftovers.h"
#include "drivers/soft_hca/lifetime/process_slots.h"
#include "drivers/soft_hca/objects/completion_channels.h"
#include "drivers/sysfs/sysfs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace ib::drivers {

// The extension of the device.
struct Root {
  FabricTree& tree;
  Core& core;
  Sysfs& view;
};

namespace {

using verbs::control::Code;

constexpr const char* kIsBeingClosed = "the connection is being closed";

Session* session_of(Core& core, const io::FileObject& file) {
  const auto found = core.sessions.find(file.client().session);
  return found != core.sessions.end() ? found->second.get() : nullptr;
}

void bad_size(Core& core, io::IrpRef irp, std::size_t wanted) {
  const std::size_t got = irp->in.size();
  fail(core, std::move(irp), Status::InvalidParameter,
       fmt::format("the input buffer has {} bytes, this request takes {}", got, wanted));
}

// A missing file is an everyday answer: it leaves no line in the trace.
void view(Root& root, Session&, io::IrpRef irp) {
  const auto in = irp->input<control::ViewIn>();
  if (!in) return bad_size(root.core, std::move(irp), sizeof *in);
  const std::string_view node = text_in(in->node);
  const std::string_view path = text_in(in->path);
  const auto absent = [&](Status status) {
    std::move(irp).fail(status,
                        fmt::format("node \"{}\": {}: {}", node, path, status_text(status)));
  };
  if (static_cast<Code>(irp->code) == Code::ViewList) {
    const auto names = root.view.list(node, path);
    return names ? answer_text(root.core, std::move(irp), *names) : absent(names.error());
  }
  const auto stat = root.view.stat(node, path);
  if (!stat) return absent(stat.error());
  if (static_cast<Code>(irp->code) == Code::ViewOpen && stat->kind == control::ViewKind::File) {
    const auto text = root.view.read(node, path);
    if (!text) return absent(text.error());
    std::string reason;
    auto file = root.core.memory.host().make_text(*text, reason);
    if (!file) return fail(root.core, std::move(irp), file.error(), std::move(reason));
    irp->out_handles[0] = *std::move(file);
  }
  succeed_with(std::move(irp), *stat);
}

void status(Core& core, Session&, io::IrpRef irp) {
  const auto in = irp->input<control::StatusIn>();
  answer_text(core, std::move(irp), status_json(core, in ? &*in : nullptr));
}

void resources(Core& core, Session&, io::IrpRef irp) {
  answer_text(core, std::move(irp), resources_json(core));
}

void trace_read(Core& core, Session&, const control::TraceReadIn& in, io::IrpRef irp) {
  answer_text(core, std::move(irp), core.trace.json_after(in.after));
}

struct Entry {
  Code code;
  std::size_t out_size;
  void (*handle)(Root&, Session&, io::IrpRef);
};

// The handlers take the core, and the process or the view; the input as it is, or none.
template <class In, void (*kHandler)(Core&, Session&, const In&, io::IrpRef)>
void with(Root& root, Session& session, io::IrpRef irp) {
  const auto in = irp->input<In>();
  if (!in) return bad_size(root.core, std::move(irp), sizeof(In));
  kHandler(root.core, session, *in, std::move(irp));
}
// Those about the device tree (tree_requests.cpp).
template <class In, void (*kHandler)(FabricTree&, const In&, io::IrpRef)>
void with_tree(Root& root, Session&, io::IrpRef irp) {
  const auto in = irp->input<In>();
  if (!in) return bad_size(root.core, std::move(irp), sizeof(In));
  kHandler(root.tree, *in, std::move(irp));
}
void devices(Root& root, Session&, io::IrpRef irp) {
  list_devices(root.tree, std::move(irp));
}

// The first program of a node waits for its devices.
void attach_with_devices(Root& root, Session& session, io::IrpRef irp) {
  const auto in = irp->input<control::AttachIn>();
  if (!in) return bad_size(root.core, std::move(irp), sizeof *in);
  fabric::Node* node = root.core.fabric.find_node(text_in(in->node));
  if (node == nullptr) return attach(root.core, session, *in, std::move(irp));  // refuses it
  auto held = std::make_shared<io::IrpRef>(std::move(irp));
  root.tree.hosts().make(*node, [&root, in = *in, held] {
    Session* waiting = session_of(root.core, *(*held)->file);
    if (waiting == nullptr || waiting->ending) {
      return fail(root.core, std::move(*held), Status::Disconnected, kIsBeingClosed);
    }
    attach(root.core, *waiting, in, std::move(*held));
  });
}
template <void (*kHandler)(Core&, Session&, io::IrpRef)>
void without(Root& root, Session& session, io::IrpRef irp) {
  kHandler(root.core, session, std::move(irp));
}

constexpr auto kTable = std::to_array<Entry>({
    // Tools; no process needs to be behind them.
    {Code::Status, 0, without<status>},
    {Code::Resources, 0, without<resources>},
    {Code::TraceRead, 0, with<control::TraceReadIn, trace_read>},
    {Code::ViewStat, sizeof(control::ViewStatOut), view},
    {Code::ViewOpen, sizeof(control::ViewStatOut), view},
    {Code::ViewList, 0, view},
    {Code::SetPort, 0, with_tree<control::SetPortIn, set_port>},
    {Code::SetAddresses, 0, with_tree<control::SetAddressesIn, set_addresses>},
    {Code::Devices, 0, devices},
    {Code::ListNames, 0, with_tree<control::ViewIn, list_names>},
    {Code::ChangeHca, sizeof(control::CaName), with_tree<control::ChangeHcaIn, change_hca>},
    {Code::ChangePartition, 0, with_tree<control::ChangePartitionIn, change_partition>},
    {Code::SetPower, 0, with_tree<control::SetPowerIn, set_power>},
    {Code::ChangeDriver, 0, with_tree<control::ChangeDriverIn, change_driver>},
    {static_cast<Code>(control::TopologyCode::Topology), 0,
     with_tree<control::TopologyIn, topology_text>},
    {static_cast<Code>(control::TopologyCode::Path), 0, with_tree<control::PathIn, path_text>},
    {static_cast<Code>(control::TopologyCode::SetCable), 0,
     with_tree<control::SetCableIn, set_cable>},
    {static_cast<Code>(control::TopologyCode::ChangeCable), 0,
     with_tree<control::ChangeCableIn, change_cable>},
    {static_cast<Code>(control::TopologyCode::CableErrors), 0,
     with_tree<control::CableErrorsIn, cable_errors>},
    {static_cast<Code>(control::TopologyCode::ChangeSwitch), 0,
     with_tree<control::ChangeSwitchIn, change_switch>},
    // The process.
    {Code::Attach, sizeof(control::AttachOut), attach_with_devices},
    {Code::WaitEvent, sizeof(control::EventOut), without<wait_event>},
    {Code::RaiseEvent, 0, with<control::RaiseEventIn, raise_event>},
    {Code::TraceError, 0, with<control::TraceErrorIn, trace_error>},
    {Code::CreateChannel, 0, without<create_channel>},
    {Code::DestroyChannel, 0, with<control::IndexIn, destroy_channel>},
    {Code::GetChannel, 0, with<control::GenerationIn, get_channel>},
    {Code::CreateBacking, sizeof(control::BackingOut), with<control::BackingIn, create_backing>},
    {Code::DestroyBacking, 0, with<control::IndexIn, destroy_backing>},
    {Code::GetBacking, sizeof(control::BackingOut), with<control::GenerationIn, get_backing>},
    {Code::SetIpInterface, 0, with<control::SetIpInterfaceIn, set_ip_interface>},
});

void on_create(io::DeviceObject& device, io::IrpRef irp) {
  Core& core = device.extension<Root>().core;
  const io::Client& client = irp->file->client();
  auto session = std::make_unique<Session>();
  session->id = client.session;
  session->pid = client.pid;
  const bool is_new = core.sessions.emplace(client.session, std::move(session)).second;
  if (!is_new) {
    return fail(core, std::move(irp), Status::AlreadyExists, "this session has a file 0 already");
  }
  succeed(std::move(irp));
}

void on_close(io::DeviceObject& device, io::IrpRef irp) {
  Core& core = device.extension<Root>().core;
  if (Session* session = session_of(core, *irp->file)) end_session(core, *session);
  succeed(std::move(irp));
}

void on_control(io::DeviceObject& device, io::IrpRef irp) {
  auto& root = device.extension<Root>();
  Session* session = session_of(root.core, *irp->file);
  if (session == nullptr || session->ending) {
    return fail(root.core, std::move(irp), Status::Disconnected, kIsBeingClosed);
  }
  for (const Entry& entry : kTable) {
    if (static_cast<std::uint32_t>(entry.code) != irp->code) continue;
    if (irp->out.size() < entry.out_size) {
      const std::size_t room = irp->out.size();
      return fail(
          root.core, std::move(irp), Status::InvalidParameter,
          fmt::format("the output buffer has {} bytes, the answer {}", room, entry.out_size));
    }
    return entry.handle(root, *session, std::move(irp));
  }
  const std::uint32_t code = irp->code;
  fail(root.core, std::move(irp), Status::NotSupported,
       fmt::format("file 0 has no request {}", code));
}

}  // namespace

struct FabricRoot::State {
  State(FabricTree& tree, unsigned cpus)
      : core(tree.core()),
        driver("fabric_root"),
        view(core.fabric, tree.hcas().status(), cpus),
        root{tree, core, view},
        device(driver, "\\Device\\softib", io::DeviceKind::Functional) {
    driver.on(io::Major::Create) = on_create;
    driver.on(io::Major::Close) = on_close;
    driver.on(io::Major::DeviceControl) = on_control;
    device.set_extension(&root);
    const Status named = tree.name_root(device);
    IB_ASSERT(named == Status::Ok);
  }
  Core& core;
  io::DriverObject driver;
  Sysfs view;
  Root root;
  io::DeviceObject device;
};

FabricRoot::FabricRoot(FabricTree& tree, unsigned cpus)
    : state_(std::make_unique<State>(tree, cpus)) {}

FabricRoot::~FabricRoot() = default;

io::DeviceObject& FabricRoot::device() {
  return state_->device;
}

void FabricRoot::disconnect(io::FileObject& process) {
  if (Session* session = session_of(state_->core, process)) end_session(state_->core, *session);
}

void FabricRoot::announce_shutdown() {
  Core& core = state_->core;
  core.arena().header().closed.store(1, std::memory_order_seq_cst);
  for (std::uint32_t slot = 0; slot < core.by_slot.size(); ++slot) {
    if (core.by_slot[slot] != nullptr) core.memory.kick(slot);
  }
}

std::vector<std::string> FabricRoot::left_behind(const io::FileObject& file) const {
  const Session* session = session_of(state_->core, file);
  if (session == nullptr || session->ending) return {};
  if (file.number() == 0) return leftovers(state_->core, *session, nullptr);
  const auto found = std::find_if(session->files.begin(), session->files.end(),
                                  [&](const auto& f) { return f->number == file.number(); });
  if (found == session->files.end()) return {};
  return leftovers(state_->core, *session, found->get());
}

std::vector<std::string> FabricRoot::left_at_end() const {
  return leftovers_at_end(state_->core);
}

std::size_t FabricRoot::attached_processes() const {
  std::size_t n = 0;
  for (const auto& [id, session] : state_->core.sessions) {
    if (session->slot != hca::kNone && !session->ending) ++n;
  }
  return n;
}

nlohmann::ordered_json FabricRoot::status(const control::StatusIn* part) const {
  return drivers::status(state_->core, part);
}

}  // namespace ib::drivers
