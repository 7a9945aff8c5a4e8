// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sockets of streams at softibd's side: pairs of links with names, the TCP connection that
// comes first, and the look whether anybody still has a link or has taken a connection past the
// switch.
#include "linux/server/stream_sockets.h"

#include "linux/process/client_handle.h"
#include "linux/server/tcp_table.h"
#include "verbs/control_streams.h"
#include "verbs/gid.h"

#include <arpa/inet.h>
#include <asio/posix/stream_descriptor.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace ib::os {

using platform::Knock;
using platform::NativeHandle;
using platform::TcpName;

namespace {

// Two packets of no length fill it: each counts more than a thousand bytes in the kernel's books,
// and this is the smallest size that there is.
constexpr int kLinkBuffer = 1;
constexpr std::size_t kIpv4InGid = 12;
constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::string text_of(int error) {
  return std::error_code(error, std::generic_category()).message();
}

// Room for the address of an IPv4 or IPv6 socket.
struct SocketName {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);
  sockaddr* at() { return reinterpret_cast<sockaddr*>(&storage); }
  sockaddr_in& ipv4() { return reinterpret_cast<sockaddr_in&>(storage); }
  sockaddr_in6& ipv6() { return reinterpret_cast<sockaddr_in6&>(storage); }
  int family() const { return storage.ss_family; }
};

TcpName name_in(SocketName& name) {
  TcpName result;
  if (name.family() == AF_INET) {
    std::copy(kMapped.begin(), kMapped.end(), result.address.begin());
    std::memcpy(result.address.data() + kIpv4InGid, &name.ipv4().sin_addr, sizeof(in_addr));
    result.port = ntohs(name.ipv4().sin_port);
    return result;
  }
  std::memcpy(result.address.data(), &name.ipv6().sin6_addr, sizeof(in6_addr));
  result.port = ntohs(name.ipv6().sin6_port);
  result.scope = name.ipv6().sin6_scope_id;
  return result;
}

// As a socket of this family takes it. Returns false if it takes none like that.
bool put_name(const TcpName& from, int family, SocketName& name) {
  if (family == AF_INET) {
    if (!verbs::is_ipv4(from.address)) return false;
    name.ipv4().sin_family = AF_INET;
    name.ipv4().sin_port = htons(from.port);
    std::memcpy(&name.ipv4().sin_addr, from.address.data() + kIpv4InGid, sizeof(in_addr));
    name.length = sizeof(sockaddr_in);
    return true;
  }
  name.ipv6().sin6_family = AF_INET6;
  name.ipv6().sin6_port = htons(from.port);
  name.ipv6().sin6_scope_id = from.scope;
  std::memcpy(&name.ipv6().sin6_addr, from.address.data(), sizeof(in6_addr));
  name.length = sizeof(sockaddr_in6);
  return true;
}

bool is_loopback_network(const TcpName& name) {
  return verbs::is_ipv4(name.address) && name.address[kIpv4InGid] == 127;
}

bool is_any(SocketName& name) {
  const TcpName address = name_in(name);
  const auto zeros = [](auto first, auto last) {
    return std::all_of(first, last, [](std::uint8_t byte) { return byte == 0; });
  };
  const auto& bytes = address.address;
  return verbs::is_ipv4(bytes) ? zeros(bytes.begin() + kIpv4InGid, bytes.end())
                               : zeros(bytes.begin(), bytes.end());
}

// The port is chosen with the address of the peer, so that there are enough of them.
void bind_to(int socket, const TcpName& source, int family) {
  SocketName name;
  TcpName address = source;
  address.port = 0;
  if (!put_name(address, family, name)) return;
  const int on = 1;
  static_cast<void>(::setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on));
  static_cast<void>(::bind(socket, name.at(), name.length));  // else it gets another address
}

int option_of(int socket, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

Knock failure(Status status, std::string reason, bool is_refused = false) {
  Knock knock;
  knock.status = status;
  knock.reason = std::move(reason);
  knock.is_refused = is_refused;
  return knock;
}

// A connection over loopback is made, or refused, when connect() returns, though it says that it
// is still under way; others need a round trip.
Status outcome_of(int socket, SocketName& peer, int& error) {
  if (::getpeername(socket, peer.at(), &peer.length) == 0) return Status::Ok;
  error = option_of(socket, SO_ERROR);
  return error == 0 ? Status::DeviceBusy : Status::IoError;
}

}  // namespace

// One set of the kernel's for all connections; the loop waits for that.
struct StreamSockets::Watching : std::enable_shared_from_this<Watching> {
  explicit Watching(EventLoop& loop) : set(loop.context(), ::epoll_create1(EPOLL_CLOEXEC)) {}

  void wait() {
    set.async_wait(asio::posix::stream_descriptor::wait_read,
                   [self = shared_from_this()](const asio::error_code& error) {
                     if (!error) self->run();
                   });
  }
  void run();

  asio::posix::stream_descriptor set;
  std::uint64_t last = 0;
  struct One {
    int socket = -1;
    std::function<void()> on_end;
  };
  std::unordered_map<std::uint64_t, One> all;
};

void StreamSockets::Watching::run() {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(set.native_handle(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    // A copy: the structure is packed.
    const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
    const auto at = all.find(number);
    if (at == all.end()) continue;  // an earlier call has ended it
    static_cast<void>(::epoll_ctl(set.native_handle(), EPOLL_CTL_DEL,
                                  std::exchange(at->second.socket, -1), nullptr));
    const std::function<void()> on_end = std::move(at->second.on_end);
    on_end();
  }
  if (set.is_open()) wait();
}

namespace {

template <class Watching>
class SocketWatch final : public platform::StreamHost::Watch {
 public:
  SocketWatch(std::shared_ptr<Watching> watching, std::uint64_t number)
      : watching_(std::move(watching)), number_(number) {}
  ~SocketWatch() override {
    const auto at = watching_->all.find(number_);
    if (at->second.socket >= 0) {
      static_cast<void>(
          ::epoll_ctl(watching_->set.native_handle(), EPOLL_CTL_DEL, at->second.socket, nullptr));
    }
    watching_->all.erase(at);
  }
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;

 private:
  std::shared_ptr<Watching> watching_;
  std::uint64_t number_;
};

}  // namespace

StreamSockets::StreamSockets(EventLoop& loop, std::uint64_t number)
    : number_(number), watching_(std::make_shared<Watching>(loop)) {
  watching_->wait();
}

StreamSockets::~StreamSockets() {
  asio::error_code ignored;
  watching_->set.close(ignored);
}

std::string StreamSockets::link_name(std::uint64_t stream, std::uint32_t end) const {
  return fmt::format("{}{:016x}.{:016x}.{}", verbs::control::kStreamLinkPrefix, number_, stream,
                     end);
}

bool StreamSockets::bind_link(int socket, std::uint64_t stream, std::uint32_t end,
                              int& error) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = link_name(stream, end);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0) return true;
  error = errno;
  return false;
}

Result<platform::StreamHost::Links> StreamSockets::make_links(std::uint64_t stream,
                                                              std::string& reason) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    const int error = errno;
    reason = "a pair of sockets: " + text_of(error);
    return no_descriptor(error);
  }
  Links links{own_descriptor(ends[0]), own_descriptor(ends[1])};
  for (std::uint32_t end = 0; end < 2; ++end) {
    int error = 0;
    const int size = kLinkBuffer;
    if (::setsockopt(ends[end], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0 &&
        bind_link(ends[end], stream, end, error)) {
      continue;
    }
    reason = "the name of a socket: " + text_of(error != 0 ? error : errno);
    return Status::IoError;
  }
  return links;
}

bool StreamSockets::is_link_open(std::uint64_t stream, std::uint32_t end) {
  const NativeHandle probe = own_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  int error = 0;
  // Without a descriptor nothing is known: it lives.
  return !probe.valid() || (!bind_link(probe.get(), stream, end, error) && error == EADDRINUSE);
}

Knock StreamSockets::knock(const NativeHandle& tcp, const TcpName& remote, const TcpName& source) {
  const int socket = tcp.get();
  SocketName own;
  const bool is_ours = option_of(socket, SO_PROTOCOL) == IPPROTO_TCP &&
                       ::getsockname(socket, own.at(), &own.length) == 0 &&
                       (own.family() == AF_INET || own.family() == AF_INET6);
  if (!is_ours) return failure(Status::InvalidParameter, "this is no TCP socket");
  SocketName to;
  if (!put_name(remote, own.family(), to)) {
    return failure(Status::InvalidParameter, "an IPv6 address, of an IPv4 socket");
  }
  SocketName already;
  if (::getpeername(socket, already.at(), &already.length) == 0) {
    return failure(Status::InvalidParameter, "a socket that is connected");
  }
  const int flags = ::fcntl(socket, F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) == 0) {
    return failure(Status::InvalidParameter, "a socket that would block");
  }
  if (source != TcpName{} && is_any(own) && name_in(own).port == 0 && is_loopback_network(remote)) {
    bind_to(socket, source, own.family());
  }
  SocketName peer;
  int error = ::connect(socket, to.at(), to.length) == 0 ? EINPROGRESS : errno;
  Status status = error == EALREADY ? Status::InvalidParameter : Status::IoError;
  if (error == EINPROGRESS) status = outcome_of(socket, peer, error);
  if (status != Status::Ok) {
    return failure(status,
                   status == Status::DeviceBusy ? "TCP is still connecting" : text_of(error),
                   error == ECONNREFUSED);
  }
  Knock knock;
  SocketName local;
  if (::getsockname(socket, local.at(), &local.length) != 0) {
    return failure(Status::IoError, text_of(errno));
  }
  knock.local = name_in(local);
  knock.remote = name_in(peer);
  knock.family = static_cast<std::uint32_t>(own.family());
  return knock;
}

std::unique_ptr<platform::StreamHost::Watch> StreamSockets::watch(const NativeHandle& tcp,
                                                                  std::function<void()> on_end) {
  const std::uint64_t number = ++watching_->last;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = number;
  if (::epoll_ctl(watching_->set.native_handle(), EPOLL_CTL_ADD, tcp.get(), &event) != 0) {
    return nullptr;
  }
  watching_->all[number] = {tcp.get(), std::move(on_end)};
  return std::make_unique<SocketWatch<Watching>>(watching_, number);
}

std::vector<bool> StreamSockets::are_accepted(std::span<const platform::TcpPair> connections) {
  std::vector<bool> accepted(connections.size());
  for (const char* path : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream table(path);  // without IPv6 there is no second one
    find_accepted(table, connections, accepted);
  }
  return accepted;
}

void StreamSockets::reset(NativeHandle tcp) {
  const linger at_once{1, 0};
  static_cast<void>(::setsockopt(tcp.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
}

}  // namespace ib::os
