// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib: runs programs on software InfiniBand adapters and manages their fabric.
#include "softib/commands/command.h"
#include "softib/commands/usage.h"
#include "softib/terminal/color.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <vector>

namespace {

using ib::softib::Context;
using ib::softib::Exit;

constexpr const char* kFooter = R"(Examples:
  softib run -- ibv_devices               a program that sees a software HCA
  softib run -- ib_write_lat &            two programs on one fabric
  softib run -- ib_write_lat localhost
  softib up --nodes 2                     a fabric that stays: two virtual hosts
  softib run --node 1 -- CMD              a program on the second one
  softib status                           what is there and what it does
  softib devices                          the device tree: drivers, states, ids
  softib hca eject softib0                pull an adapter out under programs
  softib explain                          what went wrong, in words
  softib doctor                           what this machine can do

Exit codes:
   0 done                      6 no permission
   1 failed                    7 softibd failed
   2 bad command line          8 out of resources
   3 no such node, HCA, name   9 files are missing
   4 is up already            10 in use, or vetoed: nothing was changed
   5 is not up
  run: those of CMD, or 126 cannot run it, 127 not found

Environment:
  SOFTIB_RUNTIME_DIR   sockets and logs
  SOFTIB_FABRIC        the default of --fabric
  NO_COLOR             no colour unless --color=always
)";

// Everything behind the first "--" belongs to the program of `softib run`.
std::vector<std::string> split(int argc, char** argv, Context& context) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (context.has_program) {
      context.program.push_back(word);
    } else if (word == "--") {
      context.has_program = true;
    } else {
      words.push_back(word);
    }
  }
  return words;
}

int run(int argc, char** argv) {
  Context context;
  std::vector<std::string> words = split(argc, argv, context);
  ib::softib::use_color(ib::softib::take_color(words));
  CLI::App app{"softib: software InfiniBand adapters for programs that know nothing of them\n",
               "softib"};
  app.require_subcommand(0, 1);
  app.footer(kFooter);
  ib::softib::use_narrow_help(app);
  app.set_version_flag("-V,--version", ib::softib::version_text, "print the version and exit");
  // For the help only: take_color() removes it from the words before CLI11 parses them.
  std::string color;
  app.add_option("--color", color,
                 "when to use colour; auto: on a terminal, unless NO_COLOR is set")
      ->option_text("auto|always|never");
  // For the help only, too: it is moved behind the command.
  std::string fabric;
  app.add_option("-f,--fabric", fabric, "which fabric, before or after the command")
      ->option_text("NAME");
  for (auto* add :
       {ib::softib::add_run,      ib::softib::add_up,          ib::softib::add_down,
        ib::softib::add_status,   ib::softib::add_connections, ib::softib::add_resources,
        ib::softib::add_list,     ib::softib::add_wait,        ib::softib::add_trace,
        ib::softib::add_explain,  ib::softib::add_port,        ib::softib::add_devices,
        ib::softib::add_ls,       ib::softib::add_hca,         ib::softib::add_partition,
        ib::softib::add_topology, ib::softib::add_cable,       ib::softib::add_switch,
        ib::softib::add_path,     ib::softib::add_counters,    ib::softib::add_sm,
        ib::softib::add_ipoib,    ib::softib::add_power,       ib::softib::add_driver,
        ib::softib::add_env,      ib::softib::add_doctor,      ib::softib::add_version}) {
    add(app, context);
  }
  ib::softib::share_examples(app);
  app.add_subcommand("help", "`softib help CMD` is `softib CMD --help`");
  ib::softib::move_fabric_behind_command(app, words);
  if (words.empty()) words = {"--help"};
  ib::softib::turn_help_around(words);
  ib::softib::check_command(app, words);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 expects them
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp& help) {
    std::ostringstream text;
    app.exit(help, text);
    ib::softib::print(text.str());
    return 0;
  } catch (const CLI::CallForVersion&) {
    ib::softib::print(ib::softib::version_text());
    return 0;
  } catch (const CLI::ParseError& error) {
    ib::softib::complain(ib::softib::usage_complaint(app, words, error));
    return static_cast<int>(Exit::Usage);
  }
  return static_cast<int>(context.exit);
}

// If a standard stream is closed, the next descriptor we open would take its number, and a
// complaint would go into a socket. The placeholders are closed when this process becomes the
// program.
void occupy_standard_streams() {
  for (;;) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd > STDERR_FILENO) ::close(fd);
    if (fd < 0 || fd > STDERR_FILENO) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  try {
    return run(argc, argv);
  } catch (const ib::softib::CliError& error) {
    ib::softib::complain(error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    ib::softib::complain("out of memory");
    return static_cast<int>(Exit::Resources);
  } catch (const std::exception& error) {
    ib::softib::complain(error.what());
    return static_cast<int>(Exit::Failed);
  }
}
