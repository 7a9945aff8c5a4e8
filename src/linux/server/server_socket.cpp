// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/server_socket.h"

#include "linux/process/client_handle.h"
#include "linux/process/client_relax.h"
#include "linux/server/event_loop.h"
#include "linux/server/server_message_io.h"

#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace ib::os {
namespace {

constexpr auto kRetryDelay = std::chrono::milliseconds(100);
constexpr auto kProblemInterval = std::chrono::seconds(5);
// The number of clients to accept before other work gets its turn.
constexpr int kAcceptsPerTurn = 16;

NativeHandle open_reserve() {
  return own_descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

struct ServerSocket::State : std::enable_shared_from_this<State> {
  State(EventLoop& event_loop, NativeHandle handle, Options the_options)
      : loop(event_loop),
        listener(event_loop.context(), handle.release()),
        retry(event_loop.context()),
        reserve(open_reserve()),
        buffer(std::make_shared<std::vector<std::byte>>(the_options.max_message)),
        options(std::move(the_options)) {
    listener.non_blocking(true);
  }

  void wait();
  void accept_some();
  bool accept_one();
  bool turn_away_one();
  void admit(NativeHandle socket);
  void retry_later();
  void problem(const char* what);

  EventLoop& loop;
  asio::posix::stream_descriptor listener;
  asio::steady_timer retry;
  NativeHandle reserve;  // given up for a moment when we are out of descriptors
  ServerConnection::Buffer buffer;
  Options options;
  Instant last_problem{};
  bool closed = false;
};

void ServerSocket::State::wait() {
  listener.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](const asio::error_code& error) {
                        if (!error && !self->closed) self->accept_some();
                      });
}

void ServerSocket::State::accept_some() {
  for (int count = 0; count < kAcceptsPerTurn && !closed; ++count) {
    errno = 0;
    if (accept_one()) continue;
    if (!is_shortage(errno)) break;
    // The client stays in the backlog, so the listener stays readable: without a pause the loop
    // would spin.
    problem("out of file descriptors: a client was turned away");
    if (!turn_away_one()) return retry_later();
  }
  if (!closed) wait();
}

bool ServerSocket::State::accept_one() {
  NativeHandle socket = own_descriptor(
      ::accept4(listener.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return errno == ECONNABORTED || errno == EINTR;
  admit(std::move(socket));
  return true;
}

// With the reserve given up there is room to accept a client and hang up, which it detects;
// otherwise it would wait for an answer that never comes.
bool ServerSocket::State::turn_away_one() {
  if (!reserve.valid()) {
    reserve = open_reserve();
    return false;
  }
  reserve.reset();
  const bool accepted =
      own_descriptor(::accept4(listener.native_handle(), nullptr, nullptr, SOCK_CLOEXEC)).valid();
  reserve = open_reserve();
  return accepted;
}

void ServerSocket::State::admit(NativeHandle socket) {
  const PeerProcess peer = peer_of(socket.get());
  if (peer.uid != ::geteuid()) {
    problem("a process of another user was refused");
    (void)send_message(socket.get(), options.refusal, {});
    return;
  }
  if (options.has_room && !options.has_room())
    return problem("too many clients: one was turned away");
  options.on_client(std::make_unique<ServerConnection>(loop, std::move(socket), buffer), peer);
}

void ServerSocket::State::retry_later() {
  retry.expires_after(kRetryDelay);
  retry.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error && !self->closed) self->wait();
  });
}

void ServerSocket::State::problem(const char* what) {
  const Instant now = monotonic_now();
  if (!options.on_problem || (last_problem != Instant{} && now - last_problem < kProblemInterval))
    return;
  last_problem = now;
  options.on_problem(what);
}

ServerSocket::ServerSocket(EventLoop& loop, NativeHandle listener, Options options)
    : state_(std::make_shared<State>(loop, std::move(listener), std::move(options))) {
  state_->wait();
}

ServerSocket::~ServerSocket() {
  state_->closed = true;
  asio::error_code ignored;
  state_->listener.close(ignored);
  state_->retry.cancel();
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // at worst it stays as it is
}

}  // namespace ib::os
