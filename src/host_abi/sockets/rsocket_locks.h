// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One thread at a time in the calls for one rsocket.
//
// librdmacm has a lock for each direction, but counts the free places of the send queue, the free
// bytes of both buffers and the control messages of both in plain integers (rs_write_data(),
// rs_poll_cq(), rs_send_credits(), rshutdown() in rdma-core 44). If one thread writes while another
// one reads, counts get lost: bytes are overwritten before they are sent, or a wait has no end.
#pragma once

#include "host_abi/sockets/common/scratch.h"
#include "host_abi/sockets/rdma.h"

#include <poll.h>

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::sockets {

// rshutdown() of the rsocket, which may wait for the peer (its port is down) and holds the lock
// meanwhile. Others do without the rsocket until it is over.
class Ending {
 public:
  explicit Ending(int rs);
  ~Ending();
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  int rs_;
};

// Holds the lock of an rsocket. Calls for it stand in its scope.
class Alone {
 public:
  enum class Patience : std::uint8_t {
    UnlessEnding,
    Endless,  // for the thread that ends it
    Short,
  };
  explicit Alone(int rs, Patience patience = Patience::UnlessEnding);
  ~Alone();
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  // Returns false if another thread has it for long.
  bool valid() const { return valid_; }

 private:
  const Inside inside_;
  int rs_;
  bool valid_;
};

// The locks of all rsockets of one call of rpoll(), but for those that another thread is ending.
class AllAlone {
 public:
  // Descriptors of the kernel may be among the entries.
  AllAlone(const pollfd* entries, nfds_t count);
  ~AllAlone() { release(); }
  AllAlone(const AllAlone&) = delete;
  AllAlone& operator=(const AllAlone&) = delete;
  // Returns false if there is no memory.
  bool valid() { return numbers_.get() != nullptr && held_.get() != nullptr; }

  void take();
  void release();
  bool has(int rs);

 private:
  Scratch<int, 64> numbers_;  // ascending, each once
  Scratch<bool, 64> held_;
  std::size_t count_ = 0;
};

}  // namespace ib::host_abi::sockets
