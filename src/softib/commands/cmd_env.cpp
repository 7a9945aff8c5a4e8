// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib env: the environment of `softib run`, as lines for a shell.
#include "setup/runtime_dir.h"
#include "softib/commands/command.h"
#include "softib/launch/environment.h"
#include "softib/launch/launcher.h"
#include "softib/pages/fabric_state.h"

namespace ib::softib {
namespace {

struct EnvOptions {
  std::string fabric;
  std::string node;
  std::string path;
};

void env(const EnvOptions& options) {
  const Installation installation = find_installation();
  require_libraries(installation);
  ControlClient client = connect_up(options.fabric);
  ProgramSettings settings;
  settings.runtime_dir = choose_runtime_dir(Surroundings::of_this_process());
  settings.fabric = options.fabric;
  settings.socket = fabric_files(settings.runtime_dir, options.fabric).socket;
  settings.node = ask_node(client, options.node, options.fabric);
  settings.memory_path = options.path;
  if (const std::string flaw = tell_addresses(client, settings.node); !flaw.empty()) {
    complain("warning: " + flaw);
  }
  // From an environment without softib, so that the lines are complete wherever they are read.
  const Environment base = without_softib(current_environment());
  print(export_lines(base, compose_environment(base, installation, settings)));
}

}  // namespace

void add_env(CLI::App& app, Context&) {
  Command command(app, "env", "the environment of `softib run`, for a shell");
  auto options = std::make_shared<EnvOptions>();
  add_fabric_option(command, options->fabric);
  command.option("-n,--node", options->node, "the virtual host: number or name")
      .placeholder("N|NAME [0]");
  command.option("--path", options->path, "as in `softib run`")
      .one_of({"auto", "adopted", "process_vm", "bounce"})
      .placeholder("auto|adopted|process_vm|bounce");
  command.footer(
      "The fabric must be up. The names of the variables are also those to pass on with\n"
      "`mpirun -x`, in a unit file or a container.\n"
      "\nExample:\n"
      "  softib up && eval \"$(softib env)\" && ibv_devinfo");
  command.callback([options] { env(*options); });
}

}  // namespace ib::softib
