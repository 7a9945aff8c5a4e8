// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The socket of one call of the program's, which is not cancelled as long as it has one.
#pragma once

#include "host_abi/sockets/cancellation.h"
#include "host_abi/sockets/table.h"

namespace ib::host_abi::sockets {

class Held {
 public:
  // As find(); holds nothing if that returns nothing.
  explicit Held(int fd);
  ~Held() { let_go(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  explicit operator bool() const { return static_cast<bool>(socket_); }
  Socket* operator->() const { return &*socket_; }
  Socket& operator*() const { return *socket_; }
  void let_go();

 private:
  static void clean(void* held);

  Uncancelled call_;
  int fd_ = -1;
  Ref socket_;
};

// Of calls that move bytes, if `fd` is a connection over RDMA; nothing: the call is the kernel's.
// Waits for the end of an attempt to connect where a blocking call would.
class HeldConnection : public Held {
 public:
  explicit HeldConnection(int fd);
};

// Calls that POSIX calls cancellation points begin with it, if the descriptor is the switch's.
int test_cancel(int fd);

}  // namespace ib::host_abi::sockets
