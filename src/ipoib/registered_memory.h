// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RegisteredMemory: memory of an HCA with one key, for the buffers of queue pairs.
//
// It is device memory: every process of the fabric has it mapped, so that peers copy into it
// directly, whatever namespaces the two are in.
#pragma once

#include "user/hca.h"

#include <cstddef>
#include <memory>
#include <span>

namespace ib::ipoib::driver {

class RegisteredMemory {
 public:
  static Result<std::unique_ptr<RegisteredMemory>> create(user::Hca& hca,
                                                          const user::ProtectionDomain& pd,
                                                          std::size_t length);
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
  // No queue pair uses it any more.
  ~RegisteredMemory();

  std::span<std::byte> bytes() const { return memory_->bytes(); }
  bool holds(std::span<const std::byte> part) const;
  user::Sge sge(std::span<const std::byte> part) const;

 private:
  RegisteredMemory(std::unique_ptr<user::DeviceMemory> memory,
                   std::unique_ptr<user::MemoryRegion> region)
      : memory_(std::move(memory)), region_(std::move(region)) {}

  std::unique_ptr<user::DeviceMemory> memory_;
  std::unique_ptr<user::MemoryRegion> region_;
};

}  // namespace ib::ipoib::driver
