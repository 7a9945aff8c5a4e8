// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Entries of getifaddrs() for the addresses of this node that no interface of the kernel has.
#pragma once

#include <ifaddrs.h>

#include <cstddef>

namespace ib::host_abi::preload {

// Returns entries in one block of malloc() for the lines of `text` that are addresses and that
// `known` does not have. They are not marked as loopback, although most such addresses are in
// 127.0.0.0/8: a node has its devices at them, and libraries pass loopback interfaces over.
// Returns nullptr if there is none, or no memory; then `failed` is set.
ifaddrs* make_entries(const char* text, std::size_t length, const ifaddrs* known, bool& failed);

// Returns whether the entry is one of make_entries().
bool is_made_entry(const ifaddrs& entry);

}  // namespace ib::host_abi::preload
