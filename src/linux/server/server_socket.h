// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServerSocket: accepts clients on an AF_UNIX SOCK_SEQPACKET listener. Only processes of our own
// user come in; another uid, even root's, gets `refusal` as its only message.
//
// Thread rule: the loop's thread.
#pragma once

#include "linux/server/server_connection.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace ib::os {

class ServerSocket {
 public:
  struct Options {
    std::size_t max_message = std::size_t{64} * 1024;
    std::vector<std::byte> refusal;
    // Returns whether there is room for one more client; connections beyond that are closed.
    std::function<bool()> has_room;
    std::function<void(std::unique_ptr<ServerConnection>, PeerProcess)> on_client;
    std::function<void(const char* what)> on_problem;  // for the log; rate limited
  };

  // `listener` is bound and listens.
  ServerSocket(EventLoop& loop, NativeHandle listener, Options options);
  ServerSocket(const ServerSocket&) = delete;
  ServerSocket& operator=(const ServerSocket&) = delete;
  ~ServerSocket();  // accepts no more; connections live on

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Raises the limit of descriptors to the maximum: a client costs several.
void raise_descriptor_limit();

}  // namespace ib::os
