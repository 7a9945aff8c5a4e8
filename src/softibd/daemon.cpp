// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon.h"

#include "drivers/diagnostics/status.h"
#include "platform/level.h"
#include "softibd/connections_json.h"
#include "softibd/device_files/umad_json.h"
#include "softibd/manager_requests.h"
#include "verbs/link_layer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace ib::softib {

Result<std::unique_ptr<Daemon>> Daemon::create(const DaemonOptions& options, DaemonLog& log,
                                               std::string& reason) {
  require_passive("Daemon::create");
  std::unique_ptr<Daemon> self(new Daemon(options, log));
  IB_CHECK(self->build(reason));
  return self;
}

Daemon::Daemon(const DaemonOptions& options, DaemonLog& log)
    : options_(options),
      log_(log),
      stream_sockets_(loop_, make_seed()),
      clients_(*this, loop_, log, [this] { on_clients_changed(); }),
      idle_(
          loop_, options, [this] { return !clients_.empty(); },
          [this](const std::string& why) { begin_end(why); }) {}

Daemon::~Daemon() = default;

Status Daemon::build(std::string& reason) {
  FabricConfig config;
  IB_CHECK(make_fabric(options_, config, fabric_, reason));
  // The lock comes first: a second softibd must not make device memory.
  auto directory = os::ServerDirectory::claim(options_.runtime_dir, options_.fabric, reason);
  if (!directory) return directory.error();
  directory_ = *std::move(directory);
  IB_CHECK(build_devices(config, reason));
  shutdown_ = std::make_unique<DaemonShutdown>(loop_, log_, clients_, *devices_, verify_.get());
  return add_partitions(options_, config, *fabric_.model, devices_->tree().core(), reason);
}

Status Daemon::build_devices(const FabricConfig& config, std::string& reason) {
  drivers::SoftHcaOptions hca_options;
  hca_options.max_memory = options_.max_memory;
  hca_options.on_trace = [this](std::string_view line) { log_.info(line); };
  platform::DeviceMemoryHost* memory = &memory_;
  if (options_.verify != Verify::Off) {
    verify_ = std::make_unique<DaemonVerify>(options_, loop_, memory_, log_);
    hca_options.fault = verify_->faults();
    memory = &verify_->memory();
  }
  drivers::FabricTreeOptions tree_options;
  IB_CHECK(make_tree_options(config, log_, tree_options, reason));
  auto devices = DaemonDevices::create(loop_, *fabric_.model, *memory, stream_sockets_,
                                       std::move(hca_options), std::move(tree_options), reason);
  if (!devices) return devices.error();
  devices_ = *std::move(devices);
  devices_->set_on_process_ended([this](std::uint64_t process) { clients_.end_services(process); });
  if (verify_ != nullptr) verify_->watch(*devices_);
  const bool has_managers =
      options_.shape.management == fabric::SubnetManagement::Softib && !options_.managers.is_direct;
  if (!has_managers) return Status::Ok;
  services::SubnetManagers::Options managers;
  IB_CHECK(make_manager_options(options_, *fabric_.model, log_, managers, reason));
  devices_->add_subnet_managers(std::move(managers));
  return Status::Ok;
}

DaemonExit Daemon::run() {
  idle_.begin();
  directory_->write_pid();
  devices_->tree().begin([this] { on_ready(); });
  loop_.run();
  log_.info("fabric " + options_.fabric + " is down");
  return shutdown_->exit();
}

// All devices have started or failed. Clients that came meanwhile wait at the socket, also for the
// subnet to be set up.
void Daemon::on_ready() {
  if (shutdown_->has_begun()) return;
  const services::SubnetManagers* const managers = devices_->subnet_managers();
  if (managers != nullptr && !managers->is_settled() && setup_.left > 0) {
    --setup_.left;
    setup_.timer = loop_.at(loop_.now() + std::chrono::milliseconds(1), [this] { on_ready(); });
    return;
  }
  clients_.listen(directory_->take_listener());
  log_.info("fabric " + options_.fabric +
            " is up: " + count_of(fabric_.model->nodes().size(), "node") + ", " +
            count_of(fabric_.model->graph().port_count(), "port") + "; socket " + socket_path());
  start_opensm();
  idle_.consider();
}

void Daemon::start_opensm() {
  if (options_.opensm.empty()) return;
  std::string reason;
  auto program = ManagerProgram::start(options_, fabric_.model->nodes().front().name, log_, reason);
  if (program) {
    opensm_ = *std::move(program);
  } else {
    log_.error(reason);
  }
}

void Daemon::on_child_ended() {
  if (opensm_ != nullptr) opensm_->on_child_ended();
}

void Daemon::stop(const std::string& why) {
  loop_.post([this, why] { begin_end(why); });
}

Result<io::DeviceObject*> Daemon::resolve(const std::string& node, const std::string& path,
                                          std::string& reason) {
  return devices_->tree().resolve(node, path, reason);
}

// The state that the drivers report, and the daemon's own.
Result<os::NativeHandle> Daemon::make_status(const verbs::control::StatusIn* part,
                                             std::string& reason) {
  using Json = nlohmann::ordered_json;
  Json connections = connections_json(*fabric_.model, devices_->rdma_cm_device().list());
  add_streams(connections, devices_->tree().core(), devices_->streams().list());
  Json status = {{"fabric", options_.fabric},
                 {"link_layer", verbs::link_layer_name(options_.shape.link_layer)},
                 {"kept", idle_.keeps()},
                 {"connections", clients_.pids()},
                 {"rdma_cm", std::move(connections)},
                 {"umad", umad_json(*fabric_.model, devices_->umad_service())}};
  if (opensm_ != nullptr) {
    status["opensm"] = {
        {"pid", opensm_->pid()}, {"folder", opensm_->folder()}, {"end", opensm_->end()}};
  }
  if (options_.max_memory != 0) status["max_memory"] = options_.max_memory;
  if (!options_.topology.empty()) {
    status["topology"] = options_.topology;
    status["topology_digest"] = fabric_.topology_digest;
  }
  if (!options_.config.empty()) {
    status["config"] = options_.config;
    status["config_digest"] = fabric_.config_digest;
  }
  if (verify_ != nullptr) {
    status["verify"] = options_.verify == Verify::Faults ? "faults" : "on";
    status["verify_findings"] = verify_->findings();
  }
  Json of_drivers = devices_->root().status(part);
  for (const auto& [key, value] : of_drivers.items()) status[key] = std::move(value);
  for (Json& node : status["nodes"]) {
    const auto mode = fabric_.ipoib_modes.find(node["name"].get<std::string>());
    if (mode != fabric_.ipoib_modes.end()) node["ipoib_mode"] = ipoib_mode_name(mode->second);
  }
  status["shape"]["names_digest"] = fabric_.names_digest;
  status["programs"] = programs_json(clients_, status["pid"], status["clients"]);
  return memory_.make_text(drivers::json_text(status), reason);
}

Result<os::NativeHandle> Daemon::subnet_managers(const verbs::control::SmIn& in,
                                                 std::string& reason) {
  services::SubnetManagers* managers = devices_->subnet_managers();
  if (managers == nullptr) {
    reason = fmt::format(
        "fabric {} was started with --sm none, opensm or direct: softib has no "
        "subnet manager there",
        options_.fabric);
    return Status::NotSupported;
  }
  IB_CHECK(carry_out(in, *managers, reason));
  return memory_.make_text(drivers::json_text(managers_json(*fabric_.model, *managers)), reason);
}

Result<ProgramService> Daemon::service(const verbs::control::OpenServiceIn& in,
                                       const io::Client& client, std::string& reason) {
  return find_service(devices_->access_layer(), devices_->tree().core(), in, client, reason);
}

void Daemon::disconnect(io::FileObject& process) {
  if (verify_ != nullptr) verify_->report_leftovers(process);
  devices_->root().disconnect(process);
}

void Daemon::send_down(io::IrpRef irp) {
  verify_ != nullptr ? verify_->send(std::move(irp)) : SessionHost::send_down(std::move(irp));
}

void Daemon::on_close_asked(const io::FileObject& file) {
  if (verify_ != nullptr) verify_->report_leftovers(file);
}

void Daemon::keep(bool on) {
  if (idle_.keeps() != on)
    log_.info(on ? "stays without clients from now on" : "goes with its last client from now on");
  idle_.keep(on);
}

std::string Daemon::needed_by() const {
  if (idle_.keeps()) return "it stays until `softib down`";
  const std::size_t here = clients_.pids().size();
  return here <= 1 ? "" : count_of(here - 1, "other connection");
}

void Daemon::shut_down(const std::string& who) {
  stop("asked to by " + who);
}

// Deferred: the caller is a method of the session.
void Daemon::on_over(DaemonSession& session) {
  loop_.post([this, id = session.client().session] { clients_.remove(id); });
}

void Daemon::on_clients_changed() {
  if (clients_.empty()) shutdown_->on_no_clients();
  idle_.consider();
}

void Daemon::begin_end(const std::string& why) {
  if (shutdown_->has_begun()) return;
  const std::string left =
      clients_.empty() ? "" : fmt::format("; {}", count_of(clients_.size(), "connection"));
  log_.info(fmt::format("going down: {}{}", why, left));
  idle_.end();
  opensm_.reset();
  directory_->remove_socket();
  clients_.stop_listening();
  shutdown_->begin();
}

}  // namespace ib::softib
