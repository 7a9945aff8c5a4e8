// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The descriptors that a client has for longer than a call: its connections to softibd, files of
// device memory and of adopted pages, ends of completion channels. Nothing is read from, written to
// or closed by their numbers without a look whether these are still the same files.
#pragma once

#include "platform/control_channel.h"

namespace ib::os {

// Told of each such descriptor, before it is used and when it is about to be closed: the preload
// library keeps the program's own calls of close() away from it.
struct DescriptorGuard {
  void (*protect)(int fd) = nullptr;
  void (*unprotect)(int fd) = nullptr;
};
// For descriptors that are kept from then on.
void set_descriptor_guard(DescriptorGuard guard);

// The same file under a high number, if there is a free one (linux/descriptor_table.h);
// close-on-exec. The handle closes it only if the number still means that file.
platform::NativeHandle keep_descriptor(platform::NativeHandle handle);
// Returns true for a number of keep_descriptor() that the program has closed since, or uses for
// another file.
bool is_replaced(int fd);

}  // namespace ib::os
