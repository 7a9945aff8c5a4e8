// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory of softibd's HCAs on Linux: a memfd that is sealed against shrinking, so that no
// client can make the others fault.
#pragma once

#include "platform/device_memory_host.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ib::os {

class ServerDeviceMemory : public platform::DeviceMemoryHost {
 public:
  ServerDeviceMemory() = default;
  ServerDeviceMemory(const ServerDeviceMemory&) = delete;
  ServerDeviceMemory& operator=(const ServerDeviceMemory&) = delete;
  ~ServerDeviceMemory() override;

  Status create(std::uint64_t size, std::uint64_t space, std::string& reason) override;
  std::uint64_t space() override { return space_; }
  std::byte* base() override { return base_; }
  std::uint64_t size() override;
  Status grow(std::uint64_t size, std::string& reason) override;
  void punch(std::uint64_t offset, std::uint64_t length) override;
  std::uint64_t used_bytes() override;

  Result<platform::NativeHandle> device_memory_handle(std::string& reason) override;
  Result<platform::NativeHandle> duplicate(const platform::NativeHandle& handle,
                                           std::string& reason) override;
  Result<platform::NativeHandle> make_text(std::string_view text, std::string& reason) override;
  Result<std::uint64_t> seal_and_measure(const platform::NativeHandle& file,
                                         std::string& reason) override;
  bool is_pipe_end(const platform::NativeHandle& handle, bool write_end) override;
  bool write_pipe(const platform::NativeHandle& write_end,
                  std::span<const std::byte> bytes) override;

  std::uint64_t unread_bytes(const platform::NativeHandle& read_end) override;

  std::size_t max_handles() override;

  platform::Barriers& barriers() override;
  std::uint64_t page_size() override;
  std::uint32_t pid() override;
  bool is_alive(std::uint32_t pid) override;
  void wake(std::atomic<std::uint32_t>& word) override;

 private:
  platform::NativeHandle file_;
  std::byte* base_ = nullptr;
  std::uint64_t space_ = 0;
};

}  // namespace ib::os
