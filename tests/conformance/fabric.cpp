// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric.h"

#include "base/buffers.h"
#include "fabric/topology/node_names.h"
#include "linux/client/client_channel.h"
#include "setup/toml_topology.h"
#include "softibd/in_process_daemon.h"
#include "verbs/control.h"

#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <thread>
#include <vector>

namespace ib::conformance {
namespace {

// Switches first: ports have other indexes in the graph than in device memory then.
constexpr const char* kTree = R"(
[[switch]]
name = "leaf-east"
ports = 4
[[switch]]
name = "leaf-west"
ports = 4
[[switch]]
name = "spine0"
ports = 2
[[switch]]
name = "spine1"
ports = 2
[[hca]]
name = "east/softib0"
ports = 2
[[hca]]
name = "west/softib0"
ports = 2
[[cable]]
ends = ["leaf-east:1", "spine0:1"]
[[cable]]
ends = ["leaf-east:2", "spine1:1"]
[[cable]]
ends = ["leaf-west:1", "spine0:2"]
[[cable]]
ends = ["leaf-west:2", "spine1:2"]
[[cable]]
ends = ["leaf-east:3", "east/softib0:1"]
[[cable]]
ends = ["leaf-east:4", "east/softib0:2"]
[[cable]]
ends = ["leaf-west:3", "west/softib0:1"]
[[cable]]
ends = ["leaf-west:4", "west/softib0:2"]
)";

fabric::Shape tree_shape() {
  std::string reason;
  auto topology = softib::parse_toml_topology(kTree, reason);
  if (!topology) {
    std::fprintf(stderr, "the tree is no topology: %s\n", reason.c_str());
    std::abort();
  }
  fabric::Shape shape;
  shape.nodes = fabric::nodes_of(*topology);
  shape.topology = *std::move(topology);
  return shape;
}

}  // namespace

bool is_tree() {
  return std::getenv("SOFTIB_TREE") != nullptr;
}

struct TestFabric::State {
  std::unique_ptr<softib::InProcessDaemon> daemon;
};

fabric::Shape test_shape() {
  if (is_tree()) return tree_shape();
  fabric::Shape shape;
  shape.nodes = {kEast, kWest, kNorth, kSouth};
  shape.ports_per_hca = 2;
  shape.link_layers = {{kNorth, 0, verbs::LinkLayer::Ethernet},
                       {kSouth, 0, verbs::LinkLayer::Ethernet}};
  return shape;
}

TestFabric::TestFabric() : state_(std::make_unique<State>()) {
  softib::DaemonOptions options;
  options.keep = true;
  options.shape = test_shape();
  options.verify = softib::Verify::On;
  options.managers.is_direct = true;  // tests attach to groups that nobody has joined
  std::string reason;
  auto daemon = softib::InProcessDaemon::start(options, reason);
  if (!daemon) {
    std::fprintf(stderr, "softibd does not start: %s\n", reason.c_str());
    std::abort();
  }
  state_->daemon = *std::move(daemon);
}

TestFabric::~TestFabric() = default;

TestFabric& TestFabric::shared() {
  static TestFabric fabric;
  return fabric;
}

std::string TestFabric::socket() const {
  return state_->daemon->socket_path();
}

softib::InProcessDaemon& TestFabric::daemon() {
  return *state_->daemon;
}

std::string TestFabric::wait_until_empty() {
  return conformance::wait_until_empty(socket());
}

namespace {

std::string text_of(const std::string& socket, verbs::control::Code code,
                    std::span<const std::byte> in) {
  std::string reason;
  auto channel = os::connect_channel(socket, reason);
  if (!channel) return {};
  const std::size_t room =
      code == verbs::control::Code::ViewOpen ? sizeof(verbs::control::ViewStatOut) : 0;
  std::vector<std::byte> out(room);
  const platform::ControlReply reply =
      (*channel)->call(static_cast<std::uint32_t>(code), 0, in, out);
  struct stat file {};
  if (reply.status != Status::Ok || ::fstat(reply.handles[0].get(), &file) != 0) return {};
  std::string text(static_cast<std::size_t>(file.st_size), '\0');
  const ssize_t got = ::pread(reply.handles[0].get(), text.data(), text.size(), 0);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

}  // namespace

std::string status_of(const std::string& socket) {
  return text_of(socket, verbs::control::Code::Status, {});
}

std::uint64_t port_counter(const std::string& socket, const std::string& node,
                           const std::string& name) {
  verbs::control::ViewIn in;
  const std::string path = "/sys/class/infiniband/softib0/ports/1/counters/" + name;
  node.copy(in.node.data(), in.node.size() - 1);
  path.copy(in.path.data(), in.path.size() - 1);
  const std::string text = text_of(socket, verbs::control::Code::ViewOpen, bytes_of(in));
  return text.empty() ? 0 : std::stoull(text);
}

std::string living_objects(const std::string& status_json) {
  const auto status = nlohmann::json::parse(status_json, nullptr, false);
  if (status.is_discarded() || !status.contains("objects")) return "no status: " + status_json;
  std::string left;
  for (const auto& [kind, count] : status["objects"].items()) {
    if (count != 0) left += std::to_string(count.get<std::uint64_t>()) + " " + kind + " ";
  }
  if (!status["clients"].empty()) left += std::to_string(status["clients"].size()) + " clients ";
  return left;
}

namespace {

// Reads the status until `left_in` finds nothing in it, 20 s at most; returns what it has found
// last.
std::string wait_until_none(const std::string& socket,
                            std::string (*left_in)(const std::string& status_json)) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    const std::string left = left_in(status_of(socket));
    if (left.empty() || std::chrono::steady_clock::now() > end) return left;
    std::this_thread::yield();
  }
}

std::string programs_of_tests(const std::string& status_json) {
  const auto status = nlohmann::json::parse(status_json, nullptr, false);
  if (status.is_discarded()) return "no status";
  std::string left;
  for (const auto& client : status["clients"]) {
    const auto program = client["program"].get<std::string>();
    if (program.starts_with("conformance")) left += "client " + program + " ";
  }
  if (!status["rdma_cm"].empty()) left += status["rdma_cm"].dump();
  return left;
}

}  // namespace

std::string wait_until_empty(const std::string& socket) {
  return wait_until_none(socket, living_objects);
}

std::string wait_until_left(const std::string& socket) {
  return wait_until_none(socket, programs_of_tests);
}

}  // namespace ib::conformance
