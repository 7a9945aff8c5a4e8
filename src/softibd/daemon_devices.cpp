// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_devices.h"

#include "drivers/soft_hca/handlers.h"
#include "linux/client/client_host.h"
#include "softibd/device_files/rdma_cm_options.h"

#include <functional>
#include <random>
#include <thread>
#include <utility>

namespace ib::softib {

// Two softibd, or one and its successor, must not count transactions alike.
std::uint64_t make_seed() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

namespace {

auto line_of_drops(drivers::Trace& trace) {
  return [&trace](std::string line, std::uint32_t times) {
    drivers::TraceEntry entry;
    entry.kind = drivers::TraceKind::Refused;
    entry.text = std::move(line);
    entry.count = times;
    trace.add(std::move(entry));
  };
}

services::Gsi::Options gsi_options(drivers::Core& core) {
  services::Gsi::Options options;
  options.seed = make_seed();
  options.on_drop = line_of_drops(core.trace);
  options.element_agents = &core.gmp_agents;
  return options;
}

void set_is_sm(drivers::Core& core, fabric::Port& port, bool is_sm) {
  const fabric::Hca* hca = std::as_const(core.fabric).hca_of(port);
  const std::uint32_t others = port.capability_mask & ~fabric::kIsSm;
  drivers::set_capabilities(core, *hca, port, is_sm ? others | fabric::kIsSm : others);
}

}  // namespace

DaemonDevices::~DaemonDevices() {
  if (tree_ != nullptr) tree_->core().on_process_ended = {};
  if (smi_ == nullptr) return;
  smi_->set_local_manager(nullptr);
  sa_service_->set_manager_view(nullptr);
  sa_service_->set_on_members({});
  managers_.reset();
  tree_->core().on_port_changes = {};
  tree_->core().on_key_violation = {};
}

Result<std::unique_ptr<DaemonDevices>> DaemonDevices::create(
    platform::Executor& executor, fabric::Fabric& fabric, platform::DeviceMemoryHost& memory,
    platform::StreamHost& stream_host, drivers::SoftHcaOptions hca_options,
    drivers::FabricTreeOptions tree_options, std::string& reason) {
  std::unique_ptr<DaemonDevices> self(new DaemonDevices(executor, fabric));
  auto hcas = drivers::SoftHca::create(executor, fabric, memory, std::move(hca_options), reason);
  if (!hcas) return hcas.error();
  self->hcas_ = *std::move(hcas);
  tree_options.loader = &self->modules_;
  auto tree = drivers::FabricTree::create(*self->hcas_, std::move(tree_options), reason);
  if (!tree) return tree.error();
  self->tree_ = *std::move(tree);
  self->root_ =
      std::make_unique<drivers::FabricRoot>(*self->tree_, std::thread::hardware_concurrency());
  drivers::FabricTree& names = *self->tree_;
  self->access_layer_ = std::make_unique<al::System>(
      al::System{executor, os::client_host(), self->root_->device(),
                 [&names](std::string_view node, std::string_view path, std::string& why) {
                   return names.resolve(node, path, why);
                 },
                 names.core().arena()});
  io::TypedPointer services;
  services.set(self->access_layer_.get());
  names.set_services(services);
  self->gsi_ =
      std::make_unique<services::Gsi>(*self->access_layer_, fabric, gsi_options(names.core()));
  services::Gsi& gsi = *self->gsi_;
  auto agents = services::ElementAgents::create(gsi, fabric, names.core().gmp_agents, reason);
  if (!agents) return agents.error();
  self->element_agents_ = *std::move(agents);
  names.set_removal_hooks(
      {[&gsi, &devices = *self](const fabric::Hca& hca, std::function<void()> go) {
         devices.streams_->let_go(
             hca, [&gsi, &hca, go = std::move(go)] { gsi.let_go(hca, std::move(go)); });
       },
       [&gsi, &devices = *self](const fabric::Hca& hca) {
         gsi.let_back(hca);
         devices.streams_->let_back(hca);
       }});
  self->cm_ = std::make_unique<services::CmService>(
      executor, fabric, gsi, [] { return static_cast<std::uint32_t>(make_seed()); });
  self->cm_->set_on_drop(line_of_drops(names.core().trace));
  self->cm_device_ = std::make_unique<services::CmDevice>(*self->cm_);
  self->access_layer_->cm = &self->cm_device_->device();
  self->sa_service_ =
      std::make_unique<services::SaService>(gsi, fabric, executor, services::SaService::Options{});
  auto client = services::GsiSaClient::create(gsi, *self->sa_service_, fabric, executor,
                                              services::GsiSaClient::Options{}, reason);
  if (!client) return client.error();
  self->sa_ = *std::move(client);
  self->sa_device_ = std::make_unique<services::SaDevice>(*self->sa_, gsi, fabric, executor);
  self->access_layer_->sa = &self->sa_device_->device();
  self->umad_service_ = std::make_unique<services::UmadService>(executor, fabric, gsi);
  self->umad_device_ = std::make_unique<services::UmadDevice>(
      *self->umad_service_, gsi, fabric,
      [&sa = *self->sa_service_](io::IrpRef irp) { sa.open(std::move(irp)); });
  drivers::Core& core = names.core();
  self->umad_device_->set_is_sm_by(
      [&devices = *self](const fabric::Hca& /*hca*/, fabric::Port& port, bool is_sm) {
        if (is_sm && devices.managers_ != nullptr) devices.managers_->make_room_at(port);
        set_is_sm(devices.tree_->core(), port, is_sm);
      });
  self->smi_ =
      std::make_unique<services::SmiService>(core.smi, fabric, executor, *self->umad_service_);
  self->follow_changes();
  self->make_rdma_cm();
  self->make_streams(stream_host);
  return self;
}

void DaemonDevices::follow_changes() {
  drivers::Core& core = tree_->core();
  core.on_port_changes = [this](const fabric::PortChanges& changes) {
    smi_->on_changes(changes);
    if (managers_ != nullptr) managers_->on_changes(changes);
  };
  core.on_key_violation = [this](const fabric::KeyViolation& violation, const fabric::Port& at) {
    smi_->on_key_violation(violation, at);
  };
}

void DaemonDevices::add_subnet_managers(services::SubnetManagers::Options options) {
  drivers::Core& core = tree_->core();
  managers_ = std::make_unique<services::SubnetManagers>(
      core.smi, fabric_, executor_,
      [&core](fabric::Port& port, bool is_sm) { set_is_sm(core, port, is_sm); },
      std::move(options));
  smi_->set_local_manager(managers_.get());
  sa_service_->set_manager_view(managers_.get());
  sa_service_->set_on_members([this](const sa::Groups& groups) {
    managers_->set_groups(services::multicast_groups(groups));
  });
}

void DaemonDevices::make_rdma_cm() {
  connector_ = std::make_unique<services::rdma_cm::CmConnector>(*cm_);
  routes_ = std::make_unique<services::rdma_cm::SaRoutes>(*sa_, executor_);
  const auto random = [numbers = std::make_shared<std::mt19937>(std::random_device{}())] {
    return static_cast<std::uint32_t>((*numbers)());
  };
  rdma_cm_device_ = std::make_unique<services::rdma_cm::RdmaCmDevice>(
      services::rdma_cm::RdmaCmDevice::Parts{fabric_, executor_, *connector_, *routes_, *cm_,
                                             *cm_device_},
      rdma_cm_options(executor_, tree_->core(), random));
}

void DaemonDevices::make_streams(platform::StreamHost& host) {
  drivers::Core& core = tree_->core();
  stream_connector_ = std::make_unique<services::rdma_cm::CmConnector>(
      *cm_, services::StreamService::service_ids());
  services::StreamServiceOptions options;
  options.random = [numbers = std::make_shared<std::mt19937>(std::random_device{}())] {
    return static_cast<std::uint32_t>((*numbers)());
  };
  options.program_of = [&core](std::uint64_t session) {
    const auto at = core.sessions.find(session);
    return at != core.sessions.end() ? at->second->program : std::string();
  };
  options.on_refused = [&core](const services::StreamRefusal& refusal) {
    drivers::TraceEntry entry;
    entry.kind = drivers::TraceKind::Refused;
    entry.text = refusal.text;
    entry.node = refusal.node;
    entry.pid = refusal.pid;
    const auto session = core.sessions.find(refusal.session);
    if (session != core.sessions.end()) entry.program = session->second->program;
    entry.peer = refusal.peer;
    core.trace.add(std::move(entry));
  };
  streams_ = std::make_unique<services::StreamService>(
      services::StreamService::Parts{*access_layer_, fabric_, *stream_connector_, *routes_, host},
      std::move(options));
  core.on_process_ended = [this](std::uint64_t session, std::uint32_t slot) {
    streams_->on_process_ended(session, slot);
    if (on_process_ended_) on_process_ended_(session);
  };
}

}  // namespace ib::softib
