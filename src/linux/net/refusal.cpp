// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The reasons of refusals: what errno means at each step, and which setting of this machine is
// behind it.
#include "linux/net/refusal.h"

#include "linux/process/client_handle.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace ib::os::net {
namespace {

std::string read_text(const char* path) {
  const platform::NativeHandle file = own_descriptor(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text{};
  const ssize_t got = file.valid() ? ::read(file.get(), text.data(), text.size()) : 0;
  return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : std::string();
}

// The number in a file of /proc/sys; nothing: the kernel has no such setting.
std::optional<long> setting(const char* name) {
  const std::string text = read_text((std::string("/proc/sys/") + name).c_str());
  if (text.empty()) return std::nullopt;
  return std::strtol(text.c_str(), nullptr, 10);
}

bool has_seccomp_filter() {
  return read_text("/proc/self/status").find("\nSeccomp:\t2") != std::string::npos;
}

struct Words {
  std::string what;
  std::string fix;
};

const char* const kOrRoot = "; root with CAP_SYS_ADMIN and CAP_NET_ADMIN needs no user namespace";

Words of_user_namespace(int error) {
  if (const auto most = setting("user/max_user_namespaces"); error == ENOSPC && most) {
    return {
        fmt::format("{} (user.max_user_namespaces is {})",
                    *most == 0 ? "user namespaces are off" : "no user namespace is left", *most),
        fmt::format("sysctl user.max_user_namespaces=15000{}", kOrRoot)};
  }
  if (setting("kernel/unprivileged_userns_clone") == 0) {
    return {"user namespaces are for root only (kernel.unprivileged_userns_clone is 0)",
            fmt::format("sysctl kernel.unprivileged_userns_clone=1{}", kOrRoot)};
  }
  if (error == EINVAL || error == ENOSYS) {
    return {"the kernel has no user namespaces (CONFIG_USER_NS)",
            "run as root with CAP_SYS_ADMIN and CAP_NET_ADMIN"};
  }
  if (setting("kernel/apparmor_restrict_unprivileged_userns") == 1) {
    return {
        "AppArmor forbids user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile with `userns,` for "
        "softib-net and softib"};
  }
  const bool filter = has_seccomp_filter();
  return {fmt::format("no user namespace can be made: {}{}", std::strerror(error),
                      filter ? " (a seccomp filter is active)" : ""),
          fmt::format("{}{}",
                      filter ? "containers: allow unshare and setns with CLONE_NEWUSER in the "
                               "seccomp profile (Docker: --security-opt seccomp=unconfined)"
                             : "not in a chroot; containers: let them make user namespaces",
                      kOrRoot)};
}

// It was made, but gives no rights: so AppArmor restricts them.
Words of_rights(const char* what, int error) {
  if (setting("kernel/apparmor_restrict_unprivileged_userns") == 1) {
    Words words = of_user_namespace(EPERM);
    words.what =
        "AppArmor lets user namespaces have no rights "
        "(kernel.apparmor_restrict_unprivileged_userns is 1)";
    return words;
  }
  const bool filter = has_seccomp_filter();
  return {fmt::format("{}: {}{}", what, std::strerror(error),
                      filter ? " (a seccomp filter is active)" : ""),
          "containers: allow namespaces in the seccomp profile (Docker: --security-opt "
          "seccomp=unconfined), or add CAP_SYS_ADMIN and CAP_NET_ADMIN"};
}

Words of_network_namespace(int error) {
  if (const auto most = setting("user/max_net_namespaces"); error == ENOSPC && most) {
    return {fmt::format("no network namespace is left (user.max_net_namespaces is {})", *most),
            "sysctl user.max_net_namespaces=15000"};
  }
  if (error == EINVAL) {
    return {"the kernel has no network namespaces (CONFIG_NET_NS)", "another kernel"};
  }
  return of_rights("no network namespace can be made", error);
}

Words of_tun_device(int error) {
  if (error == ENOENT || error == ENODEV || error == ENXIO) {
    return {"there is no /dev/net/tun, or no driver behind it",
            "modprobe tun; containers: give them the device (Docker: --device /dev/net/tun)"};
  }
  return {fmt::format("/dev/net/tun cannot be opened: {}", std::strerror(error)),
          "chmod 0666 /dev/net/tun, as distributions have it; containers: give them the device "
          "(Docker: --device /dev/net/tun)"};
}

Words words_of(const Refusal& refusal) {
  const int error = refusal.error;
  switch (refusal.step) {
    case Step::None: return {};
    case Step::UserNamespace: return of_user_namespace(error);
    case Step::Mapping: return of_rights("the user cannot be mapped into a user namespace", error);
    case Step::NetworkNamespace: return of_network_namespace(error);
    case Step::TunDevice: return of_tun_device(error);
    case Step::Tap:
      return {fmt::format("no TAP device can be made: {}", std::strerror(error)),
              "Linux 5.0 or later with CONFIG_TUN; the right to make interfaces (CAP_NET_ADMIN)"};
    case Step::Interface:
      return {fmt::format("an interface cannot be configured: {}", std::strerror(error)),
              "the right to configure interfaces (CAP_NET_ADMIN)"};
    case Step::Join: return of_rights("the network namespace of the node cannot be entered", error);
    case Step::Capabilities:
      return of_rights("programs cannot keep the rights of their network", error);
  }
  return {};
}

}  // namespace

Status status_of(const Refusal& refusal) {
  if (!refusal) return Status::Ok;
  switch (refusal.error) {
    case EPERM:
    case EACCES: return Status::AccessDenied;
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ENOSYS:
    case EINVAL: return Status::NotSupported;
    case ENOSPC:
    case ENOMEM: return Status::InsufficientResources;
    case EMFILE:
    case ENFILE: return Status::TooManyHandles;
    case EEXIST:
    case EBUSY: return Status::AlreadyExists;
    default: return Status::IoError;
  }
}

std::string describe(const Refusal& refusal) {
  return words_of(refusal).what;
}

std::string remedy(const Refusal& refusal) {
  return words_of(refusal).fix;
}

std::string explain(const Refusal& refusal) {
  const Words words = words_of(refusal);
  return words.fix.empty() ? words.what : words.what + "\n  Remedy: " + words.fix;
}

}  // namespace ib::os::net
