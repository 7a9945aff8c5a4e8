// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// getifaddrs() and freeifaddrs(). A node's addresses are its own in 127.0.0.0/8, where the kernel
// lists 127.0.0.1 only; libraries that choose among the listed ones would find none to bind to.
#include "host_abi/preload/names/interface_list.h"
#include "host_abi/preload/names/node_names.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/remote.h"

#include <array>
#include <cstdlib>

namespace ib::host_abi::preload {
namespace {

constinit Real<int(ifaddrs**)> real_getifaddrs{"getifaddrs"};
constinit Real<void(ifaddrs*)> real_freeifaddrs{"freeifaddrs"};

// The pointer that ends the part of the list that libc has made.
ifaddrs*& end_of_libc(ifaddrs*& list) {
  ifaddrs** at = &list;
  while (*at != nullptr && !is_made_entry(**at)) at = &(*at)->ifa_next;
  return *at;
}

void release(ifaddrs* list) {
  ifaddrs*& made = end_of_libc(list);
  std::free(made);
  made = nullptr;
  if (list != nullptr) real_freeifaddrs(list);
}

}  // namespace

int our_getifaddrs(ifaddrs**) IB_STANDS_FOR("getifaddrs");
int our_getifaddrs(ifaddrs** result) {
  const int error = real_getifaddrs(result);
  if (error != 0) return error;
  std::array<char, 64> node{};
  remote::copy_node(node);
  char text[kAddressesSize];
  const std::size_t length = read_node_addresses(node.data(), text);
  bool failed = false;
  end_of_libc(*result) = make_entries(text, length, *result, failed);
  if (!failed) return 0;
  release(*result);
  errno = ENOMEM;
  return -1;
}

void our_freeifaddrs(ifaddrs*) IB_STANDS_FOR("freeifaddrs");
void our_freeifaddrs(ifaddrs* list) {
  release(list);
}

}  // namespace ib::host_abi::preload
