// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Making, entering and recognising namespaces.
#include "linux/net/namespaces.h"

#include "linux/net/netlink.h"
#include "linux/net/tap.h"
#include "linux/process/client_handle.h"

#include <dirent.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace ib::os::net {
namespace {

using Capabilities = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

bool read_capabilities(Capabilities& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capget, &header, sets.data()) == 0;
}

bool has(const Capabilities& sets, unsigned capability) {
  return (sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

bool write_file(const char* path, std::string_view text) {
  const platform::NativeHandle file = own_descriptor(::open(path, O_WRONLY | O_CLOEXEC));
  return file.valid() &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string to_itself(unsigned id) {
  const std::string number = std::to_string(id);
  return number + " " + number + " 1\n";
}

platform::NativeHandle open_namespace(const char* path) {
  return own_descriptor(::open(path, O_RDONLY | O_CLOEXEC));
}

}  // namespace

bool has_network_rights() {
  Capabilities sets{};
  return read_capabilities(sets) && has(sets, CAP_SYS_ADMIN) && has(sets, CAP_NET_ADMIN);
}

Refusal enter_new_user_namespace() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER) != 0) return {Step::UserNamespace, errno};
  // Without "deny" a user may not map its group: it could drop groups that forbid it something.
  if (!write_file("/proc/self/setgroups", "deny") && errno != ENOENT) return {Step::Mapping, errno};
  if (!write_file("/proc/self/uid_map", to_itself(user)) ||
      !write_file("/proc/self/gid_map", to_itself(group))) {
    return {Step::Mapping, errno};
  }
  return {};
}

Refusal enter_new_network_namespace() {
  if (::unshare(CLONE_NEWNET) != 0) return {Step::NetworkNamespace, errno};
  auto netlink = Netlink::open();
  if (!netlink) return {Step::Interface, errno};
  if (netlink->change_link(index_of("lo"), {.up = true}) != Status::Ok)
    return {Step::Interface, netlink->error()};
  return {};
}

platform::NativeHandle own_user_namespace() {
  return open_namespace("/proc/self/ns/user");
}

platform::NativeHandle own_network_namespace() {
  return open_namespace("/proc/self/ns/net");
}

Refusal join_user_namespace(int user_namespace) {
  // The kernel refuses the one in which the process is.
  const platform::NativeHandle own = own_user_namespace();
  if (own.valid() && namespace_id(own.get()) == namespace_id(user_namespace)) return {};
  if (::setns(user_namespace, CLONE_NEWUSER) != 0) return {Step::Join, errno};
  return {};
}

Refusal join_network_namespace(int network_namespace) {
  if (::setns(network_namespace, CLONE_NEWNET) != 0) return {Step::Join, errno};
  return {};
}

Refusal keep_capabilities() {
  Capabilities sets{};
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  if (!read_capabilities(sets)) return {Step::Capabilities, errno};
  for (__user_cap_data_struct& set : sets) set.inheritable = set.permitted;
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return {Step::Capabilities, errno};
  for (unsigned capability = 0; capability <= 63; ++capability) {
    if ((sets[CAP_TO_INDEX(capability)].permitted & CAP_TO_MASK(capability)) == 0) continue;
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0)
      return {Step::Capabilities, errno};
  }
  return {};
}

bool ignore_rights_of_files() {
  if (::unshare(CLONE_NEWNS) != 0) return false;
  mount_attr change{};
  change.attr_set = MOUNT_ATTR_NOSUID;
  return ::syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &change, sizeof change) == 0;
}

// A sysfs that is mounted now shows this network namespace. It needs a place for a moment, and the
// place that is to be covered anyway is the one that is there.
bool show_own_interfaces() {
  constexpr const char* kClass = "/sys/class/net";
  constexpr const char* kDevices = "/sys/devices/virtual/net";
  if (::unshare(CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/sys", nullptr, MS_SLAVE | MS_REC, nullptr) != 0) return false;
  // The kernel refuses a sysfs that may do more than the one which is there.
  struct statvfs old {};
  const bool read_only = ::statvfs("/sys", &old) == 0 && (old.f_flag & ST_RDONLY) != 0;
  unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (read_only) flags |= MS_RDONLY;
  if (::mount("sysfs", kClass, "sysfs", flags, nullptr) != 0) return false;
  const std::string whole = kClass;
  if (::mount((whole + "/devices/virtual/net").c_str(), kDevices, nullptr, MS_BIND, nullptr) == 0) {
    if (::mount((whole + "/class/net").c_str(), kClass, nullptr, MS_BIND, nullptr) == 0)
      return true;
    ::umount2(kDevices, MNT_DETACH);
  }
  ::umount2(kClass, MNT_DETACH);
  return false;
}

NamespaceId namespace_id(int descriptor) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) return {};
  return {found.st_dev, found.st_ino};
}

bool is_network_namespace(int descriptor) {
  return ::ioctl(descriptor, NS_GET_NSTYPE) == CLONE_NEWNET;
}

std::optional<pid_t> find_process_in(NamespaceId network, std::span<const pid_t> others) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc"), &::closedir);
  if (all == nullptr) return std::nullopt;
  while (const dirent* entry = ::readdir(all.get())) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    const std::string path = "/proc/" + std::string(name) + "/ns/net";
    struct stat found {};
    // Fails for processes of other users, and for those that have ended.
    if (::stat(path.c_str(), &found) != 0) continue;
    if (NamespaceId{found.st_dev, found.st_ino} != network) continue;
    if (std::find(others.begin(), others.end(), pid) == others.end()) return pid;
  }
  return std::nullopt;
}

namespace {

Refusal take_all_steps() {
  if (!has_network_rights()) {
    if (const Refusal refusal = enter_new_user_namespace()) return refusal;
  }
  if (const Refusal refusal = enter_new_network_namespace()) return refusal;
  const int tun = ::open("/dev/net/tun", O_RDWR | O_CLOEXEC);
  if (tun < 0) return {Step::TunDevice, errno};
  ::close(tun);
  std::string reason;
  auto tap = Tap::create({.name = "ib0"}, reason);
  if (!tap) return {Step::Tap, errno};
  auto netlink = Netlink::open();
  if (!netlink) return {Step::Interface, errno};
  if (netlink->change_link(index_of("ib0"), {.up = true, .mtu = kMaxMtu}) != Status::Ok)
    return {Step::Interface, netlink->error()};
  return keep_capabilities();
}

}  // namespace

Refusal find_missing_facility() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {Step::UserNamespace, errno};
  const platform::NativeHandle from = own_descriptor(ends[0]);
  platform::NativeHandle to = own_descriptor(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return {Step::UserNamespace, errno};
  if (child == 0) {
    const Refusal refusal = take_all_steps();
    ::_exit(::write(to.get(), &refusal, sizeof refusal) == sizeof refusal ? 0 : 1);
  }
  to.reset();
  // A seccomp filter that kills leaves no answer.
  Refusal refusal{Step::UserNamespace, EPERM};
  Refusal answer;
  ssize_t got = 0;
  do {
    got = ::read(from.get(), &answer, sizeof answer);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof answer) refusal = answer;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
  return refusal;
}

}  // namespace ib::os::net
