// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd: the daemon behind one fabric.
#include "linux/server/crash_report.h"
#include "linux/server/printed_output.h"
#include "softibd/daemon.h"
#include "softibd/daemon_process.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

namespace {

using ib::softib::Daemon;
using ib::softib::DaemonExit;
using ib::softib::DaemonLog;
using ib::softib::DaemonOptions;
using ib::softib::ReadyReport;

int fail(ReadyReport& ready, DaemonExit exit, const std::string& reason) {
  std::fprintf(stderr, "softibd: %s\n", reason.c_str());
  ready.error(reason);
  return static_cast<int>(exit);
}

int serve(const DaemonOptions& options, ReadyReport ready) {
  std::string reason;
  // The directory first, as the log is usually in it.
  if (ib::os::ServerDirectory::prepare(options.runtime_dir, reason) != ib::Status::Ok)
    return fail(ready, DaemonExit::NotStarted, reason);
  const auto opened = ib::softib::open_log(options.log, options.foreground, reason);
  if (!opened) return fail(ready, DaemonExit::NotStarted, reason);
  DaemonLog& log = **opened;
  ib::os::report_crashes_to(options.log);

  auto created = Daemon::create(options, log, reason);
  if (!created) {
    const bool is_up = created.error() == ib::Status::AlreadyExists;
    if (!is_up && !options.foreground) log.error("did not start: " + reason);
    return fail(ready, is_up ? DaemonExit::AlreadyUp : DaemonExit::NotStarted, reason);
  }
  Daemon& daemon = **created;
  daemon.loop().on_signals({SIGTERM, SIGINT, SIGCHLD}, [&daemon](int signal) {
    if (signal == SIGCHLD) return daemon.on_child_ended();
    daemon.stop(signal == SIGTERM ? "SIGTERM" : "SIGINT");
  });
  if (!options.foreground) ::signal(SIGHUP, SIG_IGN);  // the terminal we came from
  ready.ok(daemon.socket_path());
  std::unique_ptr<ib::os::PrintedOutput> printed;
  if (!options.foreground) {
    ib::softib::let_go_of_starter();
    printed = ib::os::PrintedOutput::take(daemon.loop(), [&log](std::string_view line) {
      log.info("printed: " + std::string(line));
    });
  }

  const DaemonExit exit = daemon.run();
  // Requests that are still with a driver must not find their session gone.
  if (exit == DaemonExit::Stuck) ::_exit(static_cast<int>(exit));
  return static_cast<int>(exit);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto parsed = ib::softib::parse_daemon_options(argc, argv);
    if (!parsed.go_on) return parsed.exit_code;
    const DaemonOptions& options = parsed.options;
    ib::softib::prepare_process();
    auto report_to = options.ready_fd >= 0 ? ib::os::own_descriptor(options.ready_fd)
                                           : ib::platform::NativeHandle();
    // A starter that passes a descriptor has arranged everything else as well.
    if (!options.foreground && options.ready_fd < 0) {
      if (const auto exit_code = ib::softib::go_to_background(report_to)) return *exit_code;
    }
    return serve(options, ReadyReport(std::move(report_to)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "softibd: %s\n", error.what());
    return static_cast<int>(DaemonExit::NotStarted);
  }
}
