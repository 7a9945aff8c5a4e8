// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/remote.h"

#include "host_abi/preload/own_descriptors.h"
#include "host_abi/preload/system_calls.h"
#include "linux/descriptor_table.h"
#include "linux/received_descriptors.h"

#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <string_view>

namespace ib::host_abi::preload::remote {
namespace {

using namespace verbs::control;

constexpr std::time_t kTimeoutSeconds = 5;
constexpr std::uint64_t kTag = 1;  // one request per connection

struct Environment {
  char socket[sizeof(sockaddr_un::sun_path)];
  char node[sizeof(ViewIn::node)];
};
Environment environment{};
std::atomic<bool> environment_read{false};

// Copies the value of `name` (with its '=') if `entry` is that variable. Returns false if it does
// not fit.
template <std::size_t N>
bool take(const char* entry, const char* name, char (&value)[N]) {
  const std::size_t length = std::strlen(name);
  if (std::strncmp(entry, name, length) != 0) return true;
  if (std::strlen(entry + length) >= N) return false;
  std::memcpy(value, entry + length, std::strlen(entry + length) + 1);
  return true;
}

const Environment& get_environment() {
  if (!environment_read.load(std::memory_order_acquire)) read_environment(::environ);
  return environment;
}

bool no_descriptor_left() {
  return errno == EMFILE || errno == ENFILE;
}

// Returns the socket, or -1 with Unreachable or NoDescriptor in `why`.
int connect_to_daemon(Reply& why) {
  why = Reply::Unreachable;
  const Environment& env = get_environment();
  if (env.socket[0] == '\0') return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, env.socket, sizeof env.socket);
  const int fd = sys::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC);
  if (fd < 0) {
    if (no_descriptor_left()) why = Reply::NoDescriptor;
    return -1;
  }
  // The send timeout also bounds connect() when softibd has stopped accepting.
  const timeval timeout{kTimeoutSeconds, 0};
  sys::set_option(fd, SO_RCVTIMEO, &timeout, sizeof timeout);
  sys::set_option(fd, SO_SNDTIMEO, &timeout, sizeof timeout);
  const std::time_t deadline = sys::seconds() + kTimeoutSeconds;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  while (sys::connect(fd, generic, sizeof address) != 0) {
    if (errno == EINTR && sys::seconds() < deadline) continue;
    sys::close(fd);
    return -1;
  }
  return fd;
}

bool is_connected_to_daemon(int fd) {
  const Environment& env = get_environment();
  sockaddr_un peer{};
  socklen_t length = sizeof peer;
  return env.socket[0] != '\0' && sys::peer_name(fd, &peer, &length) == 0 &&
         peer.sun_family == AF_UNIX &&
         std::strncmp(peer.sun_path, env.socket, sizeof peer.sun_path) == 0;
}

struct Answer {
  ReplyHeader header;
  ViewStatOut stat;  // or the beginning of an error text
};

// Reads one message; keeps its first descriptor in `fd`. Sets `lost` if a descriptor came and no
// number was left for it.
ssize_t receive_answer(int socket, Answer& answer, int& fd, bool& lost) {
  iovec data{&answer, sizeof answer};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const std::time_t deadline = sys::seconds() + kTimeoutSeconds;
  ssize_t got = -1;
  do {
    got = sys::receive(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR && sys::seconds() < deadline);
  if (got < 0) return got;
  lost = (message.msg_flags & MSG_CTRUNC) != 0;
  os::take_descriptors(message, [&fd](int received) {
    if (fd < 0) {
      fd = received;
    } else {
      sys::close(received);
    }
  });
  return got;
}

Reply exchange(int socket, Code code, const Path& path, ViewStatOut& out, int& fd) {
  struct {
    RequestHeader header;
    ViewIn view;
  } request;
  request.header = {sizeof request, static_cast<std::uint32_t>(code), kTag, 0, 0};
  request.view = {};
  static_assert(sizeof(Path::text) == sizeof(ViewIn::path));
  std::memcpy(request.view.node.data(), get_environment().node, sizeof(Environment::node));
  std::memcpy(request.view.path.data(), path.text, path.length + 1);
  if (sys::send(socket, &request, sizeof request) != sizeof request) return Reply::Unreachable;
  Answer answer{};
  bool lost = false;
  const ssize_t got = receive_answer(socket, answer, fd, lost);
  if (got < static_cast<ssize_t>(sizeof(ReplyHeader)) || answer.header.tag != kTag) {
    return Reply::Unreachable;
  }
  const auto status = static_cast<Status>(answer.header.status);
  if (status == Status::InvalidParameter && code == Code::ViewOpen) return Reply::Unreadable;
  if (status != Status::Ok) return Reply::Absent;
  if (code != Code::ViewList && got != static_cast<ssize_t>(sizeof answer)) {
    return Reply::Unreachable;  // another version of softibd
  }
  if (lost) return Reply::NoDescriptor;
  out = answer.stat;
  out.target.back() = '\0';
  return Reply::Ok;
}

// Once in a process: after a change of user (setpriv, su) libibverbs just says "no devices".
void complain_of_user() {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  const std::string_view pieces[] = {
      "softib: ",
      {program_invocation_short_name, ::strnlen(program_invocation_short_name, 64)},
      " runs as a user whom this fabric does not serve, and finds no HCA; run `softib run` as that "
      "user\n"};
  char text[256];
  std::size_t bytes = 0;
  for (const std::string_view piece : pieces) {
    std::memcpy(&text[bytes], piece.data(), piece.size());
    bytes += piece.size();
  }
  static_cast<void>(sys::write(STDERR_FILENO, text, bytes));
}

Reply ask(Code code, const Path& path, ViewStatOut& out, int& fd) {
  const sys::KeepErrno keep;
  fd = -1;
  Reply why;
  const int socket = connect_to_daemon(why);
  if (socket < 0) {
    // A listing may be of a directory of the machine's, which programs read for other reasons.
    if (errno == EACCES && code != Code::ViewList) complain_of_user();
    return why;
  }
  const Reply reply = exchange(socket, code, path, out, fd);
  sys::close(socket);
  const bool wants_fd =
      code == Code::ViewList || (code == Code::ViewOpen && out.kind == ViewKind::File);
  if (reply == Reply::Ok && (fd >= 0) == wants_fd) {
    // The file offset is shared with softibd, whose writes may have moved it.
    if (wants_fd) sys::seek_to_start(fd);
    return Reply::Ok;
  }
  if (fd >= 0) sys::close(fd);
  fd = -1;
  return reply == Reply::Ok ? Reply::Unreachable : reply;
}

}  // namespace

void read_environment(char** entries) {
  bool fits = true;
  for (; entries != nullptr && *entries != nullptr; ++entries) {
    fits &= take(*entries, "SOFTIB_SOCKET=", environment.socket);
    fits &= take(*entries, "SOFTIB_NODE=", environment.node);
  }
  // A name that does not fit must not silently become "the first node".
  if (!fits) environment.socket[0] = '\0';
  environment_read.store(true, std::memory_order_release);
}

Reply stat(const Path& path, ViewStatOut& out) {
  int none = -1;
  return ask(Code::ViewStat, path, out, none);
}

Reply open(const Path& path, ViewStatOut& out, int& fd) {
  return ask(Code::ViewOpen, path, out, fd);
}

Reply list(const Path& path, int& fd) {
  ViewStatOut ignored;
  return ask(Code::ViewList, path, ignored, fd);
}

int connect(Reply& why) {
  return connect_to_daemon(why);
}

Status open_mailbox(int socket, int& file) {
  const sys::KeepErrno keep;
  file = -1;
  const RequestHeader request{sizeof request, static_cast<std::uint32_t>(Code::OpenMailbox), kTag,
                              0, 0};
  if (sys::send(socket, &request, sizeof request) != sizeof request) return Status::Disconnected;
  Answer answer{};
  bool lost = false;
  const ssize_t got = receive_answer(socket, answer, file, lost);
  if (got < static_cast<ssize_t>(sizeof(ReplyHeader)) || answer.header.tag != kTag) {
    if (file >= 0) sys::close(file);
    file = -1;
    return Status::Disconnected;
  }
  if (answer.header.status != 0) return static_cast<Status>(answer.header.status);
  return file >= 0 ? Status::Ok : Status::TooManyHandles;
}

void copy_node(std::array<char, 64>& node) {
  static_assert(sizeof(Environment::node) == sizeof node);
  std::memcpy(node.data(), get_environment().node, node.size());
}

void protect_connection_of_run() {
  const sys::KeepErrno keep;
  for (const int lowest : os::kHighNumbers) {
    for (int fd = lowest; is_connected_to_daemon(fd); ++fd) own::protect_in_children(fd);
  }
}

bool reachable() {
  const sys::KeepErrno keep;
  Reply why;
  const int socket = connect_to_daemon(why);
  if (socket >= 0) sys::close(socket);
  return socket >= 0;
}

std::uint64_t fabric_word() {
  const sys::KeepErrno keep;
  const char* const path = get_environment().socket;
  struct statx socket {};
  if (path[0] == '\0' || sys::stat(AT_FDCWD, path, 0, socket) != 0) return 0;
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
  const std::uint64_t device = std::uint64_t{socket.stx_dev_major} << 32 | socket.stx_dev_minor;
  return (socket.stx_ino ^ (device + 1) * kSpread) | 1;
}

statx_timestamp start_time() {
  const sys::KeepErrno keep;
  struct statx socket {};
  if (sys::stat(AT_FDCWD, get_environment().socket, 0, socket) != 0) return {};
  return socket.stx_mtime;
}

}  // namespace ib::host_abi::preload::remote
