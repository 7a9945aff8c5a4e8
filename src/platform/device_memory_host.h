// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operating system for the device memory of softibd's HCAs: one file that every client maps,
// files with text for tools, waking sleepers, and the state of processes.
//
// Thread rule: the reactor's thread; nothing here blocks.
#pragma once

#include "base/result.h"
#include "platform/barriers.h"
#include "platform/control_channel.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ib::platform {

class DeviceMemoryHost {
 public:
  virtual ~DeviceMemoryHost() = default;

  // Makes the file, `size` bytes of zeros that cost memory only once touched, and maps `space`
  // bytes of address space over it (shared, read-write); less where this process may not have so
  // much, but room for twice the file. The file cannot be shrunk, by anyone. To be called once.
  virtual Status create(std::uint64_t size, std::uint64_t space, std::string& reason) = 0;
  virtual std::byte* base() = 0;
  virtual std::uint64_t space() = 0;  // that is mapped: how long the file can get
  virtual std::uint64_t size() = 0;   // of the file, as the kernel reports it
  // Lengthens the file; does nothing if it is that long already.
  virtual Status grow(std::uint64_t size, std::string& reason) = 0;
  // Makes [offset, offset + length) zeros and returns whole pages in it to the kernel.
  virtual void punch(std::uint64_t offset, std::uint64_t length) = 0;
  virtual std::uint64_t used_bytes() = 0;  // pages of the file that exist

  // A handle of the same file, for a client.
  virtual Result<NativeHandle> device_memory_handle(std::string& reason) = 0;
  virtual Result<NativeHandle> duplicate(const NativeHandle& handle, std::string& reason) = 0;
  // A memory file with this content, which its reader cannot change.
  virtual Result<NativeHandle> make_text(std::string_view text, std::string& reason) = 0;
  // The size of a client's memory file, which is sealed against shrinking by the call: otherwise
  // its owner could make the processes that map it fault. InvalidParameter: no memory file, or
  // sealing fails.
  virtual Result<std::uint64_t> seal_and_measure(const NativeHandle& file, std::string& reason) = 0;
  virtual bool is_pipe_end(const NativeHandle& handle, bool write_end) = 0;
  // Writes all of `bytes` or nothing. Returns false if the pipe is full or its reader is gone.
  // Never waits.
  virtual bool write_pipe(const NativeHandle& write_end, std::span<const std::byte> bytes) = 0;

  // Bytes in a pipe that its reader has not taken; 0 if it is none.
  virtual std::uint64_t unread_bytes(const NativeHandle& read_end) = 0;

  virtual std::size_t max_handles() = 0;  // that this process may have open

  virtual Barriers& barriers() = 0;
  virtual std::uint64_t page_size() = 0;
  virtual std::uint32_t pid() = 0;  // of this process
  // Returns whether code of this process may still run: false for one that was waited for or is
  // dying.
  virtual bool is_alive(std::uint32_t pid) = 0;
  // Wakes all threads that sleep on this word of device memory, in any process.
  virtual void wake(std::atomic<std::uint32_t>& word) = 0;
};

}  // namespace ib::platform
