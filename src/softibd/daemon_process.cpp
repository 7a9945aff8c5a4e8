// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_process.h"

#include "linux/server/server_socket.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ib::softib {
namespace {

std::string read_all(int file) {
  std::string text;
  std::array<char, 512> part{};
  for (;;) {
    const ssize_t n = ::read(file, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
}

// In the parent: the child has reported its start, or has ended.
int pass_on(pid_t child, const std::string& report) {
  if (report.starts_with("ok ")) {
    std::fputs(report.c_str() + 3, stdout);
    return static_cast<int>(DaemonExit::Ended);
  }
  // The text is on stderr already: the child shares it until it is ready.
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return WEXITSTATUS(status);
  if (WIFSIGNALED(status))
    std::fprintf(stderr, "softibd: killed by signal %d while it started\n", WTERMSIG(status));
  return static_cast<int>(DaemonExit::NotStarted);
}

}  // namespace

void prepare_process() {
  // A client that goes while we write to its pipe, and RLIMIT_FSIZE: errors of a call, not signals.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  ::umask(077);
  os::raise_descriptor_limit();
}

void ReadyReport::error(std::string_view text) {
  std::string line = "error " + std::string(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  say(std::move(line));
}

void ReadyReport::say(std::string line) {
  if (!to_.valid()) return;
  line += '\n';
  (void)!::write(to_.get(), line.data(), line.size());  // the starter may have gone: its choice
  to_.reset();
}

std::optional<int> go_to_background(platform::NativeHandle& report_to) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    std::perror("softibd: pipe");
    return static_cast<int>(DaemonExit::NotStarted);
  }
  platform::NativeHandle reader = os::own_descriptor(ends[0]);
  platform::NativeHandle writer = os::own_descriptor(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    std::perror("softibd: fork");
    return static_cast<int>(DaemonExit::NotStarted);
  }
  if (child > 0) {
    writer.reset();
    return pass_on(child, read_all(reader.get()));
  }
  ::setpgid(0, 0);  // no session: docs/design/0020-mailboxes.md
  reader.reset();
  // No other descriptor of the starter: a reader of its pipe would wait for softibd.
  constexpr int kReport = 3;
  if (writer.get() != kReport) {
    ::dup3(writer.get(), kReport, O_CLOEXEC);
    (void)writer.release();
    writer = os::own_descriptor(kReport);
  }
  ::close_range(kReport + 1, ~0u, 0);
  report_to = std::move(writer);
  return std::nullopt;
}

void let_go_of_starter() {
  if (::chdir("/") != 0) return;  // it always exists
  const platform::NativeHandle null = os::own_descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return;
  for (const int standard : {0, 1, 2}) ::dup2(null.get(), standard);
}

}  // namespace ib::softib
