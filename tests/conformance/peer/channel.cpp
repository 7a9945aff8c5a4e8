// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The two ways to an Engine: a call, or a conformance_peer at the other end of a socket pair.
#include "engine.h"
#include "peer/child.h"
#include "peer/peer_socket.h"
#include "peer/programs.h"
#include "side.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>
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
  ProcessChannel(Child child, std::uint32_t time_limit_ms)
      : child_(std::move(child)), time_limit_ms_(static_cast<int>(time_limit_ms)) {}
  ~ProcessChannel() override {
    if (!child_.lives()) return;
    (void)::shutdown(child_.socket(), SHUT_WR);  // the peer cleans up and exits at end of input
    (void)child_.wait(time_limit_ms_);
    if (child_.lives()) ADD_FAILURE() << "conformance_peer does not end" << in_time();
  }
  Reply call(Command command, const Message& in) override {
    if (!send_command(child_.socket(), command, in)) return lost();
    return answer("command " + std::to_string(static_cast<std::uint32_t>(command)));
  }
  Reply hello() { return answer("to be attached"); }
  void kill() override { child_.kill(); }

 private:
  static Reply lost() { return {Status::Disconnected, {}, "conformance_peer has ended"}; }
  // A peer that hangs must fail its test and must not delay the tests after it.
  Reply answer(const std::string& what) {
    if (!child_.has_output(time_limit_ms_)) {
      child_.kill();
      return {Status::Disconnected,
              {},
              "no answer of conformance_peer (" + what + ") came" + in_time() + "; it was killed"};
    }
    auto reply = receive_reply(child_.socket());
    return reply ? *std::move(reply) : lost();
  }
  std::string in_time() const { return " in " + std::to_string(time_limit_ms_) + " ms"; }
  Child child_;
  int time_limit_ms_;
};

}  // namespace

std::unique_ptr<Channel> make_local_channel(const HostSettings& settings, std::string& reason) {
  auto engine = Engine::attach(settings, reason);
  if (!engine) return nullptr;
  return std::make_unique<LocalChannel>(std::move(engine));
}

std::unique_ptr<Channel> make_process_channel(const HostSettings& settings, std::string& reason) {
  std::vector<std::string> words = settings.wrapper;
  words.insert(words.end(), {conformance_peer(), settings.socket, settings.path, settings.node});
  Child child(words);
  if (!child.lives()) {
    reason = "cannot start " + words.front();
    return nullptr;
  }
  auto channel = std::make_unique<ProcessChannel>(std::move(child), settings.time_limit_ms);
  // The first message of the peer has the status of its attach.
  const Reply hello = channel->hello();
  if (hello.status == Status::Ok) return channel;
  reason = hello.reason;
  return nullptr;
}

}  // namespace ib::conformance
