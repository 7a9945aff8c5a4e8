// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ControlChannel: how a client reaches softibd's device stacks (verbs/control.h describes the
// messages). Implementations: an AF_UNIX socket (linux/), an in-process I/O manager (tests).
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace ib::platform {

// A file descriptor or handle that closes itself. -1: none. The close function is the platform's.
class NativeHandle {
 public:
  NativeHandle() = default;
  NativeHandle(int value, void (*close)(int)) : value_(value), close_(close) {}
  NativeHandle(NativeHandle&& other) noexcept
      : value_(std::exchange(other.value_, -1)), close_(other.close_) {}
  NativeHandle& operator=(NativeHandle&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = std::exchange(other.value_, -1);
      close_ = other.close_;
    }
    return *this;
  }
  ~NativeHandle() { reset(); }

  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }
  bool valid() const { return value_ >= 0; }
  void reset() {
    if (value_ >= 0 && close_ != nullptr) close_(value_);
    value_ = -1;
  }

 private:
  int value_ = -1;
  void (*close_)(int) = nullptr;
};

struct ControlReply {
  Status status = Status::Ok;
  std::uint64_t information = 0;
  std::size_t out_size = 0;             // bytes of the output buffer that were filled
  std::array<NativeHandle, 2> handles;  // as many as the code has
  std::string reason;                   // in words; empty if status is Ok
};

class ControlChannel {
 public:
  virtual ~ControlChannel() = default;
  // Sends one request and waits for its answer; serialised, any thread (passive level). Handles
  // are borrowed for the call. An answer longer than `out` is cut. Disconnected once softibd is
  // gone, for this and every later call.
  virtual ControlReply call(std::uint32_t code, std::uint32_t file, std::span<const std::byte> in,
                            std::span<std::byte> out, std::span<const int> handles = {}) = 0;
  // Sends a request whose answer nobody waits for, which softibd executes before any later one of
  // this channel. Its answer is lost. Returns false if that is not possible now: then call(). It
  // may wait for what was submitted before.
  virtual bool submit([[maybe_unused]] std::uint32_t code, [[maybe_unused]] std::uint32_t file,
                      [[maybe_unused]] std::span<const std::byte> in) {
    return false;
  }
  // Waits until softibd has executed what was submitted, or is gone.
  virtual void settle() {}
  // Ends a call in which another thread waits, and all later ones, with Disconnected.
  virtual void shut_down() = 0;
};

}  // namespace ib::platform
