// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib-net: the networks of a fabric's nodes. It is in the user namespace of them all.
#include "softib_net/net_main.h"

#include "linux/net/namespaces.h"
#include "linux/process/client_handle.h"
#include "linux/server/event_loop.h"
#include "linux/server/server_directory.h"
#include "linux/server/server_socket.h"
#include "setup/net/net_messages.h"
#include "setup/version.h"
#include "softib_net/net_server.h"

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <utility>

namespace ib::softib_net {
namespace {

constexpr off_t kMostLog = 1 << 20;

constexpr const char* kFooter = R"(
softib-net is started by `softib run --net` and `softib ipoib attach`; there is no reason to call it
by hand. It ends when the last network has ended, or at SIGTERM.

Files: NAME.sock, NAME.lock and NAME.log in the folder net/ of the runtime directory.
)";

struct NetOptions {
  std::string fabric = "default";
  std::string runtime_dir;
  int ready_fd = -1;
};

void write_log(std::string_view line) {
  struct stat log {};
  // One of the last run may be long; a run of its own has a bound for each process.
  if (::fstat(STDERR_FILENO, &log) == 0 && S_ISREG(log.st_mode) && log.st_size > kMostLog)
    (void)!::ftruncate(STDERR_FILENO, 0);
  const std::time_t now = std::time(nullptr);
  fmt::print(stderr, "{:%Y-%m-%d %H:%M:%S} {}\n", fmt::localtime(now), line);
}

// The line that softib's start_daemon() waits for.
class Ready {
 public:
  explicit Ready(int fd) : to_(fd >= 0 ? os::own_descriptor(fd) : platform::NativeHandle()) {
    if (fd >= 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  void say(std::string line) {
    std::replace(line.begin(), line.end(), '\n', ' ');
    line += '\n';
    if (to_.valid()) (void)!::write(to_.get(), line.data(), line.size());
    to_.reset();
  }

 private:
  platform::NativeHandle to_;
};

int refuse(Ready& ready, const std::string& reason) {
  write_log("did not start: " + reason);
  ready.say("error " + reason);
  return 1;
}

int serve(const NetOptions& options, MakeDriver make_driver) {
  Ready ready(options.ready_fd);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  ::umask(077);
  os::raise_descriptor_limit();
  if (!os::net::has_network_rights()) {
    if (const os::net::Refusal refusal = os::net::enter_new_user_namespace())
      return refuse(ready, os::net::explain(refusal));
  }
  std::string reason;
  auto directory =
      os::ServerDirectory::claim(softib::net_dir(options.runtime_dir), options.fabric, reason);
  if (!directory) return refuse(ready, reason);
  os::EventLoop loop;
  NetServer::Options settings;
  settings.fabric = options.fabric;
  settings.runtime_dir = options.runtime_dir;
  settings.make_driver = std::move(make_driver);
  settings.log = write_log;
  settings.on_idle = [&] {
    (*directory)->remove_socket();  // those who come now start another softib-net
    loop.stop();
  };
  NetServer server(loop, (*directory)->take_listener(), std::move(settings));
  loop.on_signals({SIGTERM, SIGINT}, [&](int) { server.stop(); });
  ready.say("ok " + (*directory)->socket_path());
  loop.run();
  return 0;
}

}  // namespace

int net_main(int argc, char** argv, MakeDriver make_driver) {
  CLI::App app{
      "softib-net: network interfaces for the nodes of a softib fabric (IP over InfiniBand)",
      "softib-net"};
  NetOptions options;
  app.set_version_flag("-V,--version", fmt::format("softib-net {}", softib::kVersion));
  app.add_option("--fabric", options.fabric, "name of the fabric")->capture_default_str();
  app.add_option("--runtime-dir", options.runtime_dir, "the directory of the fabric")
      ->required()
      ->option_text("DIR");
  app.add_option("--ready-fd", options.ready_fd, "descriptor that gets a line once it is ready")
      ->option_text("N");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
    return serve(options, std::move(make_driver));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "softib-net: {}\n", error.what());
    return 1;
  }
}

}  // namespace ib::softib_net
