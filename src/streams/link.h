// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Link: the descriptor that a program has of an end (end.h), as the streams use it.
#pragma once

#include <cstdint>

namespace ib::streams {

// By a descriptor that this process has of it. Packets have no bytes.
class Link {
 public:
  virtual ~Link() = default;
  // One packet into the queue of the peer's link. Returns false if the peer's is closed,
  // or that is not possible now.
  virtual bool ring() = 0;
  // Takes up to `most` packets from the own queue. `foreign`: one had bytes, so somebody has
  // written to the link past the switch.
  struct Taken {
    std::uint32_t count = 0;
    bool foreign = false;
  };
  virtual Taken take(std::uint32_t most) = 0;
  virtual bool is_writable() = 0;
  virtual bool has_hung_up() = 0;
  // The peer's link tells its program that no bytes will come (POLLRDHUP), and takes no packet any
  // more; the same by the peer itself.
  virtual void shut_write() = 0;
  virtual void shut_read() = 0;
};

}  // namespace ib::streams
