// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// getsockopt() and setsockopt() of streams, and what is taken over when a TCP socket becomes one:
// which options go to the link, which to the end, and which are only kept.
#include "host_abi/streams/options.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/tcp_socket.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/own_link.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ib::host_abi::stream_switch {
namespace {

namespace real = sockets::real;

// The change that setsockopt() makes to a number before getsockopt() returns it.
enum class Form : std::uint8_t { Number, Flag, Doubled, Fixed };
struct Kept {
  int level;
  int name;
  Form form;
  int least = 0;  // Doubled: the kernel's least
};
// At most as many as an end remembers.
constexpr Kept kKept[] = {
    {SOL_SOCKET, SO_KEEPALIVE, Form::Flag},
    {SOL_SOCKET, SO_OOBINLINE, Form::Flag},
    {SOL_SOCKET, SO_REUSEADDR, Form::Flag},
    {SOL_SOCKET, SO_REUSEPORT, Form::Flag},
    {SOL_SOCKET, SO_RCVBUF, Form::Doubled, 2304},
    {SOL_SOCKET, SO_SNDBUF, Form::Doubled, 4608},
    {SOL_SOCKET, SO_PRIORITY, Form::Number},
    {IPPROTO_TCP, TCP_NODELAY, Form::Flag},
    {IPPROTO_TCP, TCP_CORK, Form::Flag},
    {IPPROTO_TCP, TCP_KEEPIDLE, Form::Number},
    {IPPROTO_TCP, TCP_KEEPINTVL, Form::Number},
    {IPPROTO_TCP, TCP_KEEPCNT, Form::Number},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, Form::Number},
    {IPPROTO_TCP, TCP_QUICKACK, Form::Flag},
    {IPPROTO_TCP, TCP_MAXSEG, Form::Fixed},
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, Form::Number},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT, Form::Number},
    {IPPROTO_IP, IP_TOS, Form::Number},
    {IPPROTO_IP, IP_TTL, Form::Number},
    {IPPROTO_IPV6, IPV6_V6ONLY, Form::Fixed},
    {IPPROTO_IPV6, IPV6_TCLASS, Form::Number},
};
// With SO_LINGER, which is remembered as its seconds or -1.
static_assert(std::size(kKept) + 1 <= 24);

constexpr int kOff = -1;
constexpr char kCongestion[] = "cubic";

int failed(int error) {
  errno = error;
  return -1;
}

const Kept* find_kept(int level, int name) {
  for (const Kept& one : kKept) {
    if (one.level == level && one.name == name) return &one;
  }
  return nullptr;
}

void remember(streams::End& end, int level, int name, int value) {
  const Inside inside;
  static_cast<void>(end.set_option(level, name, value));
}

int recall(streams::End& end, int level, int name, int otherwise) {
  const Inside inside;
  return end.option(level, name).value_or(otherwise);
}

template <class Value>
int give(const Value& result, void* value, socklen_t* length) {
  std::memcpy(value, &result, std::min<std::size_t>(*length, sizeof result));
  *length = std::min<socklen_t>(*length, sizeof result);
  return 0;
}

void copy_limit(int tcp, int link, int name) {
  timeval limit{};
  socklen_t length = sizeof limit;
  if (real::getsockopt(tcp, SOL_SOCKET, name, static_cast<void*>(&limit), &length) != 0) return;
  if (limit.tv_sec == 0 && limit.tv_usec == 0) return;
  static_cast<void>(
      real::setsockopt(link, SOL_SOCKET, name, static_cast<const void*>(&limit), length));
}

int seconds_of(const ::linger& value) {
  return value.l_onoff != 0 ? value.l_linger : kOff;
}

void set_linger(streams::End& end, int seconds) {
  const Inside inside;
  static_cast<void>(end.set_option(SOL_SOCKET, SO_LINGER, seconds));
  end.set_linger_zero(seconds == 0);
}

void set_corked(int fd, streams::End& end, bool corked) {
  const Inside inside;
  OwnLink link(fd);
  end.set_corked(link, corked);
}

int get_tcp_info(int fd, streams::End& end, void* value, socklen_t* length) {
  tcp_info info{};
  {
    const Inside inside;
    OwnLink link(fd);
    info.tcpi_state = end.tcp_state(link);
    info.tcpi_notsent_bytes = static_cast<std::uint32_t>(end.unsent_bytes());
  }
  info.tcpi_options = TCPI_OPT_SACK | TCPI_OPT_WSCALE;
  info.tcpi_snd_mss = info.tcpi_rcv_mss = info.tcpi_advmss = 32768;
  info.tcpi_pmtu = 65535;
  info.tcpi_snd_cwnd = 10;
  info.tcpi_rtt = info.tcpi_rcv_rtt = 10;  // us
  info.tcpi_rto = 200'000;
  info.tcpi_bytes_sent = info.tcpi_bytes_acked = end.shared().bytes_sent;
  info.tcpi_bytes_received = end.shared().bytes_received;
  return give(info, value, length);
}

int get_linger(streams::End& end, void* value, socklen_t* length) {
  const int seconds = linger_of(end);
  return give(::linger{seconds == kOff ? 0 : 1, std::max(seconds, 0)}, value, length);
}

int take_error(int fd, streams::End& end) {
  const Inside inside;
  OwnLink link(fd);
  return end.take_reset(link) ? ECONNRESET : 0;
}

}  // namespace

bool kernel_has(int level, int name) {
  if (level != SOL_SOCKET) return false;
  switch (name) {
    case SO_RCVTIMEO:
    case SO_SNDTIMEO:
#if defined(SO_RCVTIMEO_NEW)
    case SO_RCVTIMEO_NEW:
    case SO_SNDTIMEO_NEW:
#endif
    case SO_RCVLOWAT:
    case SO_COOKIE:
    case SO_MARK:
    case SO_BUSY_POLL:
    case SO_INCOMING_CPU:
    case SO_TIMESTAMP:
    case SO_TIMESTAMPNS: return true;
    default: return false;
  }
}

int linger_of_tcp(int tcp) {
  ::linger value{};
  socklen_t length = sizeof value;
  const int result =
      real::getsockopt(tcp, SOL_SOCKET, SO_LINGER, static_cast<void*>(&value), &length);
  return result == 0 ? seconds_of(value) : kOff;
}

void take_options(int tcp, int link, int linger, streams::End& end, Socket& stream) {
  for (const Kept& one : kKept) {
    if (one.level == IPPROTO_IPV6 && stream.family != AF_INET6) continue;  // it has none of these
    const int value = sockets::option(tcp, one.level, one.name);
    if (value >= 0) remember(end, one.level, one.name, value);
    if (one.name == SO_OOBINLINE && one.level == SOL_SOCKET) {
      stream.has_urgent_inline.store(value > 0);
    }
    if (one.name == TCP_CORK && one.level == IPPROTO_TCP && value > 0) {
      set_corked(link, end, true);
    }
  }
  set_linger(end, linger);
  copy_limit(tcp, link, SO_RCVTIMEO);
  copy_limit(tcp, link, SO_SNDTIMEO);
}

int get_option(int fd, Socket& stream, streams::End& end, int level, int name, void* value,
               socklen_t* length) {
  if (value == nullptr || length == nullptr) return failed(EFAULT);
  if (level == SOL_SOCKET) {
    switch (name) {
      case SO_ERROR: return give(take_error(fd, end), value, length);
      case SO_TYPE: return give(int{SOCK_STREAM}, value, length);
      case SO_DOMAIN: return give(stream.family, value, length);
      case SO_PROTOCOL: return give(int{IPPROTO_TCP}, value, length);
      case SO_ACCEPTCONN:
      case SO_BROADCAST:
      case SO_DEBUG:
      case SO_DONTROUTE:
      case SO_ZEROCOPY: return give(0, value, length);
      case SO_SNDLOWAT: return give(1, value, length);
      case SO_LINGER: return get_linger(end, value, length);
      case SO_BINDTODEVICE: *length = 0; return 0;
      default: break;
    }
  }
  if (level == IPPROTO_TCP && name == TCP_INFO) return get_tcp_info(fd, end, value, length);
  if (level == IPPROTO_TCP && name == TCP_CONGESTION) return give(kCongestion, value, length);
  const Kept* const kept = find_kept(level, name);
  if (kept == nullptr) return failed(ENOPROTOOPT);
  if (level == IPPROTO_IPV6 && stream.family != AF_INET6) return failed(EOPNOTSUPP);
  return give(recall(end, level, name, 0), value, length);
}

int set_option(int fd, Socket& stream, streams::End& end, int level, int name, const void* value,
               socklen_t length) {
  if (level == SOL_SOCKET && name == SO_LINGER) {
    ::linger wanted{};
    if (length < sizeof wanted) return failed(EINVAL);
    std::memcpy(&wanted, value, sizeof wanted);
    set_linger(end, seconds_of(wanted));
    return 0;
  }
  // Its notices would never come.
  if (level == SOL_SOCKET && name == SO_ZEROCOPY) return failed(EOPNOTSUPP);
  if (level == IPPROTO_TCP && name == TCP_CONGESTION) return 0;
  const Kept* const kept = find_kept(level, name);
  if (kept == nullptr) return failed(ENOPROTOOPT);
  if (length < sizeof(int)) return failed(EINVAL);
  int wanted = 0;
  std::memcpy(&wanted, value, sizeof wanted);
  switch (kept->form) {
    case Form::Number:
      if (wanted < 0) return failed(EINVAL);
      break;
    case Form::Flag: wanted = wanted != 0 ? 1 : 0; break;
    case Form::Doubled: {
      const int most = (1 << 22) / 2;  // as net.core.rmem_max of most machines, or more
      wanted = std::max(std::clamp(wanted, 0, most) * 2, kept->least);
      break;
    }
    case Form::Fixed: return failed(EINVAL);
  }
  remember(end, level, name, wanted);
  if (level == SOL_SOCKET && name == SO_OOBINLINE) stream.has_urgent_inline.store(wanted != 0);
  if (level == IPPROTO_TCP && name == TCP_CORK) set_corked(fd, end, wanted != 0);
  // As TCP: what was held back by the cork is sent.
  if (level == IPPROTO_TCP && name == TCP_NODELAY && wanted != 0) set_corked(fd, end, false);
  return 0;
}

int linger_of(streams::End& end) {
  return recall(end, SOL_SOCKET, SO_LINGER, kOff);
}

}  // namespace ib::host_abi::stream_switch
