// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// File descriptors as NativeHandle, for the client side of linux/.
#pragma once

#include "base/result.h"
#include "linux/process/client_signals.h"
#include "platform/control_channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace ib::os {

// Takes ownership of a descriptor. close(2) is never repeated: Linux frees the number even when it
// fails with EINTR, and a second close might close a descriptor of another thread. A destructor
// must not be a cancellation point.
inline platform::NativeHandle own_descriptor(int descriptor) {
  return platform::NativeHandle(descriptor, [](int fd) {
    const CancelGuard no_cancel;
    (void)::close(fd);
  });
}

// Why a call that makes a descriptor has failed.
inline Status no_descriptor(int error) {
  return error == EMFILE || error == ENFILE ? Status::TooManyHandles : Status::IoError;
}

}  // namespace ib::os
