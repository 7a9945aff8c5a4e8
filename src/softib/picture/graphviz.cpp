// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Runs dot, neato or sfdp as a child: text in by one pipe, places out by another. A program that is
// missing or complains becomes an error of the command.
#include "softib/picture/graphviz.h"

#include "fabric/picture/dot.h"
#include "fabric/picture/escape.h"
#include "setup/cli_error.h"
#include "setup/fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

extern char** environ;

namespace ib::softib {
namespace {

constexpr std::size_t kMostOutput = 64u << 20;

[[noreturn]] void no_resources(const char* what, int error) {
  throw CliError(Exit::Resources, fmt::format("{}: {}", what, std::strerror(error)));
}

// A file without a name. The child's input and outputs are files, so nobody waits for a pipe.
Fd make_file(const char* what) {
  Fd file = make_fd(::memfd_create(what, MFD_CLOEXEC));
  if (!file.valid()) no_resources("memfd_create", errno);
  return file;
}

void write_all(const Fd& file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count =
        ::pwrite(file.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) no_resources("write", errno);
    done += static_cast<std::size_t>(count);
  }
}

std::string read_all(const Fd& file, std::size_t most) {
  std::string text;
  std::array<char, 65536> part{};
  while (text.size() < most) {
    const ssize_t count =
        ::pread(file.get(), part.data(), part.size(), static_cast<off_t>(text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  return text;
}

struct Child {
  pid_t pid = -1;
  Fd ends;  // is readable when the child has ended
};

Child start(const std::string& program, const std::vector<std::string>& arguments, const Fd& in,
            const Fd& out, const Fd& errors) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) no_resources("pipe", errno);
  Child child{-1, make_fd(pipe[0])};
  const Fd kept = make_fd(pipe[1]);
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.get(), STDERR_FILENO);
  constexpr int kKept = 9;  // a number that is not one of these, open in the child until it ends
  ::posix_spawn_file_actions_adddup2(&actions, kept.get(), kKept);
  const int error =
      ::posix_spawnp(&child.pid, program.c_str(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT || error == EACCES) {
    throw CliError(Exit::Installation,
                   fmt::format("{} of Graphviz, which lays out the picture, cannot be run: {}\n"
                               "  Install it (Debian, Ubuntu, Fedora: package graphviz); "
                               "`-o FILE.dot` does without.",
                               program, std::strerror(error)));
  }
  if (error != 0) no_resources("posix_spawn", error);
  return child;
}

// The exit status of waitpid(); ends a child that takes too long.
int wait_for(const Child& child, const std::string& program, std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{child.ends.get(), POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    const bool is_late = ready <= 0;
    if (is_late) ::kill(child.pid, SIGKILL);
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {}
    if (!is_late) return status;
    throw CliError(Exit::Failed,
                   fmt::format("{} has not found a layout within {} s", program, limit.count()));
  }
}

}  // namespace

std::string run_graphviz(const std::string& program, const std::vector<std::string>& arguments,
                         const std::string& input, std::chrono::seconds limit) {
  const Fd in = make_file("softib-layout-in");
  const Fd out = make_file("softib-layout-out");
  const Fd errors = make_file("softib-layout-errors");
  write_all(in, input);
  const Child child = start(program, arguments, in, out, errors);
  const int status = wait_for(child, program, limit);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string how = WIFSIGNALED(status)
                                ? fmt::format("was killed by signal {}", WTERMSIG(status))
                                : fmt::format("ended with {}", WEXITSTATUS(status));
    const std::string words = fabric::clean_text(read_all(errors, 300));
    throw CliError(Exit::Failed, fmt::format("{} of Graphviz {}{}{}", program, how,
                                             words.empty() ? "" : ": ", words));
  }
  return read_all(out, kMostOutput);
}

void lay_out(fabric::Picture& picture) {
  if (picture.boxes.empty()) throw CliError(Exit::Failed, "there is nothing to draw");
  const std::string program = fabric::layout_program(picture);
  const std::string plain =
      run_graphviz(program, {"-Tplain"}, dot_of(picture, fabric::DotUse::Places));
  if (place_boxes(picture, plain) != Status::Ok) {
    throw CliError(Exit::Failed, fmt::format("{} of Graphviz has not placed all boxes", program));
  }
}

}  // namespace ib::softib
