// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib version.
#include "softib/command.h"
#include "softib/installation.h"
#include "softib/version.h"
#include "verbs/control.h"

#include <fmt/format.h>

namespace ib::softib {

void add_version(CLI::App& app, Context&) {
  CLI::App* command = app.add_subcommand("version", "the version, and where its parts are");
  command->callback([] {
    const Installation found = find_installation();
    print(fmt::format("softib {}\ncontrol interface {}\nprograms  {}\nlibraries {}\n", kVersion,
                      verbs::control::kAbiVersion, found.bin_dir,
                      found.lib_dir.empty() ? "not found" : found.lib_dir));
  });
}

}  // namespace ib::softib
