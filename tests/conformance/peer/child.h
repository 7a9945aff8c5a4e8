// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Child: a started program with a socket to it as its standard input.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

namespace ib::conformance {

class Child {
 public:
  Child() = default;
  explicit Child(std::vector<std::string> words) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    (void)::posix_spawn_file_actions_init(&actions);
    (void)::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    if (::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
      pid_ = -1;
    (void)::posix_spawn_file_actions_destroy(&actions);
    (void)::close(ends[1]);
    socket_ = ends[0];
  }
  Child(Child&& other) noexcept { *this = std::move(other); }
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(socket_, other.socket_);
    return *this;
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (socket_ >= 0) (void)::close(socket_);
    kill();
  }

  bool lives() const { return pid_ > 0; }
  int socket() const { return socket_; }
  pid_t pid() const { return pid_; }
  // Sends SIGKILL and waits for the end.
  void kill() {
    if (pid_ <= 0) return;
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Returns whether a message arrives within the time.
  bool has_output(int milliseconds) const {
    pollfd waiting{socket_, POLLIN, 0};
    return ::poll(&waiting, 1, milliseconds) > 0;
  }
  // Waits until the program has closed its end. Returns its exit status, or -1 if it was killed or
  // does not end.
  int wait(int milliseconds) {
    pollfd waiting{socket_, POLLIN, 0};
    if (pid_ <= 0 || ::poll(&waiting, 1, milliseconds) <= 0) return -1;
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
};

}  // namespace ib::conformance
