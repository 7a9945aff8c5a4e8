// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The entry of the plug-in: loading it, and matching devices.
#include "host_abi/provider/deferred.h"
#include "host_abi/provider/ops.h"
#include "host_abi/provider/provider.h"

#include <cstdio>
#include <cstring>
#include <mutex>

namespace ib::host_abi {

namespace {

VerbsPrivate g_private{};

bool match_device(VerbsSysfsDev* dev) {
  constexpr std::string_view kPrefix = "softib";
  return std::strncmp(dev->ibdev_name, kPrefix.data(), kPrefix.size()) == 0;
}

// libibverbs keeps its devices until the program ends, in a list that has no pointer to the start
// of one, so that a leak checker would take them for lost. It finds them here.
struct Device : VerbsDevice {
  Device* next = nullptr;
};
constinit std::mutex g_mutex;
constinit Device* g_devices = nullptr;

VerbsDevice* alloc_device(VerbsSysfsDev*) {
  auto* const device = new (std::nothrow) Device{};
  if (device == nullptr) return nullptr;
  const std::lock_guard lock(g_mutex);
  device->next = g_devices;
  g_devices = device;
  return device;
}

void uninit_device(VerbsDevice* device) {
  const std::lock_guard lock(g_mutex);
  Device** at = &g_devices;
  while (*at != device) at = &(*at)->next;
  *at = (*at)->next;
  delete static_cast<Device*>(device);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const VerbsDeviceOps verbs_provider_softib = {
    .name = "softib",
    .match_min_abi_version = 0,
    .match_max_abi_version = 0xffffffffu,
    .match_table = nullptr,
    .static_providers = nullptr,
    .match_device = match_device,
    .alloc_context = deferred<alloc_context>,
    .import_context = deferred<import_context>,
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
