// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServerConnection: one client on an AF_UNIX SOCK_SEQPACKET socket. Whole messages and the file
// descriptors that ride with them come in and go out; the handler interprets them.
//
// The peer is hostile: it may send anything, at any rate, never read its messages, and die at any
// moment. Hence: messages longer than the buffer are cut and marked; descriptors beyond two are
// closed; the handler stops a flood with pause(); the queue of messages to send is bounded, and a
// connection that exceeds it is cut off.
//
// Thread rule: the loop's thread. on_closed() always comes from the loop, never from inside a call
// to this class, and is the last call.
#pragma once

#include "base/result.h"
#include "platform/control_channel.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ib::os {

class EventLoop;
using platform::NativeHandle;

// The process at the other end, by SO_PEERCRED: the caller of connect().
struct PeerProcess {
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
};

struct ServerMessage {
  std::span<const std::byte> bytes;  // valid during the call
  std::array<NativeHandle, 2> handles;
  bool truncated = false;     // it was longer than the buffer; the rest is lost
  bool handles_lost = false;  // more than two descriptors came, or we could not hold them
};

class ServerConnection {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_message(ServerMessage message) = 0;
    // While a request of the mailbox waits (set_waiting): the loop looks at the mailbox. `last`: it
    // is about to sleep, and an answer costs a bell from now on.
    virtual void on_look(bool last) { static_cast<void>(last); }
    // Messages that had to wait have been sent, all of them.
    virtual void on_drained() {}
    virtual void on_closed() = 0;  // may destroy the connection
  };
  // The buffer for incoming messages, of the largest size; the connections of a loop share it.
  using Buffer = std::shared_ptr<std::vector<std::byte>>;

  ServerConnection(EventLoop& loop, NativeHandle socket, Buffer buffer);
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;
  ~ServerConnection();  // closes without a call to the handler

  PeerProcess peer() const;
  // Queries the kernel; on_closed() may still be on its way, behind other work of the loop.
  bool peer_has_gone() const;

  // Once, before anything else.
  void start(Handler& handler);

  // Makes a mailbox (linux/mailbox.h); returns its file, which the caller sends to the peer.
  // Requests come from it, and answers go to it, by themselves from now on. Errors:
  // InvalidState (there is one), InsufficientResources, IoError.
  Result<NativeHandle> open_mailbox(std::string& reason);

  // Those of its mailbox, which it has.
  void offer(std::uint32_t number);
  bool has_offer(std::uint32_t number) const;
  bool withdraw_offer(std::uint32_t number);

  // Whether the loop looks at the mailbox now.
  bool is_watched() const;
  void set_waiting(bool on);  // on_look() from now on

  // Sends a message, now or as soon as the peer has read others; in order. After close() it does
  // nothing. The answer to a request from the mailbox goes there if it fits and has no handles.
  void send(std::span<const std::byte> bytes, std::array<NativeHandle, 2> handles = {});

  // Whether messages wait because the peer has not read others; on_drained() follows.
  bool has_unsent() const;

  // The peer sends messages without waiting for answers: several are read in one turn.
  void expect_many();

  // No on_message() until resume(). The end of the peer is still detected.
  void pause();
  void resume();

  // Tries to send waiting messages (without blocking), then ends the connection.
  void close();

 private:
  struct State;
  std::shared_ptr<State> state_;  // the loop's pending operations hold it too
};

}  // namespace ib::os
