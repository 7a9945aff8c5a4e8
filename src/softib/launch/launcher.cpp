// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/launcher.h"

#include "base/buffers.h"
#include "setup/cli_error.h"
#include "setup/last_death.h"
#include "setup/node_addresses.h"
#include "softib/launch/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace ib::softib {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTimeLimit{20};

// Waits for the lock of another; invalid once `deadline` has passed. LOCK_NB and sleep instead of
// blocking, since flock() has no time limit.
Fd lock_file(const std::string& path, int flags, Clock::time_point deadline) {
  Fd file = make_fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file.valid()) return file;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || Clock::now() > deadline) {
      file.reset();
      return file;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return file;
}

// A connection that has been answered once: a daemon that is about to exit may still accept.
std::optional<ControlClient> connect_alive(
    const std::string& socket, std::chrono::milliseconds limit = std::chrono::seconds(10)) {
  std::optional<ControlClient> client = ControlClient::connect(socket);
  if (!client) return std::nullopt;
  const ControlAnswer answer = client->call(verbs::control::Code::Ping, {}, limit);
  if (answer.status == Status::Disconnected) return std::nullopt;
  if (answer.status != Status::Ok) throw CliError(Exit::Daemon, answer.reason);
  return client;
}

std::vector<std::string> command_line(const LaunchPlan& plan, const Installation& installation,
                                      const FabricFiles& files) {
  std::vector<std::string> words{installation.daemon(), "--fabric", plan.fabric, "--runtime-dir",
                                 plan.runtime_dir,      "--log",    files.log};
  const auto add = [&](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(value);
  };
  if (!plan.shape.topology.empty()) {
    add("--topology", plan.shape.topology);
  } else {
    for (const std::string& node : plan.shape.node_names()) add("--node", node);
  }
  if (!plan.shape.management.empty()) {
    add("--sm", plan.shape.management == "opensm" ? "none" : plan.shape.management);
  }
  if (!plan.shape.opensm.empty()) add("--opensm", plan.shape.opensm);
  if (plan.shape.sm_priority) add("--sm-priority", std::to_string(*plan.shape.sm_priority));
  if (plan.shape.lmc) add("--lmc", std::to_string(*plan.shape.lmc));
  if (!plan.shape.routing.empty()) add("--routing", plan.shape.routing);
  if (!plan.shape.partitions.empty()) add("--partitions", plan.shape.partitions);
  if (plan.shape.hcas) add("--hcas", std::to_string(*plan.shape.hcas));
  if (plan.shape.ports) add("--ports", std::to_string(*plan.shape.ports));
  if (!plan.shape.link_layer.empty()) add("--link-layer", plan.shape.link_layer);
  if (plan.shape.max_memory) add("--max-memory", std::to_string(*plan.shape.max_memory));
  if (!plan.shape.config.empty()) add("--config", plan.shape.config);
  if (!plan.shape.verify.empty()) {
    words.push_back("--verify=" + plan.shape.verify);
    add("--verify-seed", std::to_string(plan.shape.verify_seed));
  }
  if (plan.keep) {
    words.emplace_back("--keep");
  } else {
    add("--idle-exit", std::to_string(plan.idle_exit));
  }
  return words;
}

std::string indented(const std::string& text) {
  std::string result;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    result += "  | " + text.substr(start, end - start) + "\n";
    start = end + 1;
  }
  return result;
}

// A daemon on its way out has removed its socket but still holds its lock; wait for it.
void wait_for_predecessor(const FabricFiles& files, Clock::time_point deadline) {
  if (::access(files.lock.c_str(), F_OK) != 0) return;
  if (lock_file(files.lock, O_RDWR, deadline).valid()) return;
  if (errno != EWOULDBLOCK) return;  // softibd will report the mistake in the file
  throw CliError(Exit::Daemon, fmt::format("another softibd holds {} but does not listen on {}\n"
                                           "  Find it with: fuser {}; end it, then try again.",
                                           files.lock, files.socket, files.lock));
}

// Returns the size that the log had before.
std::size_t start(const LaunchPlan& plan, const Installation& installation,
                  const FabricFiles& files) {
  require_daemon(installation);
  const std::vector<std::string> words = command_line(plan, installation, files);
  const DaemonStart outcome = start_daemon(words, files.log, kTimeLimit);
  if (outcome.ready) return outcome.log_size_before;
  const std::string log =
      outcome.explained ? "" : last_lines(files.log, 8, outcome.log_size_before);
  const std::string limits = tight_limits();
  std::string text = fmt::format("softibd did not start: {}\n", outcome.failure);
  if (!log.empty()) text += fmt::format("  The end of {}:\n{}", files.log, indented(log));
  if (!limits.empty()) text += fmt::format("  Limits that may be the reason: {}\n", limits);
  text += "  `softib doctor` checks this machine.";
  throw CliError(limits.empty() ? Exit::Daemon : Exit::Resources, text);
}

}  // namespace

Fd take_turn(const std::string& runtime_dir) {
  Fd turn = lock_file(runtime_dir, O_RDONLY | O_DIRECTORY, Clock::now() + kTimeLimit);
  if (turn.valid()) return turn;
  const int error = errno;
  throw CliError(Exit::Daemon, fmt::format("cannot lock {}: {}", runtime_dir,
                                           error == EWOULDBLOCK ? "another softib holds the lock"
                                                                : std::strerror(error)));
}

Launched connect_or_start(const LaunchPlan& plan, const Installation& installation) {
  const FabricFiles files = fabric_files(plan.runtime_dir, plan.fabric);
  if (auto client = connect_alive(files.socket)) return {std::move(*client), false};

  const Clock::time_point deadline = Clock::now() + kTimeLimit;
  const Fd turn = take_turn(plan.runtime_dir);
  if (auto client = connect_alive(files.socket)) return {std::move(*client), false};
  wait_for_predecessor(files, deadline);
  const std::size_t log_size = start(plan, installation, files);
  // It answers when its subnets are set up.
  if (auto client = connect_alive(files.socket, kLimitOfAll)) return {std::move(*client), true};
  const std::string death = last_death(files.log, log_size);
  throw CliError(Exit::Daemon,
                 fmt::format("softibd started and {}; the end of {}:\n{}",
                             death.empty() ? "ended at once" : "crashed: " + death, files.log,
                             indented(last_lines(files.log, 8, log_size))));
}

bool replace_unused(Launched& fabric, const LaunchPlan& plan, const Installation& installation) {
  if (fabric.started) return false;
  const verbs::control::KeepIn now{0, 1};
  const ControlAnswer answer = fabric.client.call(verbs::control::Code::Keep, bytes_of(now));
  if (answer.status == Status::DeviceBusy) return false;
  if (answer.status != Status::Ok && answer.status != Status::Disconnected)
    throw CliError(Exit::Daemon, "cannot end the fabric that is up: " + answer.reason);
  // It has removed its socket before it closes this connection.
  while (fabric.client.call(verbs::control::Code::Ping).status == Status::Ok) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  fabric = connect_or_start(plan, installation);
  return true;
}

std::string tell_addresses(ControlClient& client, const std::string& node) {
  verbs::control::SetAddressesIn in;
  put_text(in.node, node);
  in.network_namespace = network_namespace();
  for (const Interface& interface : host_addresses()) {
    if (in.count == in.addresses.size()) break;
    in.addresses[in.count].ip = interface.ip;
    put_text(in.addresses[in.count++].interface, interface.name);
  }
  const ControlAnswer answer = client.call(verbs::control::Code::SetAddresses, bytes_of(in));
  if (answer.status == Status::Ok) return {};
  return fmt::format("programs on {} may not be found by address: {}", node, answer.reason);
}

}  // namespace ib::softib
