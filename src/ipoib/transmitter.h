// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transmitter: the buffers into which frames of the kernel are read, and the requests that send
// them from there. A buffer is free again when its reader has let it go and every request that
// names it has completed. All queue pairs of an interface share it.
//
// The newest free buffer is taken first: it is still in the processor's cache. Nothing is allocated
// after create().
// Thread rule: one thread at a time.
#pragma once

#include "ipoib/registered_memory.h"
#include "ulp/ipoib/host.h"
#include "user/queue_pair.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace ib::ipoib::driver {

class Transmitter {
 public:
  static constexpr std::uint32_t kBuffers = 96;
  static constexpr std::uint32_t kRequests = 4096;
  // Requests of one queue pair that may be under way.
  static constexpr std::uint32_t kInline = 512;
  static constexpr std::uint32_t kElements = 2;

  static Result<std::unique_ptr<Transmitter>> create(user::Hca& hca,
                                                     const user::ProtectionDomain& pd);

  // -- Buffers.
  bool has_buffer() const { return !free_buffers_.empty(); }
  std::optional<std::uint32_t> take();
  std::span<std::byte> bytes(std::uint32_t buffer) const;
  void let_go(std::uint32_t buffer);

  // -- Requests. `request` has its opcode and destination. Returns false if the queue pair or this
  // has no room, or the queue pair does not send.
  bool post(user::QueuePair& to, user::SendWqe& request, const Outgoing& message);
  void complete(std::uint64_t wr_id);
  // The queue pair was reset or destroyed: no completion comes.
  void abandon(std::uint32_t qpn);
  std::uint32_t under_way() const { return kRequests - static_cast<std::uint32_t>(free_.size()); }

 private:
  static constexpr std::uint32_t kNoBuffer = ~0u;
  static constexpr std::size_t kHeadBytes = 256;
  struct Request {
    std::uint32_t serial = 0;  // of its use: a completion that is late names another one
    std::uint32_t qpn = 0;     // 0: free
    std::uint32_t buffer = kNoBuffer;
  };

  explicit Transmitter(std::unique_ptr<RegisteredMemory> memory);
  std::uint32_t buffer_of(std::span<const std::byte> part) const;
  std::uint32_t gather(std::uint32_t number, const Outgoing& message,
                       std::array<user::Sge, kElements>& list);
  bool copy_whole(const Outgoing& message, Request& request, user::Sge& one);
  void release(std::uint32_t number);

  std::unique_ptr<RegisteredMemory> memory_;  // buffers, then a head for each request
  std::vector<std::uint32_t> free_buffers_;
  std::vector<std::uint32_t> uses_;  // of each buffer
  std::vector<std::uint32_t> free_;
  std::vector<Request> requests_;
};

}  // namespace ib::ipoib::driver
