// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Facts that this process has seen of its open umad files: their agents, and the transaction ids
// that it has sent. A MAD of a known agent with a new id is written without waiting for an answer;
// softibd itself judges all others. So what is missing here costs time, nothing else.
//
// The agent of a file that another process has unregistered may be known here still: softibd loses
// what is written to it, where the kernel would say EIO.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

// Any thread, also in signal handlers: nobody waits. All zeros: nothing is known.
class UmadMirror {
 public:
  // As softibd has said.
  void note(std::uint32_t file, std::size_t header_size, std::uint32_t agents);
  void forget_agent(std::uint32_t file, std::uint32_t agent);
  // 0: not known.
  std::size_t header_size(std::uint32_t file) const;
  bool has_agent(std::uint32_t file, std::uint32_t agent) const;

  // A MAD is about to be written. Returns false if one with this id may be waiting for a response.
  bool may_send(std::uint32_t file, std::uint32_t tid, bool waits);
  // One with this id has been read.
  void received(std::uint32_t file, std::uint32_t tid);

 private:
  static constexpr std::size_t kFiles = 64;
  static constexpr std::size_t kTids = 4096;

  std::uint64_t word(std::uint32_t file) const;
  static std::size_t place_of(std::uint64_t key);

  std::array<std::atomic<std::uint64_t>, kFiles> files_{};
  std::array<std::atomic<std::uint64_t>, kTids> tids_{};
};

}  // namespace ib::host_abi::preload
