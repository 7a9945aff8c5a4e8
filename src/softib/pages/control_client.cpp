// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/control_client.h"

#include "linux/received_descriptors.h"
#include "setup/cli_error.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace ib::softib {
namespace {

namespace control = verbs::control;
using Clock = std::chrono::steady_clock;

void check_peer(const Fd& socket, const std::string& path, pid_t& pid) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  pid = peer.pid;
  if (peer.uid == ::geteuid()) return;
  throw CliError(Exit::Permission,
                 fmt::format("{} is served by uid {}, you are uid {}: not talking to it\n"
                             "  Set SOFTIB_RUNTIME_DIR to a directory of yours.",
                             path, peer.uid, ::geteuid()));
}

Exit exit_of(Status status) {
  if (status == Status::NotFound) return Exit::NotFound;
  if (status == Status::DeviceBusy) return Exit::Busy;
  const bool went_away = status == Status::Disconnected || status == Status::Timeout;
  return went_away ? Exit::Daemon : Exit::Failed;
}

std::string no_answer(pid_t pid) {
  return fmt::format("softibd (pid {}) does not answer\n  If it stays so: kill -9 {}", pid, pid);
}

// Takes the descriptors that came with a message; all but the first are closed.
Fd take_file(msghdr& message) {
  Fd first;
  os::take_descriptors(message, [&first](int descriptor) {
    Fd file = make_fd(descriptor);
    if (!first.valid()) first = std::move(file);
  });
  return first;
}

}  // namespace

std::optional<ControlClient> ControlClient::connect(const std::string& socket_path) {
  Fd socket = make_fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    throw CliError(Exit::Resources, fmt::format("socket: {}", std::strerror(errno)));
  }
  // Also bounds connect(), which waits while the listener's backlog is full.
  const timeval limit{10, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.get(), generic, sizeof address) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ECONNREFUSED) return std::nullopt;
    if (error == EACCES || error == EPERM) {
      throw CliError(Exit::Permission, fmt::format("no permission to use {}", socket_path));
    }
    throw CliError(Exit::Daemon, fmt::format("cannot connect to {}: {}", socket_path,
                                             error == EAGAIN ? "softibd accepts no connections"
                                                             : std::strerror(error)));
  }
  pid_t pid = 0;
  check_peer(socket, socket_path, pid);
  return ControlClient(std::move(socket), pid);
}

ControlAnswer ControlClient::call(control::Code code, std::span<const std::byte> in,
                                  std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  control::RequestHeader header;
  header.length = static_cast<std::uint32_t>(sizeof header + in.size());
  header.code = static_cast<std::uint32_t>(code);
  header.tag = ++tag_;
  std::vector<std::byte> message(header.length);
  std::memcpy(message.data(), &header, sizeof header);
  if (!in.empty()) std::memcpy(message.data() + sizeof header, in.data(), in.size());
  ssize_t sent = 0;
  do {
    sent = ::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  ControlAnswer failed;
  if (sent < 0) {
    const bool full = errno == EAGAIN;
    failed.status = full ? Status::Timeout : Status::Disconnected;
    failed.reason = full ? no_answer(pid_) : fmt::format("softibd (pid {}) is gone", pid_);
    return failed;
  }
  return receive(header.tag, deadline);
}

ControlAnswer ControlClient::receive(std::uint64_t tag, Clock::time_point deadline) {
  ControlAnswer answer;
  std::vector<std::byte> buffer(control::kMaxMessage);
  for (;;) {
    pollfd waiting{socket_.get(), POLLIN, 0};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const int ready = left.count() <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      answer.status = Status::Timeout;
      answer.reason = no_answer(pid_);
      return answer;
    }
    iovec part{buffer.data(), buffer.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * control::kMaxFds)> extra{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = extra.data();
    message.msg_controllen = extra.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      answer.status = Status::Disconnected;
      answer.reason = fmt::format("softibd (pid {}) is gone", pid_);
      return answer;
    }
    Fd file = take_file(message);
    control::ReplyHeader reply;
    const auto size = static_cast<std::size_t>(got);
    if (size < sizeof reply) {
      answer.status = Status::Malformed;
      answer.reason = fmt::format("softibd (pid {}) sent {} bytes that are no answer", pid_, size);
      return answer;
    }
    std::memcpy(&reply, buffer.data(), sizeof reply);
    if (reply.tag != tag) continue;  // to a call that timed out
    answer.status = static_cast<Status>(reply.status);
    answer.information = reply.information;
    answer.file = std::move(file);
    std::string& rest = answer.status == Status::Ok ? answer.output : answer.reason;
    rest.assign(reinterpret_cast<const char*>(buffer.data()) + sizeof reply, size - sizeof reply);
    if (answer.status != Status::Ok) {
      if (answer.reason.empty()) answer.reason = status_text(answer.status);
    }
    return answer;
  }
}

std::string ControlClient::read_text(control::Code code, std::span<const std::byte> in,
                                     std::chrono::milliseconds limit) {
  const ControlAnswer answer = call(code, in, limit);
  if (answer.status != Status::Ok) throw CliError(exit_of(answer.status), answer.reason);
  if (!answer.file.valid()) {
    const rlimit none{};
    rlimit files = none;
    ::getrlimit(RLIMIT_NOFILE, &files);
    throw CliError(Exit::Resources,
                   fmt::format("softibd (pid {}) answered, but its file did not arrive; is "
                               "RLIMIT_NOFILE ({}) too low?",
                               pid_, files.rlim_cur));
  }
  return read_fd(answer.file);
}

std::string ControlClient::require(control::Code code, std::span<const std::byte> in,
                                   const std::string& what) {
  // Some wait for devices, without a time limit.
  ControlAnswer answer = call(code, in, std::chrono::minutes(1));
  if (answer.status == Status::Ok) return std::move(answer.output);
  throw CliError(exit_of(answer.status), fmt::format("{}: {}", what, answer.reason));
}

void ControlClient::hand_over() {
  softib::hand_over(socket_);
}

}  // namespace ib::softib
