// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/client_channel.h"

#include "linux/client/brief_receive.h"
#include "linux/client/client_fork.h"
#include "linux/client/client_mailbox.h"
#include "linux/client/client_socket.h"
#include "linux/process/client_handle.h"
#include "linux/process/client_signals.h"
#include "linux/process/kept_descriptor.h"
#include "linux/process/process_number.h"
#include "linux/received_descriptors.h"
#include "platform/level.h"
#include "verbs/control.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

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

// The socket of a channel. Looked at once in each call, before its first use.
class Socket {
 public:
  explicit Socket(NativeHandle handle) : handle_(keep_descriptor(std::move(handle))) {}

  int get() const { return handle_.get(); }
  void release() { (void)handle_.release(); }
  void begin_call() { is_checked_ = false; }
  // Returns false, with EBADF, if the program has closed it.
  bool may_be_used() {
    if (!is_checked_ && is_replaced(handle_.get())) {
      errno = EBADF;
      return false;
    }
    is_checked_ = true;
    return true;
  }

 private:
  NativeHandle handle_;
  bool is_checked_ = false;
};

class SocketChannel final : public platform::ControlChannel {
 public:
  explicit SocketChannel(NativeHandle socket)
      : socket_(std::move(socket)), owner_(process_number()), buffer_(control::kMaxMessage) {
    registered_ = close_in_children(socket_.get());
  }
  SocketChannel(const SocketChannel&) = delete;
  SocketChannel& operator=(const SocketChannel&) = delete;
  ~SocketChannel() override {
    if (foreign()) {
      // The number was closed in this child already and may name another file; the page is not in
      // it, and another mapping may have its address.
      if (registered_) socket_.release();
      return;
    }
    if (mailbox_.page() != nullptr) (void)::munmap(mailbox_.page(), MailboxPage::kBytes);
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
    const CancelGuard no_cancel;
    const std::lock_guard lock(mutex_);
    socket_.begin_call();
    take_submitted();
    if (gone_.load(std::memory_order_relaxed)) return disconnected();
    if (++calls_ == kCallsBeforeMailbox) open_mailbox();
    return exchange(code, file, in, out, handles);
  }

  bool submit(std::uint32_t code, std::uint32_t file, std::span<const std::byte> in) override {
    if (foreign()) return false;
    const CancelGuard no_cancel;
    const std::lock_guard lock(mutex_);
    socket_.begin_call();
    take_submitted();
    if (gone_.load(std::memory_order_relaxed)) return false;
    const control::RequestHeader header = next_header(code, file, in.size());
    if (!mailbox_.takes(header.length)) return false;
    if (const int error = put(header, in); error != 0) {
      lost("send", error);
      return false;
    }
    submitted_tag_ = header.tag;
    return true;
  }

  void settle() override {
    if (foreign()) return;
    const CancelGuard no_cancel;
    const std::lock_guard lock(mutex_);
    socket_.begin_call();
    take_submitted();
  }

  void shut_down() override {
    if (foreign()) return;  // shutdown(2) would end the parent's connection
    gone_.store(true, std::memory_order_relaxed);
    if (!is_replaced(socket_.get())) (void)::shutdown(socket_.get(), SHUT_RDWR);
  }

 private:
  // Programs that only look around need none.
  static constexpr unsigned kCallsBeforeMailbox = 8;

  bool foreign() const { return process_number() != owner_; }
  ControlReply exchange(std::uint32_t code, std::uint32_t file, std::span<const std::byte> in,
                        std::span<std::byte> out, std::span<const int> handles);
  void open_mailbox();
  control::RequestHeader next_header(std::uint32_t code, std::uint32_t file, std::size_t size);
  // A request through the mailbox; returns an errno. Then its answer.
  int put(const control::RequestHeader& header, std::span<const std::byte> in);
  ControlReply await(std::uint64_t tag, std::span<std::byte> out);
  void take_submitted();
  int send(const control::RequestHeader& header, std::span<const std::byte> in,
           std::span<const int> handles);
  // One message in buffer_.
  struct Received {
    std::array<NativeHandle, kFdRoom> handles;
    int flags = 0;
  };
  ControlReply receive(std::uint64_t tag, std::span<std::byte> out);
  // One recvmsg() into buffer_; returns its result and errno.
  ssize_t receive_one(Received& received, int flags);
  // Returns true if the `got` bytes in buffer_ (or the failure) settle the call; false if they are
  // a late bell, or an answer to something else.
  bool settles(ssize_t got, Received& received, std::uint64_t tag, std::span<std::byte> out,
               ControlReply& reply);
  ControlReply finish(const control::ReplyHeader& header, std::span<const std::byte> body,
                      std::span<std::byte> out, Received& received);
  ControlReply disconnected() { return failed(Status::Disconnected, gone_reason_); }
  ControlReply lost(const char* operation, int error);

  Socket socket_;
  const std::uint64_t owner_;
  bool registered_ = false;
  std::mutex mutex_;
  std::vector<std::byte> buffer_;
  platform::BriefPolling polling_;
  ClientMailbox mailbox_;
  unsigned calls_ = 0;
  std::uint64_t last_tag_ = 0;
  std::uint64_t submitted_tag_ = 0;  // its answer has not been taken; 0: there is none
  std::atomic<bool> gone_{false};    // relaxed: the reason has the lock
  std::string gone_reason_ = "the connection to softibd was shut down by this process";
};

ControlReply SocketChannel::lost(const char* operation, int error) {
  if (!gone_.exchange(true)) {
    gone_reason_ = "softibd closed the connection: it was stopped or has crashed";
    if (error == EBADF) {
      gone_reason_ = "the program has closed the descriptor of its connection to softibd";
    } else if (error != 0 && error != EPIPE && error != ECONNRESET) {
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
  if (!socket_.may_be_used()) return errno;
  while (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

ssize_t SocketChannel::receive_one(Received& received, int flags) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kFdRoom)> ancillary{};
  iovec part{buffer_.data(), buffer_.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  if (!socket_.may_be_used()) return -1;
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | flags);
  if (got < 0) return got;
  received.flags = message.msg_flags;
  std::size_t next = 0;
  take_descriptors(message, [&](int descriptor) {
    NativeHandle handle = own_descriptor(descriptor);
    if (next < received.handles.size()) received.handles[next++] = std::move(handle);
  });
  return got;
}

ControlReply SocketChannel::receive(std::uint64_t tag, std::span<std::byte> out) {
  for (;;) {
    Received received;
    ssize_t got = 0;
    do {
      got = receive_briefly(polling_, [&](int more) { return receive_one(received, more); });
    } while (got < 0 && errno == EINTR);
    ControlReply reply;
    if (settles(got, received, tag, out, reply)) return reply;
  }
}

bool SocketChannel::settles(ssize_t got, Received& received, std::uint64_t tag,
                            std::span<std::byte> out, ControlReply& reply) {
  if (got <= 0) {
    reply = lost("recv", got == 0 ? 0 : errno);
    return true;
  }
  if (got == static_cast<ssize_t>(kBellBytes)) return false;
  control::ReplyHeader header;
  const auto size = static_cast<std::size_t>(got);
  if (size >= sizeof header) std::memcpy(&header, buffer_.data(), sizeof header);
  if (size < sizeof header || (received.flags & MSG_TRUNC) != 0 || header.length != size) {
    reply = lost("recv", EBADMSG);
    return true;
  }
  if (header.tag != tag) return false;
  reply = finish(header, std::span(buffer_).subspan(sizeof header, size - sizeof header), out,
                 received);
  return true;
}

ControlReply SocketChannel::exchange(std::uint32_t code, std::uint32_t file,
                                     std::span<const std::byte> in, std::span<std::byte> out,
                                     std::span<const int> handles) {
  const control::RequestHeader header = next_header(code, file, in.size());
  if (handles.empty() && mailbox_.takes(header.length)) {
    if (const int error = put(header, in); error != 0) return lost("send", error);
    return await(header.tag, out);
  }
  if (const int error = send(header, in, handles); error != 0) return lost("send", error);
  return receive(header.tag, out);
}

control::RequestHeader SocketChannel::next_header(std::uint32_t code, std::uint32_t file,
                                                  std::size_t size) {
  control::RequestHeader header;
  header.length = static_cast<std::uint32_t>(sizeof header + size);
  header.code = code;
  header.tag = ++last_tag_;
  header.file = file;
  return header;
}

int SocketChannel::put(const control::RequestHeader& header, std::span<const std::byte> in) {
  std::memcpy(mailbox_.request(), &header, sizeof header);
  if (!in.empty()) std::memcpy(mailbox_.request() + sizeof header, in.data(), in.size());
  if (mailbox_.post(header.length)) {
    if (!socket_.may_be_used()) return errno;
    const std::byte bell{};
    while (::send(socket_.get(), &bell, kBellBytes, MSG_NOSIGNAL) < 0) {
      if (errno != EINTR) return errno;
    }
  }
  return 0;
}

ControlReply SocketChannel::await(std::uint64_t tag, std::span<std::byte> out) {
  for (;;) {
    Received received;
    const auto waited =
        mailbox_.wait(polling_, [&](int more) { return receive_one(received, more); });
    ControlReply reply;
    if (!waited.in_mailbox) {
      if (settles(waited.got, received, tag, out, reply)) return reply;
      continue;
    }
    control::ReplyHeader answer;
    const std::span<const std::byte> all = mailbox_.answer();
    if (all.size() < sizeof answer) return lost("the mailbox", EBADMSG);
    std::memcpy(&answer, all.data(), sizeof answer);
    return finish(answer, all.subspan(sizeof answer), out, received);
  }
}

// Before any other request: a message through the socket could overtake it.
void SocketChannel::take_submitted() {
  const std::uint64_t tag = std::exchange(submitted_tag_, 0);
  if (tag != 0) (void)await(tag, {});
}

// Without one, calls go on as before.
void SocketChannel::open_mailbox() {
  const ControlReply reply =
      exchange(static_cast<std::uint32_t>(control::Code::OpenMailbox), 0, {}, {}, {});
  if (reply.status != Status::Ok || !reply.handles[0].valid()) return;
  struct stat file {};
  if (::fstat(reply.handles[0].get(), &file) != 0 || file.st_size < off_t{MailboxPage::kBytes}) {
    return;
  }
  void* const at = ::mmap(nullptr, MailboxPage::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                          reply.handles[0].get(), 0);
  if (at == MAP_FAILED) return;
  (void)::madvise(at, MailboxPage::kBytes, MADV_DONTFORK);
  mailbox_ = ClientMailbox(static_cast<MailboxPage*>(at));
}

ControlReply SocketChannel::finish(const control::ReplyHeader& header,
                                   std::span<const std::byte> body, std::span<std::byte> out,
                                   Received& received) {
  if (header.status >= kStatusCount) return failed(Status::Malformed, "softibd sent a bad status");
  ControlReply reply;
  reply.status = static_cast<Status>(header.status);
  reply.information = header.information;
  if (reply.status != Status::Ok) {
    reply.reason.assign(reinterpret_cast<const char*>(body.data()), body.size());
    if (reply.reason.empty()) reply.reason = status_text(reply.status);
    return reply;
  }
  if ((received.flags & MSG_CTRUNC) != 0) {
    rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    return failed(Status::TooManyHandles,
                  fmt::format("this process has no file descriptor left (ulimit -n is {}); raise "
                              "it with ulimit -n",
                              limit.rlim_cur));
  }
  reply.out_size = std::min(out.size(), body.size());
  if (reply.out_size != 0) std::memcpy(out.data(), body.data(), reply.out_size);
  for (std::size_t i = 0; i < reply.handles.size(); ++i) {
    reply.handles[i] = std::move(received.handles[i]);
  }
  return reply;
}

}  // namespace

std::unique_ptr<platform::ControlChannel> channel_over(NativeHandle socket) {
  return std::make_unique<SocketChannel>(std::move(socket));
}

Result<std::unique_ptr<platform::ControlChannel>> connect_channel(const std::string& path,
                                                                  std::string& reason) {
  IB_TRY(socket, connect_socket(path, reason));
  return channel_over(std::move(socket));
}

}  // namespace ib::os
