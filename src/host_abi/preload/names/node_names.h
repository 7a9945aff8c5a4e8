// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The names of the fabric's nodes as names of hosts.
#pragma once

#include <cstddef>

namespace ib::host_abi::preload {

inline constexpr std::size_t kAddressSize = 46;  // INET6_ADDRSTRLEN

// Returns whether a node can have this name: not empty, at most 63 letters, digits, '_', '-' and
// '.', and no IPv4 address.
bool can_be_node(const char* name);

// Copies the first line of `text` that is an address of `family` (AF_INET, AF_INET6; AF_UNSPEC:
// any) to `out`. If none is, the first line, so that the caller's real function gives the error for
// it. Returns false if there is no line that can be an address.
bool pick_address(const char* text, std::size_t length, int family, char (&out)[kAddressSize]);

// softibd's limit of the addresses of a node needs less.
inline constexpr std::size_t kAddressesSize = 1024;

// Queries softibd for the addresses of the node `name`, one a line. Returns the length of `text`; 0
// if no node has that name, or softibd is not reached.
std::size_t read_node_addresses(const char* name, char (&text)[kAddressesSize]);

// Queries softibd for an address of the node `name`, chosen by pick_address(). Returns false if no
// node has that name, or softibd is not reached.
bool find_node_address(const char* name, int family, char (&out)[kAddressSize]);

}  // namespace ib::host_abi::preload
