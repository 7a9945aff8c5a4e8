// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Making a TAP device: the ioctls of <linux/if_tun.h>.
#include "linux/net/tap.h"

#include "linux/net/refusal.h"
#include "linux/process/client_handle.h"

#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#ifndef TUN_F_USO4  // Linux 6.2
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

namespace ib::os::net {
namespace {

Status refuse(Step step, std::string& reason) {
  const Refusal refusal{step, errno};
  reason = explain(refusal);
  return status_of(refusal);
}

}  // namespace

Result<Tap> Tap::create(const Options& options, std::string& reason) {
  ifreq request{};
  if (options.name.empty() || options.name.size() >= sizeof request.ifr_name) {
    reason = fmt::format("\"{}\" is no name of an interface: 1 to 15 characters", options.name);
    return Status::InvalidParameter;
  }
  platform::NativeHandle file =
      own_descriptor(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return refuse(Step::TunDevice, reason);
  options.name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  const unsigned flags =
      IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | (options.persist ? 0u : unsigned{IFF_TUN_EXCL});
  request.ifr_flags = static_cast<short>(flags);
  if (::ioctl(file.get(), TUNSETIFF, &request) != 0) {
    // EINVAL: an interface of another kind has the name.
    const bool is_taken = errno == EBUSY || errno == EEXIST ||
                          (errno == EINVAL && ::if_nametoindex(options.name.c_str()) != 0);
    if (!is_taken) return refuse(Step::Tap, reason);
    reason = fmt::format("there is an interface {} already", options.name);
    return Status::AlreadyExists;
  }
  int header = kVnetHeaderBytes;
  int carrier = 0;
  if (::ioctl(file.get(), TUNSETVNETHDRSZ, &header) != 0 ||
      ::ioctl(file.get(), TUNSETCARRIER, &carrier) != 0 ||
      ::ioctl(file.get(), TUNSETPERSIST, options.persist ? 1 : 0) != 0) {
    return refuse(Step::Tap, reason);
  }
  constexpr unsigned long kTcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  const bool udp = ::ioctl(file.get(), TUNSETOFFLOAD, kTcp | TUN_F_USO4 | TUN_F_USO6) == 0;
  if (!udp && ::ioctl(file.get(), TUNSETOFFLOAD, kTcp) != 0) return refuse(Step::Tap, reason);
  return Tap(std::move(file), options.name, udp);
}

Status Tap::set_carrier(bool on) const {
  int carrier = on ? 1 : 0;
  return ::ioctl(file_.get(), TUNSETCARRIER, &carrier) == 0 ? Status::Ok : Status::IoError;
}

Status Tap::discard() const {
  return ::ioctl(file_.get(), TUNSETPERSIST, 0) == 0 ? Status::Ok : Status::IoError;
}

}  // namespace ib::os::net
