// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// platform::ClientHost on Linux. Its only state is that of the process (adopt.h), so there is one
// object, which is never destroyed: threads may use it while the program exits.
#pragma once

#include "platform/client_host.h"

namespace ib::os {

class LinuxClientHost final : public platform::ClientHost {
 public:
  Instant now() override;
  platform::Barriers& barriers() override;
  std::uint32_t pid() override;
  std::uint64_t process_number() override;
  std::uint64_t page_size() override;
  Result<std::unique_ptr<platform::ControlChannel>> connect(std::string& reason) override;
  Result<std::unique_ptr<platform::RequestChannel>> connect_for_requests(
      std::string& reason) override;
  Result<std::unique_ptr<platform::MappedFile>> map(const platform::NativeHandle& file,
                                                    std::uint64_t space,
                                                    std::string& reason) override;
  platform::Nameplate nameplate() override;
  Status read_process(const platform::ProcessName& who, std::uint64_t from, void* to,
                      std::size_t length) override;
  Status write_process(const platform::ProcessName& who, std::uint64_t to, const void* from,
                       std::size_t length) override;
  platform::OwnCopy copy_own(void* to, const void* from, std::size_t length) override;
  bool is_accessible(const void* at, std::size_t length, bool write) override;
  Result<platform::AdoptedPages> adopt(std::uint64_t address, std::uint64_t length,
                                       std::uint64_t most) override;
  bool give_back(const platform::AdoptedPages& pages) override;
  Presence adopted_presence(const platform::AdoptedPages& pages, std::uint64_t address,
                            std::uint64_t length) override;
  void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration timeout) override;
  void wake(std::atomic<std::uint32_t>& word) override;
  void relax(std::uint32_t round) override;
  Status make_pipe(platform::NativeHandle& read_end, platform::NativeHandle& write_end) override;
  platform::NativeHandle keep(platform::NativeHandle handle) override;
  Status write_pipe(int write_end, std::span<const std::byte> bytes) override;
  bool holds_bytes(int pipe_end) override;
  Result<std::unique_ptr<Thread>> start_thread(const char* name,
                                               std::function<void()> body) override;
  std::string setting(const char* name) override;
};

// The one of this process.
LinuxClientHost& client_host();

}  // namespace ib::os
