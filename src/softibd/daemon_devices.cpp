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
namespace {

// Two softibd, or one and its successor, must not count transactions alike.
std::uint64_t make_seed() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

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

}  // namespace

DaemonDevices::~DaemonDevices() {
  if (smi_ == nullptr) return;
  tree_->core().on_port_changes = {};
  tree_->core().on_key_violation = {};
}

Result<std::unique_ptr<DaemonDevices>> DaemonDevices::create(
    platform::Executor& executor, fabric::Fabric& fabric, platform::DeviceMemoryHost& memory,
    drivers::SoftHcaOptions hca_options, drivers::FabricTreeOptions tree_options,
    std::string& reason) {
  std::unique_ptr<DaemonDevices> self(new DaemonDevices(executor));
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
      {[&gsi](const fabric::Hca& hca, std::function<void()> go) { gsi.let_go(hca, std::move(go)); },
       [&gsi](const fabric::Hca& hca) { gsi.let_back(hca); }});
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
  self->umad_device_->set_is_sm_by([&core](const fabric::Hca& hca, fabric::Port& port, bool is_sm) {
    const std::uint32_t others = port.capability_mask & ~fabric::kIsSm;
    drivers::set_capabilities(core, hca, port, is_sm ? others | fabric::kIsSm : others);
  });
  self->smi_ =
      std::make_unique<services::SmiService>(core.smi, fabric, executor, *self->umad_service_);
  core.on_port_changes = [&smi = *self->smi_](const fabric::PortChanges& changes) {
    smi.on_changes(changes);
  };
  core.on_key_violation = [&smi = *self->smi_](const fabric::KeyViolation& violation,
                                               const fabric::Port& at) {
    smi.on_key_violation(violation, at);
  };
  self->make_rdma_cm(executor, fabric);
  return self;
}

void DaemonDevices::make_rdma_cm(platform::Executor& executor, const fabric::Fabric& fabric) {
  connector_ = std::make_unique<services::rdma_cm::CmConnector>(*cm_);
  routes_ = std::make_unique<services::rdma_cm::SaRoutes>(*sa_, executor);
  const auto random = [numbers = std::make_shared<std::mt19937>(std::random_device{}())] {
    return static_cast<std::uint32_t>((*numbers)());
  };
  rdma_cm_device_ = std::make_unique<services::rdma_cm::RdmaCmDevice>(
      services::rdma_cm::RdmaCmDevice::Parts{fabric, executor, *connector_, *routes_, *cm_,
                                             *cm_device_},
      rdma_cm_options(executor, tree_->core(), random));
}

}  // namespace ib::softib
