// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/spawn.h"

#include "hca/layout/tables.h"
#include "setup/address_space.h"
#include "setup/cli_error.h"
#include "setup/fd.h"
#include "softib/launch/environment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ib::softib {
namespace {

constexpr int kReadyFd = 3;

// The report of the helper process.
struct Report {
  enum class Kind : int { Ready, Refused, Exited, Killed, Slow, NoProcess, NoExec };
  Kind kind = Kind::NoProcess;
  int value = 0;                  // exit code, signal or errno
  std::array<char, 2048> text{};  // softibd's words; less than PIPE_BUF, so they arrive whole
};

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// `taskset -c 1 softib run ...` is meant for the program, not for the daemon of all programs.
void use_all_processors() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
  ::sched_setaffinity(0, sizeof all, &all);  // the kernel keeps those that exist and are allowed
}

// In the process that becomes softibd. Descriptors: 0 /dev/null, 1 and 2 the log, 3 the ready pipe.
[[noreturn]] void become(std::vector<std::string>& words, std::vector<std::string>& variables,
                         int log, int ready, int failed) {
  reset_signals();
  use_all_processors();
  ::umask(077);
  if (::chdir("/") != 0) ::_exit(1);
  // First to numbers above 3, since 0 to 3 may be in use or closed.
  const int high_log = ::fcntl(log, F_DUPFD, 10);
  const int high_ready = ::fcntl(ready, F_DUPFD, 10);
  const int high_failed = ::fcntl(failed, F_DUPFD_CLOEXEC, 10);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, 0);
  ::dup2(high_log, 1);
  ::dup2(high_log, 2);
  ::dup2(high_ready, kReadyFd);
  ::close_range(kReadyFd + 1, static_cast<unsigned>(high_failed) - 1, 0);
  ::close_range(static_cast<unsigned>(high_failed) + 1, ~0u, 0);
  ::execve(words.front().c_str(), pointers(words).data(), pointers(variables).data());
  const int error = errno;
  const ssize_t told = ::write(high_failed, &error, sizeof error);
  ::_exit(told == sizeof error ? 127 : 126);
}

Report how_it_ended(pid_t pid, int failed) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  int error = 0;
  if (::read(failed, &error, sizeof error) == sizeof error) {
    return {Report::Kind::NoExec, error, {}};
  }
  if (WIFSIGNALED(status)) return {Report::Kind::Killed, WTERMSIG(status), {}};
  return {Report::Kind::Exited, WEXITSTATUS(status), {}};
}

// "ok <socket>\n", or "error <text>\n". Returns the number of characters that came.
std::size_t read_ready_line(int ready, std::array<char, 2048>& text) {
  std::size_t length = 0;
  while (length < text.size() - 1) {
    const ssize_t n = ::read(ready, text.data() + length, text.size() - 1 - length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    length += static_cast<std::size_t>(n);
    if (text[length - 1] == '\n') break;
  }
  return length;
}

// In the helper, which is the parent of softibd until that is ready.
Report bring_up(std::vector<std::string>& words, std::vector<std::string>& variables, int log,
                std::chrono::seconds limit) {
  std::array<int, 2> ready{};
  std::array<int, 2> failed{};
  if (::pipe2(ready.data(), O_CLOEXEC) != 0 || ::pipe2(failed.data(), O_CLOEXEC) != 0) {
    return {Report::Kind::NoProcess, errno, {}};
  }
  const pid_t pid = ::fork();
  if (pid < 0) return {Report::Kind::NoProcess, errno, {}};
  if (pid == 0) become(words, variables, log, ready[1], failed[1]);
  ::close(ready[1]);
  ::close(failed[1]);
  pollfd waiting{ready[0], POLLIN, 0};
  const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit);
  int polled = 0;
  do {
    polled = ::poll(&waiting, 1, static_cast<int>(limit_ms.count()));
  } while (polled < 0 && errno == EINTR);
  if (polled > 0) {
    std::array<char, 2048> text{};
    const std::size_t length = read_ready_line(ready[0], text);
    if (length > 0 && text[0] == 'o') return {Report::Kind::Ready, 0, {}};
    Report report = how_it_ended(pid, failed[0]);
    if (length > 0) report = {Report::Kind::Refused, report.value, text};
    return report;
  }
  ::kill(pid, SIGKILL);
  how_it_ended(pid, failed[0]);
  return {Report::Kind::Slow, static_cast<int>(limit.count()), {}};
}

std::string in_words(const Report& report) {
  switch (report.kind) {
    case Report::Kind::Ready: return {};
    case Report::Kind::Refused: {
      std::string text = report.text.data();
      if (text.starts_with("error ")) text.erase(0, 6);
      while (!text.empty() && text.back() == '\n') text.pop_back();
      return text;
    }
    case Report::Kind::Exited: return fmt::format("it ended with exit code {}", report.value);
    case Report::Kind::Killed:
      return fmt::format("it was killed by signal {} ({}){}", report.value,
                         ::strsignal(report.value),
                         report.value == SIGKILL ? "; out of memory?" : "");
    case Report::Kind::Slow: return fmt::format("it was not ready after {} s", report.value);
    case Report::Kind::NoProcess:
      return fmt::format("fork or pipe: {}", std::strerror(report.value));
    case Report::Kind::NoExec: return fmt::format("exec: {}", std::strerror(report.value));
  }
  return {};
}

Fd open_log(const std::string& path, std::size_t& size) {
  Fd log =
      make_fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log.valid()) {
    throw CliError(Exit::Permission,
                   fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  }
  struct stat s {};
  if (::fstat(log.get(), &s) != 0) s.st_size = 0;
  size = static_cast<std::size_t>(s.st_size);
  return log;
}

}  // namespace

DaemonStart start_daemon(std::vector<std::string> words, const std::string& log,
                         std::chrono::seconds limit) {
  words.emplace_back("--ready-fd");
  words.push_back(std::to_string(kReadyFd));
  std::vector<std::string> variables = as_words(without_softib(current_environment()));
  DaemonStart outcome;
  const Fd log_file = open_log(log, outcome.log_size_before);
  std::array<int, 2> report_pipe{};
  if (::pipe2(report_pipe.data(), O_CLOEXEC) != 0) {
    throw CliError(Exit::Resources, fmt::format("pipe: {}", std::strerror(errno)));
  }
  const Fd report_in = make_fd(report_pipe[0]);
  Fd report_out = make_fd(report_pipe[1]);
  const pid_t helper = ::fork();
  if (helper < 0) throw CliError(Exit::Resources, fmt::format("fork: {}", std::strerror(errno)));
  if (helper == 0) {
    // Keys of the terminal are for its own programs. Not a session: that would be a scheduling
    // group of its own (autogroup), and cores do not pass from one to the other by yielding.
    ::setpgid(0, 0);
    ::signal(SIGCHLD, SIG_DFL);  // if it is ignored, waitpid() has no result
    const Report report = bring_up(words, variables, log_file.get(), limit);
    ::_exit(::write(report_out.get(), &report, sizeof report) == sizeof report ? 0 : 1);
  }
  report_out.reset();
  Report report;
  ssize_t got = 0;
  do {
    got = ::read(report_in.get(), &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  while (::waitpid(helper, nullptr, 0) < 0 && errno == EINTR) {}
  if (got != sizeof report)
    throw CliError(Exit::Daemon, "the process that starts softibd was killed");
  outcome.ready = report.kind == Report::Kind::Ready;
  outcome.explained = report.kind == Report::Kind::Refused;
  outcome.failure = in_words(report);
  return outcome;
}

std::string tight_limits() {
  std::vector<std::string> found;
  const auto check = [&](int what, const char* name, rlim_t enough, const char* unit,
                         rlim_t scale) {
    rlimit limit{};
    const auto resource = static_cast<__rlimit_resource>(what);
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur >= enough) return;
    found.push_back(fmt::format("{} is {}{}, {}{} are needed", name, limit.rlim_cur / scale, unit,
                                enough / scale, unit));
  };
  constexpr rlim_t kMib = 1u << 20;
  check(RLIMIT_AS, "RLIMIT_AS (ulimit -v)", kLeastAddressSpace, " MiB", kMib);
  check(RLIMIT_FSIZE, "RLIMIT_FSIZE (ulimit -f)", hca::place::kHeap + hca::kHeapStep, " MiB", kMib);
  check(RLIMIT_NOFILE, "RLIMIT_NOFILE (ulimit -n)", 64, "", 1);
  return fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace ib::softib
