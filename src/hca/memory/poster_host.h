// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PosterHost: what executing work requests needs of the process it happens in. Implemented by
// user/ (and by tests). Every call may come from any thread that posts or polls.
#pragma once

#include "base/time.h"
#include "hca/layout/layout.h"
#include "platform/barriers.h"
#include "platform/process_name.h"
#include "verbs/control.h"

#include <cstddef>
#include <cstdint>

namespace ib::hca {

class PosterHost {
 public:
  virtual ~PosterHost() = default;
  virtual Instant now() = 0;
  virtual void relax(std::uint32_t round) = 0;
  // Memory of the process behind a slot (path 2). Ok, or the reason why not.
  virtual Status read_process(const platform::ProcessName& who, std::uint64_t from, void* to,
                              std::size_t n) = 0;
  virtual Status write_process(const platform::ProcessName& who, std::uint64_t to, const void* from,
                               std::size_t n) = 0;
  // Memory of this process that may not be there (ClientHost has both).
  virtual platform::OwnCopy copy_own(void* to, const void* from, std::size_t n) = 0;
  virtual bool is_accessible(const void* at, std::size_t n, bool write) = 0;
  // Maps a peer's adopted pages; size in bytes. Slow. Returns nullptr if that is not possible.
  virtual std::byte* map_backing(std::uint32_t index, std::uint32_t generation,
                                 std::uint64_t& size) = 0;
  // Rings the doorbell of a process: its service thread looks at its queue pairs and regions.
  virtual void kick(std::uint32_t slot) = 0;
  // Serves peers' requests for this process's memory (path 3); called while it waits for a peer.
  virtual void serve_bounces() = 0;
  virtual platform::Barriers& barriers() = 0;
  // One event on the channel of a completion queue of any process.
  virtual void notify(std::uint32_t cq) = 0;
  // An asynchronous event on an object of any process.
  virtual void raise(const verbs::control::RaiseEventIn& event) = 0;
  // A failed work request, for `softib trace`.
  virtual void trace(const verbs::control::TraceErrorIn& error) = 0;
};

}  // namespace ib::hca
