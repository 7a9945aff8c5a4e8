// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/client_channel.h"

#include "linux/client/brief_receive.h"
#include "linux/client/client_fork.h"
#include "linux/client/client_handle.h"
#include "linux/received_descriptors.h"
#include "platform/level.h"
#include "verbs/control.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

namespace ib::os {
namespace {

using platform::ControlReply;
using platform::NativeHandle;
namespace control = verbs::control;

// More than the protocol allows, so that a surplus is detected and no descriptor leaks.
constexpr std::size_t kFdRoom = 8;
static_assert(kFdRoom >= control::kMaxFds);

ControlReply failed(Status status, std::string reason) {
  ControlReply reply;
  reply.status = status;
  reply.reason = std::move(reason);
  return reply;
}

std::string with_errno(const std::string& what, int error) {
  return what + ": " + std::strerror(error);
}

class SocketChannel final : public platform::ControlChannel {
 public:
  explicit SocketChannel(NativeHandle socket)
      : socket_(std::move(socket)), owner_(::getpid()), buffer_(control::kMaxMessage) {
    registered_ = close_in_children(socket_.get());
  }
  SocketChannel(const SocketChannel&) = delete;
  SocketChannel& operator=(const SocketChannel&) = delete;
  ~SocketChannel() override {
    if (foreign()) {
      // The number was closed in this child already and may name another file.
      if (registered_) (void)socket_.release();
      return;
    }
    if (registered_) forget_close_in_children(socket_.get());
  }

  ControlReply call(std::uint32_t code, std::uint32_t file, std::span<const std::byte> in,
                    std::span<std::byte> out, std::span<const int> handles) override {
    require_passive("a call to softibd");
    // Before the lock: in a child it may be held by a thread of the parent, which never releases
    // it.
    if (foreign()) {
      return failed(Status::Disconnected,
                    "this process was forked from the one that opened the device; open it again");
    }
    if (in.size() > control::kMaxMessage - sizeof(control::RequestHeader) ||
        handles.size() > control::kMaxFds) {
      return failed(Status::InvalidParameter, "the request is too large for the control socket");
    }
    const std::lock_guard lock(mutex_);
    if (gone_.load(std::memory_order_relaxed)) return disconnected();
    control::RequestHeader header;
    header.length = static_cast<std::uint32_t>(sizeof header + in.size());
    header.code = code;
    header.tag = ++last_tag_;
    header.file = file;
    if (const int error = send(header, in, handles); error != 0) return lost("send", error);
    return receive(header.tag, out);
  }

  void shut_down() override {
    if (foreign()) return;  // shutdown(2) would end the parent's connection
    gone_.store(true, std::memory_order_relaxed);
    (void)::shutdown(socket_.get(), SHUT_RDWR);
  }

 private:
  bool foreign() const { return ::getpid() != owner_; }
  int send(const control::RequestHeader& header, std::span<const std::byte> in,
           std::span<const int> handles);
  ControlReply receive(std::uint64_t tag, std::span<std::byte> out);
  // Reads one message into buffer_. Returns its length, 0 at the end of the connection, or -errno.
  ssize_t receive_one(std::array<NativeHandle, kFdRoom>& handles, int& flags);
  ControlReply finish(const control::ReplyHeader& header, std::span<std::byte> out,
                      std::array<NativeHandle, kFdRoom>& handles, int flags);
  ControlReply disconnected() { return failed(Status::Disconnected, gone_reason_); }
  ControlReply lost(const char* operation, int error);

  NativeHandle socket_;
  const pid_t owner_;
  bool registered_ = false;
  std::mutex mutex_;
  std::vector<std::byte> buffer_;
  platform::BriefPolling polling_;
  std::uint64_t last_tag_ = 0;
  std::atomic<bool> gone_{false};
  std::string gone_reason_ = "the connection to softibd was shut down by this process";
};

ControlReply SocketChannel::lost(const char* operation, int error) {
  if (!gone_.exchange(true)) {
    gone_reason_ = "softibd closed the connection: it was stopped or has crashed";
    if (error != 0 && error != EPIPE && error != ECONNRESET) {
      gone_reason_ =
          with_errno(std::string("the connection to softibd broke in ") + operation, error);
    }
  }
  return disconnected();
}

int SocketChannel::send(const control::RequestHeader& header, std::span<const std::byte> in,
                        std::span<const int> handles) {
  // sendmsg takes pointers to non-const data but only reads them.
  std::array<iovec, 2> parts{iovec{const_cast<control::RequestHeader*>(&header), sizeof header},
                             iovec{const_cast<std::byte*>(in.data()), in.size()}};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * control::kMaxFds)> ancillary{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (!handles.empty()) {
    message.msg_control = ancillary.data();
    message.msg_controllen = CMSG_SPACE(handles.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(handles.size_bytes());
    std::memcpy(CMSG_DATA(rights), handles.data(), handles.size_bytes());
  }
  while (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

ssize_t SocketChannel::receive_one(std::array<NativeHandle, kFdRoom>& handles, int& flags) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kFdRoom)> ancillary{};
  iovec part{buffer_.data(), buffer_.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  ssize_t got = 0;
  do {
    got = receive_briefly(polling_, [&](int more) {
      return ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | more);
    });
  } while (got < 0 && errno == EINTR);
  if (got < 0) return -errno;
  flags = message.msg_flags;
  std::size_t next = 0;
  take_descriptors(message, [&](int descriptor) {
    NativeHandle handle = own_descriptor(descriptor);
    if (next < handles.size()) handles[next++] = std::move(handle);
  });
  return got;
}

ControlReply SocketChannel::receive(std::uint64_t tag, std::span<std::byte> out) {
  for (;;) {
    std::array<NativeHandle, kFdRoom> handles;
    int flags = 0;
    const ssize_t got = receive_one(handles, flags);
    if (got <= 0) return lost("recv", static_cast<int>(-got));
    control::ReplyHeader header;
    const auto size = static_cast<std::size_t>(got);
    if (size < sizeof header || (flags & MSG_TRUNC) != 0) return lost("recv", EBADMSG);
    std::memcpy(&header, buffer_.data(), sizeof header);
    if (header.length != size) return lost("recv", EBADMSG);
    // Another tag: the answer to a call whose thread was cancelled while it waited.
    if (header.tag == tag) return finish(header, out, handles, flags);
  }
}

ControlReply SocketChannel::finish(const control::ReplyHeader& header, std::span<std::byte> out,
                                   std::array<NativeHandle, kFdRoom>& handles, int flags) {
  if (header.status >= kStatusCount) return failed(Status::Malformed, "softibd sent a bad status");
  const std::span body(buffer_.data() + sizeof header, header.length - sizeof header);
  ControlReply reply;
  reply.status = static_cast<Status>(header.status);
  reply.information = header.information;
  if (reply.status != Status::Ok) {
    reply.reason.assign(reinterpret_cast<const char*>(body.data()), body.size());
    if (reply.reason.empty()) reply.reason = status_text(reply.status);
    return reply;
  }
  if ((flags & MSG_CTRUNC) != 0) {
    rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    return failed(Status::TooManyHandles,
                  fmt::format("this process has no file descriptor left (ulimit -n is {}); raise "
                              "it with ulimit -n",
                              limit.rlim_cur));
  }
  reply.out_size = std::min(out.size(), body.size());
  if (reply.out_size != 0) std::memcpy(out.data(), body.data(), reply.out_size);
  for (std::size_t i = 0; i < reply.handles.size(); ++i) reply.handles[i] = std::move(handles[i]);
  return reply;
}

Status refused(int error, const std::string& path, std::string& reason) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      reason = fmt::format(
          "there is no socket at {} ({}): is softibd running? "
          "start the program with `softib run -- CMD`",
          path, kSocketVariable);
      return Status::NotFound;
    case ECONNREFUSED:
      reason = "nobody listens at " + path +
               ": the softibd that made this socket has ended; start a new one with `softib run`";
      return Status::Disconnected;
    case EACCES:
    case EPERM:
      reason =
          "no permission to connect to " + path + ": softibd serves only the user that started it";
      return Status::AccessDenied;
    case EPROTOTYPE:
      reason = path + " is a socket, but not one of softibd's";
      return Status::InvalidParameter;
    default:
      reason = with_errno("cannot connect to softibd at " + path, error);
      return Status::IoError;
  }
}

}  // namespace

std::unique_ptr<platform::ControlChannel> channel_over(NativeHandle socket) {
  return std::make_unique<SocketChannel>(std::move(socket));
}

Result<std::unique_ptr<platform::ControlChannel>> connect_channel(const std::string& path,
                                                                  std::string& reason) {
  if (path.empty()) {
    reason =
        std::string(kSocketVariable) + " is not set: start the program with `softib run -- CMD`";
    return Status::NotFound;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    reason = fmt::format("{}={} is too long: a socket's path has at most {} bytes", kSocketVariable,
                         path, sizeof address.sun_path - 1);
    return Status::InvalidParameter;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  NativeHandle socket = own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    const int error = errno;
    reason = with_errno("cannot create a socket", error);
    return no_descriptor(error);
  }
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  while (::connect(socket.get(), generic, sizeof address) != 0) {
    // AF_UNIX connect has no half-way state: it may be repeated after a signal.
    if (errno != EINTR) return refused(errno, path, reason);
  }
  return channel_over(std::move(socket));
}

}  // namespace ib::os
