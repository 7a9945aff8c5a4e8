// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which paths softibd may answer for: one table, in claims.cpp. Text only: no file is looked at.
#pragma once

#include "host_abi/preload/path.h"

namespace ib::host_abi::preload {

enum class Claim {
  None,
  // softibd alone: what it does not have is absent, and a file of the kernel's by that name is
  // hidden. The machine's own adapters are not this host's.
  Ours,
  // The kernel's file if there is one, else softibd's. Found by name: the directory that it would
  // be in does not list it.
  IfAbsent,
};

Claim claim_on(const Path& path);
inline bool is_ours(const Path& path) {
  return claim_on(path) == Claim::Ours;
}

// A cheap first look: only a path with a component that begins like one of ours, or one below one
// of our directories, can be claimed. Everything else must cost next to nothing: this runs in each
// open() and stat().
bool may_be_claimed(const char* path);

// The same for a pattern of glob(), which goes through directories.
bool may_match_claimed(const char* pattern);

// A real directory in which ours appear: /sys/class, /sys/devices, /sys/class/misc, /dev.
bool is_parent(const Path& path);

// Could this be a way to write one of these? Spares others a look at /proc.
bool may_be_parent(const char* path);

}  // namespace ib::host_abi::preload
