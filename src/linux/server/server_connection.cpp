// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/server_connection.h"

#include "base/assert.h"
#include "linux/server/event_loop.h"
#include "linux/server/server_mailbox.h"
#include "linux/server/server_message_io.h"

#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <poll.h>

#include <deque>
#include <utility>

namespace ib::os {
namespace {

// From a peer that lets this many messages wait no further requests are read: it must read first.
constexpr std::size_t kManyUnsent = 64;
// Likewise with answers that hold descriptors: all clients together have few of those.
constexpr std::size_t kManyUnsentWithHandles = 4;
// Of a peer that sends many.
constexpr int kManyInATurn = 8;
// The kernel limits a user's descriptors in unread messages, and then refuses them to all its
// processes: a peer with unread messages is sent no more of them.
constexpr auto kLookAgain = std::chrono::milliseconds(5);
// The bound on waiting messages. Only answers to requests read earlier come on top of kManyUnsent.
constexpr std::size_t kMaxUnsentBytes = std::size_t{8} * 1024 * 1024;

}  // namespace

struct ServerConnection::State final : std::enable_shared_from_this<State>, EventLoop::Watched {
  struct Unsent {
    std::vector<std::byte> bytes;
    std::array<NativeHandle, 2> handles;
    bool has_handles() const { return handles[0].valid() || handles[1].valid(); }
  };

  State(EventLoop& event_loop, NativeHandle handle, Buffer receive_buffer)
      : loop(event_loop),
        socket(event_loop.context(), handle.release()),
        pause_timer(event_loop.context()),
        buffer(std::move(receive_buffer)) {}

  int descriptor() { return socket.native_handle(); }
  bool has_hung_up() {
    pollfd poll_one{descriptor(), 0, 0};
    return ::poll(&poll_one, 1, 0) == 1;
  }
  bool may_read() const {
    return !ended && !paused && unsent.size() < kManyUnsent &&
           unsent_with_handles < kManyUnsentWithHandles;
  }

  bool look() override;
  void set_watched(bool on) override;
  bool goes_to_mailbox(std::span<const std::byte> message, bool has_handles);
  void enqueue(std::vector<std::byte> bytes, std::array<NativeHandle, 2> handles);

  void wait_for_messages();
  void read_message();
  void read_on();
  bool read_one();
  void watch_for_hangup();
  void wait_for_room();
  void wait_for_reader();
  void send_unsent();
  void send_waiting();
  void end();

  EventLoop& loop;
  asio::posix::stream_descriptor socket;
  asio::steady_timer pause_timer;
  Buffer buffer;
  Handler* handler = nullptr;  // nullptr: the handler is gone
  std::unique_ptr<ServerMailbox> mailbox;
  std::deque<Unsent> unsent;
  std::size_t unsent_bytes = 0;
  std::size_t unsent_with_handles = 0;
  bool watched = false;   // by the loop
  bool waiting = false;   // a request of the mailbox waits for an event
  bool has_many = false;  // expect_many()
  bool paused = false;
  bool reading = false;  // a wait for messages is under way, or we are in read_message()
  bool sending = false;  // a wait for room, or for the peer to read, is under way
  bool hung_up = false;  // the peer has gone; its messages may still be there
  bool ended = false;
};

void ServerConnection::State::wait_for_messages() {
  reading = true;
  socket.async_wait(asio::posix::stream_descriptor::wait_read,
                    [self = shared_from_this()](const asio::error_code& error) {
                      self->reading = false;
                      if (!error && !self->ended) self->read_message();
                    });
}

// One message a turn: a client waits for each answer, so a second read would find nothing; a few if
// it does not. The wait reports messages that are there already, and other connections get their
// turn in between.
void ServerConnection::State::read_message() {
  reading = true;
  for (int left = has_many ? kManyInATurn : 1; left > 0 && may_read() && read_one(); --left)
    continue;
  reading = false;
  read_on();
}

// Not read_message(): the caller may be in the middle of handling a message.
void ServerConnection::State::read_on() {
  if (may_read() && !reading) wait_for_messages();
  if (may_read() && mailbox != nullptr && mailbox->has_request()) {
    // The look at its bell was in vain if nothing was to be read then.
    asio::post(loop.context(), [self = shared_from_this()] { static_cast<void>(self->look()); });
  }
  if (!may_read() && hung_up) end();
}

// Returns false if there is none.
bool ServerConnection::State::read_one() {
  ServerMessage message;
  switch (receive_message(descriptor(), *buffer, message)) {
    case Transfer::Done: break;
    case Transfer::WouldBlock: return false;
    case Transfer::Ended: end(); return false;
  }
  if (mailbox != nullptr && message.bytes.size() == kBellBytes) {
    static_cast<void>(look());
    return true;
  }
  if (handler != nullptr) handler->on_message(std::move(message));
  return true;
}

void ServerConnection::State::set_watched(bool on) {
  watched = on;
  mailbox->set_watched(on);
  if (!on && waiting && handler != nullptr) handler->on_look(true);
}

bool ServerConnection::State::look() {
  if (waiting && handler != nullptr) handler->on_look(false);
  if (!may_read() || !mailbox->has_request()) return false;
  const auto self = shared_from_this();
  ServerMessage message;
  message.bytes = mailbox->take(*buffer);
  loop.watch(*this);
  if (handler != nullptr) handler->on_message(std::move(message));
  if (ended) return true;
  if (mailbox->is_on_same_core()) loop.yield_soon();
  return true;
}

bool ServerConnection::State::goes_to_mailbox(std::span<const std::byte> message,
                                              bool has_handles) {
  if (mailbox == nullptr || !mailbox->is_answer(message)) return false;
  if (has_handles || !ServerMailbox::fits(message)) {
    mailbox->answer_elsewhere();
    return false;
  }
  if (mailbox->put(message)) enqueue(std::vector<std::byte>(kBellBytes), {});
  return true;
}

void ServerConnection::State::enqueue(std::vector<std::byte> bytes,
                                      std::array<NativeHandle, 2> handles) {
  if (unsent_bytes + bytes.size() > kMaxUnsentBytes) return end();
  unsent_bytes += bytes.size();
  unsent.push_back({std::move(bytes), std::move(handles)});
  if (unsent.back().has_handles()) ++unsent_with_handles;
  if (!sending) send_unsent();
}

// Without reading, the end of the peer would be missed.
void ServerConnection::State::watch_for_hangup() {
  socket.async_wait(asio::posix::stream_descriptor::wait_error,
                    [self = shared_from_this()](const asio::error_code& error) {
                      if (error || self->ended) return;
                      if (self->has_hung_up()) {
                        self->hung_up = true;
                        self->read_on();  // a reader gets to the end by itself
                      } else {
                        self->watch_for_hangup();
                      }
                    });
}

void ServerConnection::State::wait_for_room() {
  sending = true;
  socket.async_wait(asio::posix::stream_descriptor::wait_write,
                    [self = shared_from_this()](const asio::error_code& error) {
                      self->sending = false;
                      if (!error && !self->ended) self->send_waiting();
                    });
}

// The kernel has no event for this.
void ServerConnection::State::wait_for_reader() {
  sending = true;
  pause_timer.expires_after(kLookAgain);
  pause_timer.async_wait([self = shared_from_this()](const asio::error_code& error) {
    self->sending = false;
    if (!error && !self->ended) self->send_waiting();
  });
}

void ServerConnection::State::send_waiting() {
  send_unsent();
  if (!ended && unsent.empty() && handler != nullptr) handler->on_drained();
}

void ServerConnection::State::send_unsent() {
  while (!unsent.empty()) {
    const Unsent& first = unsent.front();
    if (first.has_handles() && has_unread_messages(descriptor())) return wait_for_reader();
    switch (send_message(descriptor(), first.bytes, first.handles)) {
      case Transfer::Done: break;
      case Transfer::WouldBlock: return wait_for_room();
      case Transfer::Ended: return end();
    }
    unsent_bytes -= first.bytes.size();
    if (first.has_handles()) --unsent_with_handles;
    unsent.pop_front();
  }
  read_on();
}

void ServerConnection::State::end() {
  if (ended) return;
  ended = true;
  loop.unwatch(*this);
  unsent.clear();
  unsent_bytes = 0;
  unsent_with_handles = 0;
  asio::error_code ignored;
  socket.close(ignored);  // also ends the waits
  pause_timer.cancel();
  // From the loop, so that the caller does not find its objects destroyed.
  asio::post(loop.context(), [self = shared_from_this()] {
    if (Handler* who = std::exchange(self->handler, nullptr)) who->on_closed();
  });
}

ServerConnection::ServerConnection(EventLoop& loop, NativeHandle socket, Buffer buffer)
    : state_(std::make_shared<State>(loop, std::move(socket), std::move(buffer))) {}

ServerConnection::~ServerConnection() {
  state_->handler = nullptr;
  state_->end();
}

PeerProcess ServerConnection::peer() const {
  return state_->ended ? PeerProcess{} : peer_of(state_->descriptor());
}

bool ServerConnection::peer_has_gone() const {
  return state_->ended || state_->has_hung_up();
}

void ServerConnection::start(Handler& handler) {
  IB_ASSERT(state_->handler == nullptr);
  state_->handler = &handler;
  state_->watch_for_hangup();
  state_->wait_for_messages();
}

Result<NativeHandle> ServerConnection::open_mailbox(std::string& reason) {
  if (state_->mailbox != nullptr) {
    reason = "this connection has a mailbox already";
    return Status::InvalidState;
  }
  NativeHandle file;
  auto made = ServerMailbox::create(file, reason);
  if (!made) return made.error();
  state_->mailbox = *std::move(made);
  return file;
}

void ServerConnection::offer(std::uint32_t number) {
  IB_ASSERT(state_->mailbox != nullptr);
  state_->mailbox->offer(number);
}

bool ServerConnection::has_offer(std::uint32_t number) const {
  IB_ASSERT(state_->mailbox != nullptr);
  return state_->mailbox->has_offer(number);
}

bool ServerConnection::withdraw_offer(std::uint32_t number) {
  IB_ASSERT(state_->mailbox != nullptr);
  return state_->mailbox->withdraw_offer(number);
}

bool ServerConnection::is_watched() const {
  return state_->watched;
}

void ServerConnection::set_waiting(bool on) {
  state_->waiting = on;
}

void ServerConnection::send(std::span<const std::byte> bytes, std::array<NativeHandle, 2> handles) {
  if (state_->ended) return;
  const bool has_handles = handles[0].valid() || handles[1].valid();
  if (state_->goes_to_mailbox(bytes, has_handles)) return;
  state_->enqueue({bytes.begin(), bytes.end()}, std::move(handles));
}

bool ServerConnection::has_unsent() const {
  return !state_->unsent.empty();
}

void ServerConnection::expect_many() {
  state_->has_many = true;
}

void ServerConnection::pause() {
  state_->paused = true;
  state_->read_on();
}

void ServerConnection::resume() {
  state_->paused = false;
  state_->read_on();
}

void ServerConnection::close() {
  if (!state_->ended && !state_->sending) state_->send_unsent();
  state_->end();
}

}  // namespace ib::os
