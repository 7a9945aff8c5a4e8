// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon.h"

#include "drivers/soft_hca/pkey_table.h"
#include "hca/layout/tables.h"
#include "platform/level.h"
#include "setup/driver_store.h"
#include "setup/node_addresses.h"
#include "verbs/link_layer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace ib::softib {
namespace {

// One for each process that has a slot, and as many for those that only send queries.
constexpr std::size_t kMaxSessions = std::size_t{2} * hca::kMaxSlots;
// The time that the requests of clients may take to end during the teardown.
constexpr Duration kEndTimeLimit = std::chrono::seconds(5);

std::string count_of(std::size_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::create(const DaemonOptions& options, DaemonLog& log,
                                               std::string& reason) {
  require_passive("Daemon::create");
  std::unique_ptr<Daemon> self(new Daemon(options, log));
  IB_CHECK(self->build(reason));
  return self;
}

Daemon::~Daemon() = default;

Status Daemon::build(std::string& reason) {
  FabricConfig config;
  fabric::Shape shape = options_.shape;
  if (!options_.config.empty()) {
    auto read = read_fabric_config(options_.config, reason);
    if (!read) return read.error();
    config = *std::move(read);
    IB_CHECK(in_config(apply_link_layers(config, shape, reason), reason));
  }
  auto fabric = fabric::Fabric::create(shape);
  if (!fabric) {
    reason = fmt::format(
        "no fabric can have this shape: node names must be different, 1 to 63 letters, digits, "
        "'-', '_' or '.'; at most {} nodes, {} HCAs a node, {} ports an HCA",
        fabric::kMaxNodes, fabric::kMaxHcasPerNode, fabric::kMaxPortsPerHca);
    return fabric.error();
  }
  fabric_.emplace(*std::move(fabric));
  IB_CHECK(in_config(apply_addresses(config, *fabric_, reason), reason));
  IB_CHECK(in_config(apply_cables(config, *fabric_, reason), reason));
  // The lock comes first: a second softibd must not make device memory.
  auto directory = os::ServerDirectory::claim(options_.runtime_dir, options_.fabric, reason);
  if (!directory) return directory.error();
  directory_ = *std::move(directory);

  drivers::SoftHcaOptions hca_options;
  hca_options.max_memory = options_.max_memory;
  hca_options.on_trace = [this](std::string_view line) { log_.info(line); };
  build_verifier(hca_options);
  drivers::FabricTreeOptions tree_options;
  IB_CHECK(make_tree_options(config, tree_options, reason));
  auto devices = DaemonDevices::create(loop_, *fabric_, memory_host(), std::move(hca_options),
                                       std::move(tree_options), reason);
  if (!devices) return devices.error();
  devices_ = *std::move(devices);
  rdma_cm_ = std::make_unique<DaemonRdmaCm>(*fabric_, *devices_);
  if (verifier_ != nullptr) devices_->access_layer().verifier = &verifier_->device();
  return add_partitions(config, reason);
}

// Puts the name of the file before a mistake in it.
Status Daemon::in_config(Status status, std::string& reason) const {
  if (status != Status::Ok) reason.insert(0, options_.config + ":");
  return status;
}

Status Daemon::make_tree_options(const FabricConfig& config, drivers::FabricTreeOptions& options,
                                 std::string& reason) {
  options.loader = &modules_;
  options.children = config.children;
  options.network_namespace = network_namespace();
  if (config.drivers.empty()) return Status::Ok;
  std::vector<std::string> complaints;
  auto store = read_driver_store(config.drivers, complaints, reason);
  if (!store) return store.error();
  for (const std::string& complaint : complaints) log_.warn(complaint);
  options.modules = *std::move(store);
  return Status::Ok;
}

Status Daemon::add_partitions(const FabricConfig& config, std::string& reason) {
  for (const PartitionConfig& wanted : config.partitions) {
    const std::string what =
        options_.config + ":" + wanted.place + "[[partition]] " + wanted.name + ": ";
    fabric::Port* port = nullptr;
    fabric::Hca* owner = nullptr;
    for (fabric::Node& node : fabric_->nodes()) {
      const bool named =
          wanted.node.empty() ? &node == &fabric_->nodes().front() : node.name == wanted.node;
      for (fabric::Hca& hca : node.hcas) {
        if (!named || hca.name != wanted.ca || wanted.port < 1 || wanted.port > hca.ports.size()) {
          continue;
        }
        owner = &hca;
        port = &hca.ports[wanted.port - 1];
      }
    }
    if (port == nullptr) {
      reason = what + "there is no such port";
      return Status::NotFound;
    }
    drivers::Core& core = devices_->tree().core();
    const Status added =
        drivers::add_partition(core, *owner, *port, wanted.pkey, wanted.name, reason);
    if (added == Status::Ok) continue;
    reason.insert(0, what);
    return added;
  }
  return Status::Ok;
}

void Daemon::start_server() {
  os::ServerSocket::Options server;
  server.max_message = verbs::control::kMaxMessage;
  server.refusal = make_error_reply(0, Status::AccessDenied,
                                    "this softibd serves another user; start one of your own with "
                                    "`softib run`");
  server.has_room = [this] { return sessions_.size() < kMaxSessions; };
  server.on_client = [this](std::unique_ptr<os::ServerConnection> connection, os::PeerProcess) {
    add_session(std::move(connection));
  };
  server.on_problem = [this](const char* what) { log_.warn(what); };
  server_ =
      std::make_unique<os::ServerSocket>(loop_, directory_->take_listener(), std::move(server));
}

DaemonExit Daemon::run() {
  started_ = loop_.now();
  directory_->write_pid();
  devices_->tree().begin([this] { on_ready(); });
  loop_.run();
  log_.info("fabric " + options_.fabric + " is down");
  return exit_;
}

// All devices have started or failed. Clients that came meanwhile wait at the socket.
void Daemon::on_ready() {
  if (ending_) return;
  start_server();
  log_.info("fabric " + options_.fabric + " is up: " + count_of(fabric_->nodes().size(), "node") +
            ", " + count_of(fabric_->graph().port_count(), "port") + "; socket " + socket_path());
  consider_idleness();
}

void Daemon::stop(const std::string& why) {
  loop_.post([this, why] { begin_end(why); });
}

Result<io::DeviceObject*> Daemon::resolve(const std::string& node, const std::string& path,
                                          std::string& reason) {
  return devices_->tree().resolve(node, path, reason);
}

// The state that the drivers report, and the daemon's own.
Result<os::NativeHandle> Daemon::make_status(std::string& reason) {
  using Json = nlohmann::ordered_json;
  Json connections = Json::array();
  for (const auto& [id, session] : sessions_) {
    if (!session->client_has_gone()) connections.push_back(session->client().pid);
  }
  Json status = {{"fabric", options_.fabric},
                 {"link_layer", verbs::link_layer_name(options_.shape.link_layer)},
                 {"kept", options_.keep},
                 {"connections", connections},
                 {"rdma_cm", rdma_cm_->list()}};
  if (verifier_ != nullptr) {
    status["verify"] = options_.verify == Verify::Faults ? "faults" : "on";
    status["verify_findings"] = verifier_->findings();
  }
  const Json of_drivers = Json::parse(devices_->root().status_json());
  for (const auto& [key, value] : of_drivers.items()) status[key] = value;
  return memory_.make_text(status.dump(2, ' ', false, Json::error_handler_t::replace) + '\n',
                           reason);
}

void Daemon::keep(bool on) {
  if (options_.keep != on)
    log_.info(on ? "stays without clients from now on" : "goes with its last client from now on");
  options_.keep = on;
  consider_idleness();
}

std::string Daemon::needed_by() const {
  if (options_.keep) return "it stays until `softib down`";
  const auto here = std::ranges::count_if(
      sessions_, [](const auto& entry) { return !entry.second->client_has_gone(); });
  return here <= 1 ? "" : count_of(static_cast<std::size_t>(here - 1), "other connection");
}

void Daemon::shut_down(const std::string& who) {
  stop("asked to by " + who);
}

void Daemon::add_session(std::unique_ptr<os::ServerConnection> connection) {
  const std::uint64_t id = ++last_session_;
  auto session = std::make_unique<DaemonSession>(*this, std::move(connection), id);
  DaemonSession& started = *sessions_.emplace(id, std::move(session)).first->second;
  started.start();
  consider_idleness();
}

// Deferred: the caller is a method of the session.
void Daemon::on_over(DaemonSession& session) {
  loop_.post([this, id = session.client().session] {
    sessions_.erase(id);
    if (ending_ && sessions_.empty()) return close_services();
    consider_idleness();
  });
}

void Daemon::consider_idleness() {
  if (ending_) return;
  idle_timer_.reset();
  if (options_.keep || !sessions_.empty()) return;
  Instant when = loop_.now() + options_.idle_exit;
  // The program that started softibd may still have to connect; tools that only query do not count.
  if (!had_client_) when = std::max(when, started_ + options_.first_client);
  idle_timer_ = loop_.at(when, [this] {
    // One more turn of the loop: a client may be about to connect.
    loop_.post([this] {
      if (!options_.keep && sessions_.empty())
        begin_end(had_client_ ? "the last client has gone" : "no client has come");
    });
  });
}

void Daemon::begin_end(const std::string& why) {
  if (ending_) return;
  ending_ = true;
  const std::string left =
      sessions_.empty() ? "" : fmt::format("; {}", count_of(sessions_.size(), "connection"));
  log_.info(fmt::format("going down: {}{}", why, left));
  idle_timer_.reset();
  directory_->remove_socket();
  server_.reset();
  devices_->root().announce_shutdown();
  end_timer_ = loop_.at(loop_.now() + kEndTimeLimit, [this] { give_up(); });
  if (sessions_.empty()) return close_services();
  for (const auto& [id, session] : sessions_) session->end();
}

// Before the devices, whose files they have open.
void Daemon::close_services() {
  const auto done = [](io::Irp&, void* context) { static_cast<Daemon*>(context)->power_off(); };
  devices_->gsi().close(closing_services_.start(done, this));
}

// The devices go down in order, after all other requests.
void Daemon::power_off() {
  devices_->tree().shut_down([this] {
    if (const std::string users = devices_->tree().open_devices(); !users.empty()) {
      log_.error(
          "a driver keeps its clients of the access layer open; leaving all the same. Open: " +
          users);
      exit_ = DaemonExit::Stuck;
    }
    verifier_ != nullptr ? look_for_leftovers(0) : loop_.stop();
  });
}

void Daemon::give_up() {
  log_.error(
      sessions_.empty()
          ? "a driver does not answer a PnP or power request, so the devices cannot go down in "
            "order (`softib devices` shows where, while softibd runs); leaving all the same"
          : count_of(sessions_.size(), "connection") +
                " did not end: a driver keeps requests; leaving without them");
  if (verifier_ != nullptr) {
    for (const std::string& line : verifier_->under_way()) log_.error(line);
  }
  exit_ = DaemonExit::Stuck;
  loop_.stop();
}

}  // namespace ib::softib
