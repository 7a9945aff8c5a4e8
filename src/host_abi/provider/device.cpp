// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The entry of the plug-in: loading it, and matching devices.
#include "host_abi/provider/abi/abi_check.h"
#include "host_abi/provider/ops.h"
#include "host_abi/provider/provider.h"

#include <cstdio>
#include <cstring>

namespace ib::host_abi {

namespace {

VerbsPrivate g_private{};

bool match_device(VerbsSysfsDev* dev) {
  constexpr std::string_view kPrefix = "softib";
  return std::strncmp(dev->ibdev_name, kPrefix.data(), kPrefix.size()) == 0;
}

VerbsDevice* alloc_device(VerbsSysfsDev*) {
  return new (std::nothrow) VerbsDevice{};
}

void uninit_device(VerbsDevice* device) {
  delete device;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const VerbsDeviceOps verbs_provider_softib = {
    .name = "softib",
    .match_min_abi_version = 0,
    .match_max_abi_version = 0xffffffffu,
    .match_table = nullptr,
    .static_providers = nullptr,
    .match_device = match_device,
    .alloc_context = alloc_context,
    .import_context = import_context,
    .alloc_device = alloc_device,
    .uninit_device = uninit_device,
};

namespace {

// libibverbs loads plug-ins with dlopen; this constructor registers the plug-in.
__attribute__((constructor)) void register_driver() {
  std::string reason;
  if (!load_verbs_private(g_private, reason)) {
    static_cast<void>(std::fprintf(stderr, "softib: %s\n", reason.c_str()));
    return;
  }
  register_preload_hooks();
  g_private.register_driver(&verbs_provider_softib);
}

}  // namespace

const VerbsPrivate& verbs_private() {
  return g_private;
}

}  // namespace ib::host_abi
