// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib down: ends a fabric and waits until nothing of it is left. Succeeds if it is already down.
#include "setup/runtime_dir.h"
#include "softib/commands/command.h"
#include "softib/pages/fabric_list.h"
#include "softib/pages/fabric_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

namespace ib::softib {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kMomentToEnd{500};

struct DownOptions {
  std::string fabric;
  bool all = false;
  bool force = false;
};

Fd open_process(pid_t pid) {
  return make_fd(pid <= 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Returns whether a process ended in time; false also if the process cannot be seen.
bool ends_within(const Fd& process, std::chrono::milliseconds limit) {
  if (!process.valid()) return false;
  pollfd waiting{process.get(), POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(limit.count())) > 0;
}

// The fallback without a process: waits until nobody listens.
bool falls_silent_within(const std::string& socket, std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  while (ControlClient::connect(socket)) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

bool exists(const std::string& path) {
  struct stat s {};
  return ::lstat(path.c_str(), &s) == 0;
}

// Removes the files of a daemon that was killed. Takes its lock first (making the file again if
// necessary): a daemon that starts meanwhile waits for the lock, or keeps its files.
bool remove_remains(const FabricFiles& files) {
  if (!exists(files.socket) && !exists(files.lock)) return false;
  const Fd lock =
      make_fd(::open(files.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  struct stat held {};
  struct stat named {};
  const bool ours = ::fstat(lock.get(), &held) == 0 && ::lstat(files.lock.c_str(), &named) == 0 &&
                    held.st_ino == named.st_ino && held.st_dev == named.st_dev;
  if (!ours) return false;
  ::unlink(files.socket.c_str());
  ::unlink(files.lock.c_str());
  return true;
}

void end_by_force(const Fd& process, pid_t pid, const FabricFiles& files) {
  if (!process.valid() ||
      ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) != 0) {
    throw CliError(Exit::Daemon,
                   fmt::format("cannot kill softibd (pid {}): {}", pid, std::strerror(errno)));
  }
  ends_within(process, std::chrono::seconds(10));
  remove_remains(files);
}

// The verifier's findings of a softibd that has ended: its lines in the log since the start.
std::string findings_in(const std::string& log) {
  constexpr const char* kUp = " is up: ";
  constexpr const char* kFinding = "verify: finding: ";
  std::ifstream file(log);
  std::string found;
  for (std::string line; std::getline(file, line);) {
    if (line.find(kUp) != std::string::npos) found.clear();
    const std::size_t at = line.find(kFinding);
    if (at != std::string::npos) found += "\n  " + line.substr(at + std::strlen(kFinding));
  }
  return found;
}

struct User {
  pid_t pid = 0;
  std::string name;
};

// The programs of the fabric. Drivers end with softibd.
std::vector<User> users_of(ControlClient& client, bool& same_numbers) {
  const Json state = ask_state_without_nodes(client);
  // From another process namespace, process numbers do not show which processes live.
  same_numbers = number_of(state, "pid") == static_cast<std::uint64_t>(client.pid());
  std::vector<User> users;
  for (const Json& program : list_of(state, "programs")) {
    users.push_back({static_cast<pid_t>(number_of(program, "pid")), text_of(program, "program")});
  }
  return users;
}

// "ib_write_bw (pid 12), sleep (pid 13)": the programs of the fabric that stay. Some may be about
// to end, as those of a job of MPI are when mpirun has ended: they get a moment for it.
std::string who_stays(ControlClient& client) {
  const Clock::time_point deadline = Clock::now() + kMomentToEnd;
  for (;;) {
    bool same_numbers = false;
    const std::vector<User> users = users_of(client, same_numbers);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (!users.empty() && same_numbers && left.count() > 0) {
      const Fd process = open_process(users.front().pid);
      const bool has_gone = !process.valid() && errno == ESRCH;
      if (has_gone || ends_within(process, left)) continue;  // the others now
    }
    std::string text;
    for (const User& user : users) {
      text += fmt::format("{}{} (pid {})", text.empty() ? "" : ", ", user.name, user.pid);
    }
    return text;
  }
}

void down_one(const std::string& dir, const std::string& fabric, bool force) {
  const FabricFiles files = fabric_files(dir, fabric);
  std::optional<ControlClient> client = ControlClient::connect(files.socket);
  if (!client) {
    const bool remains = remove_remains(files);
    print(fmt::format("fabric \"{}\" is not up{}\n", fabric,
                      remains ? "; removed what a dead softibd had left" : ""));
    return;
  }
  const pid_t pid = client->pid();
  const Fd process = open_process(pid);
  if (const std::string users = force ? "" : who_stays(*client); !users.empty()) {
    throw CliError(Exit::Busy, fmt::format("fabric \"{}\" is in use by {}\n  `softib down --force` "
                                           "ends it all the same: they get a fatal event.",
                                           fabric, users));
  }
  const ControlAnswer answer = client->call(verbs::control::Code::Shutdown);
  client.reset();
  // Disconnected: it ended before its answer was sent, or another command ended it.
  const bool asked = answer.status == Status::Ok || answer.status == Status::Disconnected;
  constexpr std::chrono::seconds kTimeLimit{10};
  const bool gone = asked && (process.valid() ? ends_within(process, kTimeLimit)
                                              : falls_silent_within(files.socket, kTimeLimit));
  if (!gone && !force) {
    throw CliError(Exit::Daemon,
                   fmt::format("fabric \"{}\" did not go down: {}\n  `softib down --force` kills "
                               "softibd (pid {}).",
                               fabric, asked ? "softibd still runs" : answer.reason, pid));
  }
  if (!gone) end_by_force(process, pid, files);
  remove_remains(files);
  print(fmt::format("fabric \"{}\" is down\n", fabric));
  const std::string found = findings_in(files.log);
  if (found.empty()) return;
  throw CliError(Exit::Failed,
                 fmt::format("the verifier has found:{}\n  The log: {}", found, files.log));
}

void down(const DownOptions& options) {
  const Surroundings here = Surroundings::of_this_process();
  const std::string dir = choose_runtime_dir(here);
  if (!exists(dir)) {
    print(options.all ? "no fabric is up\n"
                      : fmt::format("fabric \"{}\" is not up\n", options.fabric));
    return;
  }
  prepare_runtime_dir(dir, here.uid);
  if (!options.all) {
    down_one(dir, options.fabric, options.force);
    return;
  }
  const std::vector<std::string> fabrics = fabrics_in(dir);
  if (fabrics.empty()) print("no fabric is up\n");
  std::optional<CliError> failed;
  for (const std::string& fabric : fabrics) {
    try {
      down_one(dir, fabric, options.force);
    } catch (const CliError& error) {  // the others end nevertheless
      complain(error.what());
      failed = error;
    }
  }
  if (failed) throw CliError(failed->code(), "not all fabrics are down");
}

}  // namespace

void add_down(CLI::App& app, Context&) {
  Command command(app, "down", "end a fabric that no program uses");
  auto options = std::make_shared<DownOptions>();
  add_fabric_option(command, options->fabric);
  command.flag("-a,--all", options->all, "all fabrics of this user");
  command.flag("--force", options->force,
               "under running programs too, and softibd is killed if it does not go by itself");
  command.footer(
      "Waits until softibd has ended. While programs run on the fabric it stays, and\n"
      "they are named (exit code 10); with --force they get a fatal event. It is no\n"
      "error if the fabric is not up (exit code 0). The log stays, for\n"
      "`softib explain`. Of a fabric with --verify it lists the findings, and ends\n"
      "with 1 if there are any.\n"
      "\nExamples:\n"
      "  softib down\n"
      "  softib down --all");
  command.callback([options] { down(*options); });
}

}  // namespace ib::softib
