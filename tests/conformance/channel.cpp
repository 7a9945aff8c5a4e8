// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The two ways to an Engine: a call, or a conformance_peer at the other end of a socket pair.
#include "engine.h"
#include "peer_socket.h"
#include "side.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace ib::conformance {

namespace {

class LocalChannel final : public Channel {
 public:
  explicit LocalChannel(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
  Reply call(Command command, const Message& in) override {
    if (gone_) return {Status::Disconnected, {}, "the side was killed"};
    return engine_->run(command, Message(in.bytes()));
  }
  void kill() override {
    if (!gone_) engine_->vanish();
    gone_ = true;
  }

 private:
  std::unique_ptr<Engine> engine_;
  bool gone_ = false;
};

class ProcessChannel final : public Channel {
 public:
  ProcessChannel(int socket, pid_t pid) : socket_(socket), pid_(pid) {}
  ~ProcessChannel() override {
    (void)::close(socket_);  // it cleans up and exits when it sees this
    if (pid_ > 0) (void)::waitpid(pid_, nullptr, 0);
  }
  Reply call(Command command, const Message& in) override {
    if (!send_command(socket_, command, in)) return lost();
    auto reply = receive_reply(socket_);
    return reply ? *std::move(reply) : lost();
  }
  void kill() override {
    if (pid_ <= 0) return;
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  static Reply lost() { return {Status::Disconnected, {}, "conformance_peer has ended"}; }
  int socket_;
  pid_t pid_;
};

}  // namespace

std::unique_ptr<Channel> make_local_channel(const HostSettings& settings, std::string& reason) {
  auto engine = Engine::attach(settings, reason);
  if (!engine) return nullptr;
  return std::make_unique<LocalChannel>(std::move(engine));
}

std::unique_ptr<Channel> make_process_channel(const HostSettings& settings, std::string& reason) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    reason = "socketpair failed";
    return nullptr;
  }
  std::vector<std::string> words = settings.wrapper;
  words.insert(words.end(), {IB_CONFORMANCE_PEER, settings.socket, settings.path, settings.node});
  const std::string program = words.front();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  (void)::posix_spawn_file_actions_init(&actions);
  // A copy without close-on-exec; standard input of the peer.
  (void)::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  pid_t pid = -1;
  const int failed =
      ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), environ);
  (void)::posix_spawn_file_actions_destroy(&actions);
  (void)::close(ends[1]);
  if (failed != 0) {
    reason = "cannot start " + program;
    (void)::close(ends[0]);
    return nullptr;
  }
  auto channel = std::make_unique<ProcessChannel>(ends[0], pid);
  // Its first message says whether it is attached.
  auto hello = receive_reply(ends[0]);
  if (!hello || hello->status != Status::Ok) {
    reason = hello ? hello->reason : "conformance_peer ended at once";
    return nullptr;
  }
  return channel;
}

}  // namespace ib::conformance
