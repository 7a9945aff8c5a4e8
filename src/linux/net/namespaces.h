// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Namespaces of a fabric's network: one of users per fabric, one of the network per node.
//
// Without root a process makes a user namespace, in which its own user is mapped to itself and has
// all rights over the network namespaces that are made there. Such rights are lost at exec unless
// they are kept (keep_capabilities). A process that has these rights where it is makes none.
// Thread rule: the kernel wants a process of one thread.
#pragma once

#include "linux/net/refusal.h"
#include "platform/control_channel.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

namespace ib::os::net {

// Returns whether this process may make network namespaces and interfaces where it is.
bool has_network_rights();

// This process moves to a new one.
Refusal enter_new_user_namespace();
// Its loopback interface is up. `rights` as above.
Refusal enter_new_network_namespace();

// Those in which this process is; close-on-exec. Invalid: no /proc.
platform::NativeHandle own_user_namespace();
platform::NativeHandle own_network_namespace();

// This process moves there. A user namespace in which it is already counts as entered.
Refusal join_user_namespace(int user_namespace);
Refusal join_network_namespace(int network_namespace);
// Programs that this process executes have all its capabilities, whatever user they run as.
Refusal keep_capabilities();

// From here on files give this process and its programs no rights (set-user-ID, capabilities of
// files, such as those of ping): the kernel would take the ambient ones away for them, and the
// loader LD_PRELOAD. In a mount namespace of its own, which has the mounts of the old one. Returns
// false if that cannot be had.
bool ignore_rights_of_files();

// /sys/class/net, and the devices in it that are no hardware, are those of the network namespace in
// which this process is, for it and its programs; the rest of /sys stays. In a mount namespace of
// its own, of which nothing but /sys is cut off from the old one. Returns false, with /sys as it
// was, if that cannot be had.
bool show_own_interfaces();

// Which namespace a descriptor means.
struct NamespaceId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;  // 0: none
  friend bool operator==(NamespaceId, NamespaceId) = default;
};
NamespaceId namespace_id(int descriptor);
// Returns whether a descriptor is a network namespace at all.
bool is_network_namespace(int descriptor);

// Returns a process that is in a network namespace, but for `others`: the first that /proc shows.
std::optional<pid_t> find_process_in(NamespaceId network, std::span<const pid_t> others);

// Takes all steps, in a child process that then ends. The machine is as before.
Refusal find_missing_facility();

}  // namespace ib::os::net
