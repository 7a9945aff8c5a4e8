// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// VerifyingMemory: the host of device memory, some of whose calls fail for the verifier, as those
// of a system that has nothing left (docs/design/0007).
#pragma once

#include "platform/device_memory_host.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace ib::softib {

class VerifyingMemory final : public platform::DeviceMemoryHost {
 public:
  // `fails`: whether this call is to fail now.
  VerifyingMemory(platform::DeviceMemoryHost& real, std::function<bool(std::string_view)> fails)
      : real_(real), fails_(std::move(fails)) {}

  Status create(std::uint64_t size, std::uint64_t space, std::string& reason) override {
    return real_.create(size, space, reason);
  }
  std::byte* base() override { return real_.base(); }
  std::uint64_t space() override { return real_.space(); }
  std::uint64_t size() override { return real_.size(); }
  Status grow(std::uint64_t size, std::string& reason) override {
    return refuses("growing device memory", reason) ? Status::IoError : real_.grow(size, reason);
  }
  void punch(std::uint64_t offset, std::uint64_t length) override { real_.punch(offset, length); }
  std::uint64_t used_bytes() override { return real_.used_bytes(); }
  Result<platform::NativeHandle> device_memory_handle(std::string& reason) override {
    if (refuses("a descriptor of device memory", reason)) return Status::IoError;
    return real_.device_memory_handle(reason);
  }
  Result<platform::NativeHandle> duplicate(const platform::NativeHandle& handle,
                                           std::string& reason) override {
    if (refuses("a copy of a descriptor", reason)) return Status::IoError;
    return real_.duplicate(handle, reason);
  }
  Result<platform::NativeHandle> make_text(std::string_view text, std::string& reason) override {
    if (refuses("a file for a text", reason)) return Status::IoError;
    return real_.make_text(text, reason);
  }
  Result<std::uint64_t> seal_and_measure(const platform::NativeHandle& file,
                                         std::string& reason) override {
    if (refuses("sealing a file", reason)) return Status::IoError;
    return real_.seal_and_measure(file, reason);
  }
  bool is_pipe_end(const platform::NativeHandle& handle, bool write_end) override {
    return real_.is_pipe_end(handle, write_end);
  }
  bool write_pipe(const platform::NativeHandle& write_end,
                  std::span<const std::byte> bytes) override {
    return real_.write_pipe(write_end, bytes);
  }
  std::uint64_t unread_bytes(const platform::NativeHandle& read_end) override {
    return real_.unread_bytes(read_end);
  }
  std::size_t max_handles() override { return real_.max_handles(); }
  platform::Barriers& barriers() override { return real_.barriers(); }
  std::uint64_t page_size() override { return real_.page_size(); }
  std::uint32_t pid() override { return real_.pid(); }
  bool is_alive(std::uint32_t pid) override { return real_.is_alive(pid); }
  void wake(std::atomic<std::uint32_t>& word) override { real_.wake(word); }

 private:
  bool refuses(std::string_view site, std::string& reason) {
    if (!fails_(site)) return false;
    reason = "the verifier made the system refuse: ";
    reason += site;
    return true;
  }

  platform::DeviceMemoryHost& real_;
  std::function<bool(std::string_view)> fails_;
};

}  // namespace ib::softib
