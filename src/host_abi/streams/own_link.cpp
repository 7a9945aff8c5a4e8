// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The packets of a link by system calls of their own: the end of a stream sends and takes them
// (streams/bells.h), in a sandbox by those few that are left there.
#include "host_abi/streams/own_link.h"

#include "host_abi/streams/sandbox.h"
#include "verbs/control_streams.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <ctime>
#include <string_view>
#include <utility>

namespace ib::host_abi::stream_switch {
namespace {

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

bool OwnLink::ring() {
  if (is_in_sandbox()) {
    // No call there leaves SIGPIPE out.
    return (look(POLLOUT) & (POLLOUT | POLLHUP)) == POLLOUT &&
           ::syscall(SYS_write, static_cast<long>(fd_), "", std::size_t{0}) == 0;
  }
  return ::syscall(SYS_sendto, static_cast<long>(fd_), nullptr, std::size_t{0},
                   long{MSG_DONTWAIT | MSG_NOSIGNAL}, nullptr, 0) == 0;
}

// A packet without bytes and the end of all packets have the same result, but a packet has the name
// of its sender, as links have names. Not by libc's recvfrom(), which is a cancellation point.
streams::Link::Taken OwnLink::take(std::uint32_t most) {
  if (is_in_sandbox()) return take_in_sandbox(most);
  Taken taken;
  bool was_reset = false;
  while (taken.count < most) {
    char byte = 0;
    sockaddr_un sender{};
    socklen_t size = sizeof sender;
    const long got = ::syscall(SYS_recvfrom, static_cast<long>(fd_), &byte, sizeof byte,
                               long{MSG_DONTWAIT | MSG_TRUNC}, &sender, &size);
    // The kernel tells it once.
    if (got < 0 && errno == ECONNRESET && !std::exchange(was_reset, true)) continue;
    if (got < 0) break;
    if (got == 0 && size == 0 && (look(POLLRDHUP) & (POLLRDHUP | POLLHUP)) != 0) break;
    taken.foreign |= got > 0;
    ++taken.count;
  }
  return taken;
}

// Packets of a link that has hung up stay in its queue: it is readable anyway.
streams::Link::Taken OwnLink::take_in_sandbox(std::uint32_t most) {
  Taken taken;
  while (taken.count < most && (look(POLLIN | POLLRDHUP) & (POLLIN | POLLRDHUP)) == POLLIN) {
    char byte = 0;
    const long got = ::syscall(SYS_read, static_cast<long>(fd_), &byte, sizeof byte);
    if (got < 0) break;
    taken.foreign |= got > 0;
    ++taken.count;
  }
  return taken;
}

bool OwnLink::is_writable() {
  return (look(POLLOUT) & POLLOUT) != 0;
}

bool OwnLink::has_hung_up() {
  return (look(0) & POLLHUP) != 0;
}

// A sandbox need not allow it. Then the link only becomes readable.
void OwnLink::shut_write() {
  if (!is_in_sandbox()) ::syscall(SYS_shutdown, static_cast<long>(fd_), long{SHUT_WR});
}

void OwnLink::shut_read() {
  if (!is_in_sandbox()) ::syscall(SYS_shutdown, static_cast<long>(fd_), long{SHUT_RD});
}

short OwnLink::look(short events) const {
  pollfd entry{fd_, events, 0};
  long found = 0;
  do {  // a signal may come, though it waits (inside.h)
#if defined(SYS_poll)
    found = ::syscall(SYS_poll, &entry, long{1}, long{0});
#else
    timespec none{};
    found = ::syscall(SYS_ppoll, &entry, long{1}, &none, nullptr, std::size_t{8});
#endif
  } while (found < 0 && errno == EINTR);
  return found > 0 ? entry.revents : short{0};
}

std::optional<LinkName> name_of_link(int fd) {
  constexpr std::string_view kPrefix = verbs::control::kStreamLinkPrefix;
  constexpr std::size_t kDigits = 16;
  constexpr std::size_t kLength = kPrefix.size() + kDigits + 1 + kDigits + 1 + 1;
  sockaddr_un address{};
  socklen_t size = sizeof address;
  const int error = errno;
  const bool has_name = ::syscall(SYS_getsockname, static_cast<long>(fd), &address, &size) == 0 &&
                        address.sun_family == AF_UNIX &&
                        size == offsetof(sockaddr_un, sun_path) + 1 + kLength &&
                        address.sun_path[0] == 0;
  errno = error;
  if (!has_name) return std::nullopt;
  const std::string_view text(&address.sun_path[1], kLength);
  if (!text.starts_with(kPrefix)) return std::nullopt;
  LinkName name;
  const std::string_view rest = text.substr(kPrefix.size() + kDigits + 1);
  if (!parse(rest.substr(0, kDigits), name.stream) || !parse(rest.substr(kDigits + 1), name.end)) {
    return std::nullopt;
  }
  return name;
}

}  // namespace ib::host_abi::stream_switch
