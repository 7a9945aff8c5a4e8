// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The paths for which softibd may answer: one table, in claims.cpp. Works on text only; reads no
// file.
#pragma once

#include "host_abi/preload/path.h"

namespace ib::host_abi::preload {

enum class Claim {
  None,
  // softibd alone: a file that it does not have is absent, and a file of the kernel's by that name
  // is hidden. The machine's own adapters are not this host's.
  Ours,
  // The kernel's file if there is one, else softibd's. Found by its name only: the listing of its
  // directory does not have it.
  IfAbsent,
  // softibd's if it has the file, where the interface is a TAP device, or none of the kernel's
  // here: those of IP over InfiniBand are TAPs, and an adapter of the machine with such a name
  // stays.
  OfTap,
};

Claim claim_on(const Path& path);
inline bool is_ours(const Path& path) {
  return claim_on(path) == Claim::Ours;
}

// A cheap first check: only a path with a component that begins like one of ours, or a path below
// one of our directories, can be claimed. Must cost next to nothing for all other paths, since it
// runs in each open() and stat().
bool may_be_claimed(const char* path);

// The same for a pattern of glob(), which searches directories.
bool may_match_claimed(const char* pattern);

// Returns true for a real directory that lists ours too: /sys/class, /sys/devices, /sys/class/misc,
// /sys/devices/virtual/misc, /dev.
bool is_parent(const Path& path);

// Returns false if the path cannot lead to one of these; that saves a look at /proc.
bool may_be_parent(const char* path);

}  // namespace ib::host_abi::preload
