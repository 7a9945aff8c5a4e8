// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// getaddrinfo() and gethostbyname() with its variants: names of the fabric's nodes are names of
// hosts. The real function gets the node's address instead of its name, and does all the rest.
#include "host_abi/preload/names/node_names.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"

#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <string_view>

namespace ib::host_abi::preload {
namespace {

constexpr std::string_view kFolder = verbs::control::kHostsFolder;
constexpr std::size_t kNameSize = 64;

constinit Real<int(const char*, const char*, const addrinfo*, addrinfo**)> real_getaddrinfo{
    "getaddrinfo"};
constinit Real<hostent*(const char*)> real_gethostbyname{"gethostbyname"};
constinit Real<hostent*(const char*, int)> real_gethostbyname2{"gethostbyname2"};
constinit Real<int(const char*, hostent*, char*, std::size_t, hostent**, int*)>
    real_gethostbyname_r{"gethostbyname_r"};
constinit Real<int(const char*, int, hostent*, char*, std::size_t, hostent**, int*)>
    real_gethostbyname2_r{"gethostbyname2_r"};

// The query of the caller has a name, so the answer has it too.
hostent* renamed(hostent* entry, const char* name, char* storage) {
  if (entry == nullptr) return nullptr;
  std::memcpy(storage, name, std::strlen(name) + 1);
  entry->h_name = storage;
  return entry;
}

// gethostbyname() resolves to IPv4, gethostbyname2() has the family as a further argument.
constexpr int family_of() {
  return AF_INET;
}
constexpr int family_of(int family) {
  return family;
}

// `storage` lives as long as the real function's own result.
template <class RealCall, class... Family>
hostent* by_name(RealCall& real, char* storage, const char* name, Family... family) {
  char address[kAddressSize];
  if (!find_node_address(name, family_of(family...), address)) return real(name, family...);
  return renamed(real(address, family...), name, storage);
}

// The end of the caller's buffer is for the name.
template <class RealCall, class... Family>
// NOLINTNEXTLINE(readability-function-size): the parameters are those of gethostbyname_r
int by_name_r(RealCall& real, hostent* entry, char* buffer, std::size_t size, hostent** result,
              int* error, const char* name, Family... family) {
  char address[kAddressSize];
  if (!find_node_address(name, family_of(family...), address)) {
    return real(name, family..., entry, buffer, size, result, error);
  }
  const std::size_t room = std::strlen(name) + 1;
  const std::size_t rest = size > room ? size - room : 0;
  const int failed = real(address, family..., entry, buffer, rest, result, error);
  if (failed == 0 && *result != nullptr) (void)renamed(*result, name, buffer + size - room);
  return failed;
}

}  // namespace

std::size_t read_node_addresses(const char* name, char (&text)[kAddressesSize]) {
  if (name == nullptr || !can_be_node(name)) return 0;
  Path path;
  path.length = kFolder.size() + std::strlen(name);
  std::memcpy(path.text, kFolder.data(), kFolder.size());
  std::memcpy(path.text + kFolder.size(), name, std::strlen(name) + 1);
  verbs::control::ViewStatOut stat{};
  int fd = -1;
  if (remote::open(path, stat, fd) != remote::Reply::Ok || fd < 0) return 0;
  const sys::KeepErrno keep;
  const ssize_t got = sys::pread(fd, text, sizeof text, 0);
  sys::close(fd);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

bool find_node_address(const char* name, int family, char (&out)[kAddressSize]) {
  char text[kAddressesSize];
  const std::size_t got = read_node_addresses(name, text);
  return got > 0 && pick_address(text, got, family, out);
}

int our_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**)
    IB_STANDS_FOR("getaddrinfo");
int our_getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                    addrinfo** result) {
  const int flags = hints != nullptr ? hints->ai_flags : 0;
  char address[kAddressSize];
  if ((flags & AI_NUMERICHOST) != 0 ||
      !find_node_address(node, hints != nullptr ? hints->ai_family : AF_UNSPEC, address)) {
    return real_getaddrinfo(node, service, hints, result);
  }
  addrinfo numeric{};
  if (hints != nullptr) numeric = *hints;
  // An address of the loopback interface does not count for AI_ADDRCONFIG.
  numeric.ai_flags = (flags & ~(AI_CANONNAME | AI_ADDRCONFIG)) | AI_NUMERICHOST;
  const int error = real_getaddrinfo(address, service, &numeric, result);
  if (error != 0 || (flags & AI_CANONNAME) == 0) return error;
  (*result)->ai_canonname = ::strdup(node);  // freeaddrinfo() frees it
  if ((*result)->ai_canonname != nullptr) return 0;
  ::freeaddrinfo(*result);
  return EAI_MEMORY;
}

hostent* our_gethostbyname(const char*) IB_STANDS_FOR("gethostbyname");
hostent* our_gethostbyname(const char* name) {
  static char storage[kNameSize];
  return by_name(real_gethostbyname, storage, name);
}

hostent* our_gethostbyname2(const char*, int) IB_STANDS_FOR("gethostbyname2");
hostent* our_gethostbyname2(const char* name, int family) {
  static char storage[kNameSize];
  return by_name(real_gethostbyname2, storage, name, family);
}

int our_gethostbyname_r(const char*, hostent*, char*, std::size_t, hostent**, int*)
    IB_STANDS_FOR("gethostbyname_r");
int our_gethostbyname_r(const char* name, hostent* entry, char* buffer, std::size_t size,
                        hostent** result, int* error) {
  return by_name_r(real_gethostbyname_r, entry, buffer, size, result, error, name);
}

int our_gethostbyname2_r(const char*, int, hostent*, char*, std::size_t, hostent**, int*)
    IB_STANDS_FOR("gethostbyname2_r");
// NOLINTNEXTLINE(readability-function-size): the parameters are those of gethostbyname2_r
int our_gethostbyname2_r(const char* name, int family, hostent* entry, char* buffer,
                         std::size_t size, hostent** result, int* error) {
  return by_name_r(real_gethostbyname2_r, entry, buffer, size, result, error, name, family);
}

}  // namespace ib::host_abi::preload
