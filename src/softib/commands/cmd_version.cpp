// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib version.
#include "setup/version.h"
#include "softib/commands/command.h"
#include "softib/launch/installation.h"
#include "verbs/control.h"

#include <fmt/format.h>

namespace ib::softib {

std::string version_text() {
  const Installation found = find_installation();
  return fmt::format("softib {}\ncontrol interface {}\nprograms  {}\nlibraries {}\n", kVersion,
                     verbs::control::kAbiVersion, found.bin_dir,
                     found.lib_dir.empty() ? "not found" : found.lib_dir);
}

void add_version(CLI::App& app, Context&) {
  Command command(app, "version", "the version, and where its parts are");
  command.footer("Example:\n  softib version");
  command.callback([] { print(version_text()); });
}

}  // namespace ib::softib
