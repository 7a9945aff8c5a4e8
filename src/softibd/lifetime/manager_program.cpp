// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/lifetime/manager_program.h"

#include "setup/fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace ib::softib {
namespace {

constexpr const char* kMostLogMegabytes = "16";  // then OpenSM empties its log

// `softib` of the same installation.
std::string softib_program() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string("softib") : (self.parent_path() / "softib").string();
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment(const DaemonOptions& options, const std::string& folder) {
  std::vector<std::string> all{"SOFTIB_RUNTIME_DIR=" + options.runtime_dir, "OSM_TMP_DIR=" + folder,
                               "OSM_CACHE_DIR=" + folder};
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry = *each;
    if (!entry.starts_with("SOFTIB_RUNTIME_DIR=") && !entry.starts_with("OSM_")) {
      all.emplace_back(entry);
    }
  }
  return all;
}

std::string end_text(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<ManagerProgram>> ManagerProgram::start(const DaemonOptions& options,
                                                              const std::string& node,
                                                              DaemonLog& log, std::string& reason) {
  const std::string folder = fmt::format("{}/{}.opensm", options.runtime_dir, options.fabric);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    reason = fmt::format("cannot make {}: {}", folder, std::strerror(errno));
    return Status::AccessDenied;
  }
  std::vector<std::string> words{softib_program(),
                                 "run",
                                 "--fabric",
                                 options.fabric,
                                 "--node",
                                 node,
                                 "--",
                                 options.opensm,
                                 "-f",
                                 folder + "/opensm.log",
                                 "-L",
                                 kMostLogMegabytes};
  std::vector<std::string> variables = environment(options, folder);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);
  const std::string output = folder + "/output";
  const Fd file = make_fd(::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const Fd none = make_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t parent = ::getpid();
  const pid_t pid = file.valid() && none.valid() ? ::fork() : -1;
  if (pid < 0) {
    reason = fmt::format("cannot start {}: {}", options.opensm, std::strerror(errno));
    return Status::IoError;
  }
  if (pid == 0) {  // only what is safe after fork() in a process with threads
    const bool is_ready = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent &&
                          ::dup2(none.get(), STDIN_FILENO) >= 0 &&
                          ::dup2(file.get(), STDOUT_FILENO) >= 0 &&
                          ::dup2(file.get(), STDERR_FILENO) >= 0;
    if (is_ready) {
      sigset_t nothing;
      ::sigemptyset(&nothing);
      ::sigprocmask(SIG_SETMASK, &nothing, nullptr);
      ::execve(argv[0], argv.data(), envp.data());
    }
    ::_exit(127);
  }
  log.info(fmt::format("OpenSM begins at {} (pid {}); its files are in {}", node, pid, folder));
  return std::unique_ptr<ManagerProgram>(new ManagerProgram(pid, folder, log));
}

// Its own end, at SIGTERM, waits for devices that go at the same time, and may never be over.
ManagerProgram::~ManagerProgram() {
  if (end_.empty()) ::kill(pid_, SIGKILL);
}

void ManagerProgram::on_child_ended() {
  int status = 0;
  if (!end_.empty() || ::waitpid(pid_, &status, WNOHANG) != pid_) return;
  end_ = end_text(status);
  log_.warn(fmt::format("OpenSM has ended ({}); its files are in {}", end_, folder_));
}

}  // namespace ib::softib
