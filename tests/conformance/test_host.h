// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TestHost: the real host of this process, but with settings of its own, so that several clients
// in one process can use different fabrics and memory paths.
#pragma once

#include "linux/client/client_channel.h"
#include "linux/client/client_host.h"
#include "linux/client/client_requests.h"

#include <fcntl.h>

#include <functional>
#include <string>
#include <vector>

namespace ib::conformance {

struct HostSettings {
  std::string socket;
  std::string path;  // SOFTIB_MEMORY_PATH
  std::string node;
  std::string program = "conformance";
  std::vector<std::string> wrapper;  // a program that runs conformance_peer, and its arguments
  // Milliseconds for an answer of conformance_peer, which may itself wait for kTimeLimitMs
  // (side.h).
  std::uint32_t time_limit_ms = 40'000;
};

class TestHost final : public platform::ClientHost {
 public:
  explicit TestHost(HostSettings settings) : settings_(std::move(settings)) {}
  const HostSettings& settings() const { return settings_; }

  Instant now() override { return real_.now(); }
  platform::Barriers& barriers() override { return real_.barriers(); }
  platform::NativeHandle keep(platform::NativeHandle handle) override {
    return real_.keep(std::move(handle));
  }
  std::uint32_t pid() override { return real_.pid(); }
  std::uint64_t process_number() override { return real_.process_number(); }
  std::uint64_t page_size() override { return real_.page_size(); }
  Result<std::unique_ptr<platform::ControlChannel>> connect(std::string& reason) override {
    return os::connect_channel(settings_.socket, reason);
  }
  Result<std::unique_ptr<platform::RequestChannel>> connect_for_requests(
      std::string& reason) override {
    return os::connect_for_requests(settings_.socket, reason);
  }
  Result<std::unique_ptr<platform::MappedFile>> map(const platform::NativeHandle& file,
                                                    std::uint64_t space,
                                                    std::string& reason) override {
    return real_.map(file, space, reason);
  }
  platform::Nameplate nameplate() override { return real_.nameplate(); }
  Status read_process(const platform::ProcessName& who, std::uint64_t from, void* to,
                      std::size_t n) override {
    return real_.read_process(who, from, to, n);
  }
  Status write_process(const platform::ProcessName& who, std::uint64_t to, const void* from,
                       std::size_t n) override {
    return real_.write_process(who, to, from, n);
  }
  platform::OwnCopy copy_own(void* to, const void* from, std::size_t n) override {
    return real_.copy_own(to, from, n);
  }
  bool is_accessible(const void* at, std::size_t n, bool write) override {
    return real_.is_accessible(at, n, write);
  }
  Result<platform::AdoptedPages> adopt(std::uint64_t address, std::uint64_t length,
                                       std::uint64_t most) override {
    return real_.adopt(address, length, most);
  }
  bool give_back(const platform::AdoptedPages& pages) override { return real_.give_back(pages); }
  Presence adopted_presence(const platform::AdoptedPages& pages, std::uint64_t address,
                            std::uint64_t length) override {
    return real_.adopted_presence(pages, address, length);
  }
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) override {
    real_.wait(word, expected, timeout);
  }
  void wake(std::atomic<std::uint32_t>& word) override { real_.wake(word); }
  void relax(std::uint32_t round) override { real_.relax(round); }
  Status make_pipe(platform::NativeHandle& read_end, platform::NativeHandle& write_end) override {
    const Status made = real_.make_pipe(read_end, write_end);
    // As small as they can be, so that tests fill them.
    if (made == Status::Ok) (void)::fcntl(read_end.get(), F_SETPIPE_SZ, 4096);
    return made;
  }
  Status write_pipe(int write_end, std::span<const std::byte> bytes) override {
    return real_.write_pipe(write_end, bytes);
  }
  bool holds_bytes(int pipe_end) override { return real_.holds_bytes(pipe_end); }
  Result<std::unique_ptr<Thread>> start_thread(const char* name,
                                               std::function<void()> body) override {
    return real_.start_thread(name, std::move(body));
  }
  std::string setting(const char* name) override {
    return std::string_view(name) == "SOFTIB_MEMORY_PATH" ? settings_.path : real_.setting(name);
  }

 private:
  HostSettings settings_;
  os::LinuxClientHost& real_ = os::client_host();
};

}  // namespace ib::conformance
