// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RawClient: a control connection that does not wait for answers: many requests under way at once,
// and an end in the middle of them.
#pragma once

#include "platform/control_channel.h"
#include "verbs/control.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace ib::conformance {

namespace control = verbs::control;

class RawClient {
 public:
  struct Answer {
    control::Code code = control::Code::Ping;  // of the request
    std::uint32_t file = 0;
    Status status = Status::Ok;
    std::uint64_t information = 0;
    std::string reason;
  };

  static std::unique_ptr<RawClient> connect(const std::string& socket);

  void send(control::Code code, std::uint32_t file, std::span<const std::byte> in,
            std::span<const int> handles = {});
  // Returns the next answer, or nothing if none comes within the time. An answer without a request,
  // or a second one, fails the test.
  std::optional<Answer> receive(int milliseconds);
  std::size_t under_way(bool with_waits) const;

 private:
  explicit RawClient(platform::NativeHandle socket) : socket_(std::move(socket)) {}

  platform::NativeHandle socket_;
  std::uint64_t last_tag_ = 0;
  std::map<std::uint64_t, Answer> under_way_;  // by tag: the expected answer
};

// One life of a process that sends random requests and does not wait.
class RawLife {
 public:
  RawLife(const std::string& socket, std::uint64_t seed) : socket_(socket), random_(seed) {}
  void run();

 private:
  struct Object {
    control::Code destroy;
    std::uint32_t file;
    std::uint32_t handle;
  };
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  void step();
  void ask_root();
  void ask_hca(std::uint32_t file);
  void destroy_something();
  void take_note(const RawClient::Answer& answer);
  std::uint32_t some(control::Code destroy, std::uint32_t file);
  template <class In>
  void send(control::Code code, std::uint32_t file, const In& in) {
    client_->send(code, file, std::as_bytes(std::span(&in, 1)));
  }

  std::string socket_;
  std::mt19937_64 random_;
  std::unique_ptr<RawClient> client_;
  std::vector<std::uint32_t> files_;
  std::vector<Object> objects_;
};

}  // namespace ib::conformance
