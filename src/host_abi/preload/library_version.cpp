// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message to the user of a program whose libibverbs is of a version that softib has no plug-in
// for. That library says at most that a file is missing, and the program finds no HCA. The message
// comes at the end of the program, when it is known what was loaded.
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"
#include "verbs/private_abi.h"

#include <link.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace ib::host_abi::preload {
namespace {

struct Found {
  std::array<char, 512> path{};
};

int find_library(dl_phdr_info* library, std::size_t, void* result) {
  const std::string_view path(library->dlpi_name);
  auto& found = *static_cast<Found*>(result);
  if (path.find("/libibverbs.so") == std::string_view::npos || path.size() >= found.path.size()) {
    return 0;
  }
  std::memcpy(found.path.data(), path.data(), path.size());
  return 1;
}

bool has_private_abi(void* library, int abi) {
  std::array<char, 40> name{};
  std::array<char, 40> version{};
  (void)std::snprintf(name.data(), name.size(), "verbs_register_driver_%d", abi);
  (void)std::snprintf(version.data(), version.size(), "IBVERBS_PRIVATE_%d", abi);
  return ::dlvsym(library, name.data(), version.data()) != nullptr;
}

void tell(const Found& library, int abi) {
  std::array<char, PATH_MAX> real{};
  const char* const file = ::realpath(library.path.data(), real.data());
  const std::string_view release = verbs::rdma_core_release(file != nullptr ? file : "");
  const std::string_view name = release.empty() ? std::string_view(library.path.data()) : release;
  std::array<char, 1024> text{};
  const int size = std::snprintf(
      text.data(), text.size(),
      "softib: %s%.*s has private ABI %d; this softib knows %d to %d, so this program has found no "
      "HCA of it\n",
      release.empty() ? "" : "rdma-core ", static_cast<int>(name.size()), name.data(), abi,
      verbs::kPrivateAbis.front(), verbs::kPrivateAbis.back());
  if (size > 0) (void)sys::write(STDERR_FILENO, text.data(), static_cast<std::size_t>(size));
}

[[gnu::destructor]] void tell_of_unknown_version() {
  Found found;
  if (::dl_iterate_phdr(find_library, &found) == 0) return;
  void* const library = ::dlopen(found.path.data(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  const int abi = verbs::find_private_abi([&](int one) { return has_private_abi(library, one); });
  (void)::dlclose(library);
  if (abi != 0 && !verbs::is_known_private_abi(abi)) tell(found, abi);
}

}  // namespace
}  // namespace ib::host_abi::preload
