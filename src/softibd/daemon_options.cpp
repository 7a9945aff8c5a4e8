// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_options.h"

#include "setup/fabric_config.h"
#include "setup/fabric_shape.h"
#include "setup/runtime_dir.h"
#include "verbs/link_layer.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

namespace ib::softib {
namespace {

constexpr const char* kFooter = R"(
softibd is started by `softib run` and `softib up`; there is seldom a reason to call it by hand.
Without --foreground and --ready-fd it goes to the background once clients can connect.
It ends when its last client has gone (unless --keep), at `softib down`, SIGTERM or SIGINT.

Exit codes:
  0 ended in order   1 could not start   2 bad command line   3 the fabric is already up
  4 had to leave while requests were still under way (please report this)
  5 --verify has found something: the log tells
Files in the runtime directory: NAME.sock (clients connect here), NAME.lock (held while softibd
runs; contains its pid), NAME.log, NAME.1.log, NAME.2.log.
)";

struct Texts {
  std::uint32_t node_count = 0;
  std::vector<std::string> nodes;
  std::string link_layer = "infiniband";
  double idle_exit_seconds = 0.3;
  std::string verify;
  std::string management = "softib";
  std::optional<std::string> max_memory;
};

void add_options(CLI::App& app, DaemonOptions& options, Texts& texts) {
  app.add_option("--fabric", options.fabric, "name of the fabric")->capture_default_str();
  app.add_option("--runtime-dir", options.runtime_dir,
                 "directory of the socket, lock and log; made with mode 0700 if missing")
      ->option_text("DIR [$SOFTIB_RUNTIME_DIR, $XDG_RUNTIME_DIR/softib or /tmp/softib-<uid>]");
  auto* count = app.add_option("--nodes", texts.node_count, "virtual hosts: node0, node1, ...")
                    ->check(CLI::Range(1u, fabric::kMaxNodes))
                    ->option_text("N [1]");
  app.add_option("--node", texts.nodes, "name of a virtual host; may be repeated")
      ->take_all()
      ->excludes(count)
      ->option_text("NAME");
  app.add_option("--hcas", options.shape.hcas_per_node, "HCAs of each node")
      ->check(CLI::Range(1u, fabric::kMaxHcasPerNode))
      ->option_text("N [1]");
  app.add_option("--ports", options.shape.ports_per_hca, "ports of each HCA")
      ->check(CLI::Range(1u, fabric::kMaxPortsPerHca))
      ->option_text("N [1]");
  app.add_option("--link-layer", texts.link_layer, "ports of HCAs: infiniband or ethernet")
      ->check(CLI::IsMember({"infiniband", "ethernet"}))
      ->option_text("LAYER [infiniband]");
  app.add_option("--topology", options.topology,
                 "switches and cables: a preset such as fat-tree:hcas=648,ports=36, or a file of "
                 "ibnetdiscover or ibsim; its channel adapters are the nodes")
      ->excludes(count)
      ->option_text("PRESET|FILE");
  app.add_option(
         "--sm", texts.management,
         "softib manages subnets until a program does; direct: without a subnet manager that "
         "others see; or none: ports wait in state Init")
      ->check(CLI::IsMember({"softib", "direct", "none"}))
      ->option_text("WHO [softib]");
  app.add_option("--opensm", options.opensm,
                 "start this OpenSM at the first node, and end it with the fabric")
      ->option_text("PROGRAM");
  app.add_option("--sm-priority", options.managers.priority,
                 "softib's subnet manager stays when a program's comes, with this priority")
      ->check(CLI::Range(0, 15))
      ->option_text("N");
  app.add_option("--lmc", options.managers.lmc, "each port of an HCA has 2^N LIDs")
      ->check(CLI::Range(0, 7))
      ->option_text("N [0]");
  app.add_option("--routing", options.managers.routing, "how softib's subnet manager routes")
      ->check(CLI::IsMember({"automatic", "min-hop", "up/down", "fat-tree", "torus"}))
      ->option_text("NAME [automatic]");
  app.add_option("--partitions", options.managers.partitions,
                 "file of partitions, in OpenSM's syntax, for softib's subnet manager")
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
  app.add_flag("--keep", options.keep, "stay when the last client has gone");
  app.add_option("--idle-exit", texts.idle_exit_seconds,
                 "end this long after the last client has gone")
      ->check(CLI::Range(0.0, 1e6))
      ->option_text("SECONDS [0.3]");
  app.add_option("--max-memory", texts.max_memory,
                 "most memory for queues and device memory, such as 512M or 4G")
      ->option_text("SIZE");
  app.add_option("--config", options.config,
                 "configuration file: children of ports, partitions, link layers, addresses, "
                 "cables, driver "
                 "store (docs/cli.md)")
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
  app.add_flag("--verify{on}", texts.verify,
               "check drivers and this program; --verify=faults also makes requests fail")
      ->check(CLI::IsMember({"on", "faults"}));
  app.add_option("--verify-seed", options.verify_seed, "repeats the choices of --verify")
      ->option_text("N [1]");
  app.add_option("--ready-fd", options.ready_fd,
                 "descriptor that gets \"ok <socket>\\n\" or \"error <text>\\n\"")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->option_text("FD");
  app.add_flag("--foreground", options.foreground, "stay in the foreground, log to stderr too");
  app.add_option("--log", options.log, "log file")->option_text("FILE [DIR/NAME.log]");
}

void complete(DaemonOptions& options, const Texts& texts) {
  if (!texts.nodes.empty()) {
    options.shape.nodes = texts.nodes;
  } else if (texts.node_count > 0) {
    options.shape.nodes.clear();
    for (std::uint32_t i = 0; i < texts.node_count; ++i)
      options.shape.nodes.push_back("node" + std::to_string(i));
  }
  options.shape.link_layer = verbs::link_layer_of(texts.link_layer);
  options.managers.is_direct = texts.management == "direct";
  if (texts.management == "none") {
    options.shape.management = fabric::SubnetManagement::Programs;
  }
  if (texts.max_memory) options.max_memory = parse_memory_size(*texts.max_memory);
  if (!texts.verify.empty()) {
    options.verify = texts.verify == "faults" ? Verify::Faults : Verify::On;
  }
  options.idle_exit =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(texts.idle_exit_seconds));
  if (options.runtime_dir.empty())
    options.runtime_dir = choose_runtime_dir(Surroundings::of_this_process());
  // Absolute, since softibd changes its directory; without a trailing slash, which would follow a
  // link that must be refused.
  std::filesystem::path dir = std::filesystem::absolute(options.runtime_dir).lexically_normal();
  if (!dir.has_filename() && dir.has_parent_path()) dir = dir.parent_path();
  options.runtime_dir = dir.string();
  const FabricFiles files = fabric_files(options.runtime_dir, options.fabric);  // checks the name
  if (!options.managers.partitions.empty()) {
    options.managers.partitions = std::filesystem::absolute(options.managers.partitions).string();
  }
  if (!options.config.empty()) options.config = std::filesystem::absolute(options.config).string();
  options.log = options.log.empty() ? files.log : std::filesystem::absolute(options.log).string();
}

}  // namespace

ParsedCommandLine parse_daemon_options(int argc, const char* const* argv) {
  ParsedCommandLine parsed;
  Texts texts;
  CLI::App app{"softibd: the daemon behind a softib fabric\n", "softibd"};
  app.footer(kFooter);
  app.get_formatter()->column_width(34);
  add_options(app, parsed.options, texts);
  try {
    app.parse(argc, argv);
    complete(parsed.options, texts);
    parsed.go_on = true;
  } catch (const CLI::ParseError& error) {
    const bool asked_for = error.get_exit_code() == 0;  // --help
    if (asked_for)
      static_cast<void>(app.exit(error));
    else
      std::fprintf(stderr, "softibd: %s; `softibd --help` lists the options\n", error.what());
    parsed.exit_code = asked_for ? 0 : static_cast<int>(DaemonExit::Usage);
  } catch (const std::exception& error) {  // CliError; the current directory has gone
    std::fprintf(stderr, "softibd: %s\n", error.what());
    parsed.exit_code = static_cast<int>(DaemonExit::Usage);
  }
  return parsed;
}

}  // namespace ib::softib
