// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sending and taking messages without a wait: what finds no room is kept until the socket has some.
// user/services/service_channel.cpp gives it requests and calls back with the answers.
#include "linux/client/client_requests.h"

#include "linux/client/client_fork.h"
#include "linux/client/client_socket.h"
#include "linux/process/client_handle.h"
#include "linux/process/client_signals.h"
#include "linux/process/kept_descriptor.h"
#include "linux/process/process_number.h"
#include "verbs/control.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

namespace ib::os {
namespace {

using platform::NativeHandle;
namespace control = verbs::control;

constexpr const char* kGone = "softibd closed the connection: it was stopped or has crashed";

class SocketRequests final : public platform::RequestChannel {
 public:
  SocketRequests(NativeHandle socket, NativeHandle set)
      : socket_(keep_descriptor(std::move(socket))),
        set_(std::move(set)),
        owner_(process_number()),
        buffer_(control::kMaxMessage) {
    are_registered_ = close_in_children(socket_.get());
    if (are_registered_ && !close_in_children(set_.get())) {
      forget_close_in_children(socket_.get());
      are_registered_ = false;
    }
  }
  SocketRequests(const SocketRequests&) = delete;
  SocketRequests& operator=(const SocketRequests&) = delete;
  ~SocketRequests() override {
    if (!are_registered_) return;
    if (is_foreign()) {  // the numbers were closed in this child, and may name other files
      (void)socket_.release();
      (void)set_.release();
      return;
    }
    forget_close_in_children(socket_.get());
    forget_close_in_children(set_.get());
  }

  int descriptor() const override { return set_.get(); }
  const std::string& end() const override { return end_; }
  Status send(std::uint32_t code, std::uint32_t file, std::uint64_t tag,
              std::span<const std::byte> in) override;
  std::optional<platform::RequestAnswer> take() override;

  // Returns false if the set cannot be made.
  bool watch(bool for_room, int operation) {
    epoll_event event{};
    event.events = EPOLLIN | (for_room ? EPOLLOUT : 0u);
    return ::epoll_ctl(set_.get(), operation, socket_.get(), &event) == 0;
  }

 private:
  bool is_foreign() const { return process_number() != owner_; }
  bool may_be_used();
  bool put(std::span<const std::byte> message);
  void send_unsent();
  void finish(std::string why) {
    if (end_.empty()) end_ = std::move(why);
  }

  NativeHandle socket_;
  NativeHandle set_;
  const std::uint64_t owner_;
  bool are_registered_ = false;  // both descriptors, for forks
  std::vector<std::byte> buffer_;
  std::deque<std::vector<std::byte>> unsent_;
  std::string end_;
};

bool SocketRequests::may_be_used() {
  if (is_foreign()) {
    finish("this process was forked from the one that opened the connection");
  } else if (is_replaced(socket_.get())) {
    finish("the program has closed the descriptor of its connection to softibd");
  }
  return end_.empty();
}

// Returns false if there is no room now. A message that softibd cannot get any more is dropped:
// take() finds the end.
bool SocketRequests::put(std::span<const std::byte> message) {
  while (::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EAGAIN || errno == ENOBUFS) return false;
    if (errno != EINTR) return true;
  }
  return true;
}

void SocketRequests::send_unsent() {
  if (unsent_.empty()) return;
  while (!unsent_.empty() && put(unsent_.front())) unsent_.pop_front();
  if (unsent_.empty()) (void)watch(false, EPOLL_CTL_MOD);
}

Status SocketRequests::send(std::uint32_t code, std::uint32_t file, std::uint64_t tag,
                            std::span<const std::byte> in) {
  const CancelGuard no_cancel;
  if (!may_be_used()) return Status::Disconnected;
  std::vector<std::byte> message(sizeof(control::RequestHeader) + in.size());
  if (message.size() > control::kMaxMessage) return Status::InvalidParameter;
  control::RequestHeader header;
  header.length = static_cast<std::uint32_t>(message.size());
  header.code = code;
  header.tag = tag;
  header.file = file;
  std::memcpy(message.data(), &header, sizeof header);
  if (!in.empty()) std::memcpy(message.data() + sizeof header, in.data(), in.size());
  if (unsent_.empty() && put(message)) return Status::Ok;
  if (unsent_.empty()) (void)watch(true, EPOLL_CTL_MOD);
  unsent_.push_back(std::move(message));
  return Status::Ok;
}

std::optional<platform::RequestAnswer> SocketRequests::take() {
  const CancelGuard no_cancel;
  if (!may_be_used()) return std::nullopt;
  send_unsent();
  ssize_t got = 0;
  do {
    got = ::recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return std::nullopt;
  if (got <= 0) {
    finish(kGone);
    return std::nullopt;
  }
  const auto size = static_cast<std::size_t>(got);
  control::ReplyHeader header;
  if (size >= sizeof header) std::memcpy(&header, buffer_.data(), sizeof header);
  if (size < sizeof header || size > buffer_.size() || header.length != size ||
      header.status >= kStatusCount) {
    finish("softibd sent a message that is no answer");
    return std::nullopt;
  }
  platform::RequestAnswer answer;
  answer.tag = header.tag;
  answer.status = static_cast<Status>(header.status);
  answer.information = header.information;
  answer.body = std::span(buffer_).subspan(sizeof header, size - sizeof header);
  return answer;
}

}  // namespace

Result<std::unique_ptr<platform::RequestChannel>> connect_for_requests(const std::string& path,
                                                                       std::string& reason) {
  IB_TRY(socket, connect_socket(path, reason));
  NativeHandle set = own_descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!set.valid()) {
    const int error = errno;
    reason = std::string("cannot create an epoll set: ") + std::strerror(error);
    return no_descriptor(error);
  }
  auto channel = std::make_unique<SocketRequests>(std::move(socket), std::move(set));
  if (!channel->watch(false, EPOLL_CTL_ADD)) {
    reason = std::string("cannot watch the connection to softibd: ") + std::strerror(errno);
    return Status::IoError;
  }
  return std::unique_ptr<platform::RequestChannel>(std::move(channel));
}

}  // namespace ib::os
