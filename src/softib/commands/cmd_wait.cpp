// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib wait: until a program of the fabric listens, for scripts that start a server and then its
// client.
#include "setup/runtime_dir.h"
#include "softib/commands/command.h"
#include "softib/pages/fabric_state.h"
#include "softib/pages/listeners.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace ib::softib {
namespace {

using Clock = std::chrono::steady_clock;

struct WaitOptions {
  std::string fabric;
  std::uint32_t port = 0;
  std::string node;
  std::uint32_t seconds = 30;
  bool verbose = false;
};

// A look at the fabric; it may not be up yet.
struct Look {
  bool is_up = false;
  std::vector<Listener> listeners;
};

// Throws CliError(NotFound) if the fabric has no such node.
Look look(const WaitOptions& options, Wanted& wanted) {
  Look found;
  std::optional<ControlClient> client = ControlClient::connect(wanted.socket);
  if (!client) return found;
  found.is_up = true;
  const Json state = ask_state_without_nodes(*client);
  if (!options.node.empty()) wanted.node = ask_node(*client, options.node, options.fabric);
  found.listeners = rdma_listeners(state, wanted.socket);
  for (Listener& one : tcp_listeners(state, wanted.socket)) found.listeners.push_back(one);
  return found;
}

std::string goal(const WaitOptions& options) {
  return fmt::format("port {}{}", options.port,
                     options.node.empty() ? "" : " of node " + options.node);
}

[[noreturn]] void give_up(const WaitOptions& options, const Wanted& wanted, Look last) {
  if (!last.is_up) {
    throw CliError(Exit::NotUp,
                   fmt::format("fabric \"{}\" did not come up within {} s (nobody listens on {})",
                               options.fabric, options.seconds, wanted.socket));
  }
  throw CliError(Exit::Failed,
                 fmt::format("nobody listens on {} of fabric \"{}\" after {} s{}", goal(options),
                             options.fabric, options.seconds, hint_of(last.listeners, wanted)));
}

// One line, for a person who waits with it.
void show_progress(const WaitOptions& options, bool is_up) {
  complain(fmt::format("waiting up to {} s for {} on {}", options.seconds,
                       is_up ? "a program that listens" : "the fabric, and a program that listens",
                       goal(options)));
}

// Those that are in softibd's state come first in the list.
const Listener* find_listener(const std::vector<Listener>& all, const Wanted& wanted) {
  const auto found =
      std::ranges::find_if(all, [&](const Listener& one) { return is_wanted(one, wanted); });
  return found != all.end() ? &*found : nullptr;
}

void wait_for_listener(const WaitOptions& options) {
  constexpr auto kQuiet = std::chrono::seconds(1);
  constexpr auto kSwitch = std::chrono::seconds(1);  // a program may never wait for its clients
  const std::string dir = choose_runtime_dir(Surroundings::of_this_process());
  Wanted wanted;
  wanted.port = static_cast<std::uint16_t>(options.port);
  wanted.socket = fabric_files(dir, options.fabric).socket;
  const Clock::time_point start = Clock::now();
  std::optional<Clock::duration> first_seen;
  bool is_told = options.verbose ? false : ::isatty(STDERR_FILENO) == 0;
  for (;;) {
    Look now = look(options, wanted);
    const auto waited = Clock::now() - start;
    const bool is_over = waited >= std::chrono::seconds(options.seconds);
    const Listener* it = find_listener(now.listeners, wanted);
    if (it != nullptr && it->is_switched && !is_over &&
        waited < first_seen.value_or(waited) + kSwitch) {
      first_seen = first_seen.value_or(waited);  // soon it has told softibd
      it = nullptr;
    }
    if (it != nullptr) {
      if (options.verbose) {
        complain(fmt::format("{} listens on port {} of {} ({})", name_of(*it), it->port, it->node,
                             it->how));
      }
      return;
    }
    if (is_over) give_up(options, wanted, std::move(now));
    if (!is_told && waited >= kQuiet) {
      show_progress(options, now.is_up);
      is_told = true;
    }
    // A look reads tables of the kernel; the pause grows with the time that was waited.
    const auto pause = std::chrono::duration_cast<std::chrono::milliseconds>(waited / 10);
    std::this_thread::sleep_for(
        std::clamp(pause, std::chrono::milliseconds(5), std::chrono::milliseconds(100)));
  }
}

}  // namespace

void add_wait(CLI::App& app, Context&) {
  Command command(app, "wait", "wait until a program listens, for scripts");
  auto options = std::make_shared<WaitOptions>();
  add_fabric_option(command, options->fabric);
  command.option("-l,--listen", options->port, "a port of librdmacm, or the TCP port of a server")
      .required()
      .whole_number(1, 65535)
      .placeholder("PORT");
  command.option("-n,--node", options->node, "on this node only: number or name")
      .placeholder("N|NAME");
  command.option("-t,--timeout", options->seconds, "how long")
      .whole_number(0, 86400)
      .placeholder("SECONDS [30]");
  command.flag("-v,--verbose", options->verbose, "say which program it is");
  command.footer(
      "The fabric need not be up yet. Exit code 1 if nobody listens in time, with the\n"
      "programs that listen elsewhere; 3: no such node; 5: the fabric did not come up.\n"
      "perftest listens on TCP port 18515, ibv_rc_pingpong too, rping on 7174.\n"
      "\nExamples:\n"
      "  softib run --nodes 2 -- ib_send_lat &\n"
      "  softib wait --listen 18515 && softib run --node 1 -- ib_send_lat node0");
  command.callback([options] { wait_for_listener(*options); });
}

}  // namespace ib::softib
