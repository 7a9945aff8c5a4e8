// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/device_files/held_file.h"

#include "host_abi/preload/own_descriptors.h"
#include "host_abi/preload/system_calls.h"
#include "linux/client/client_fork.h"
#include "linux/descriptor_table.h"

#include <sys/single_threaded.h>

#include <utility>

namespace ib::host_abi::preload {

void HeldFile::hold(int fd) {
  if (holds()) return;
  fd_ = fd;
  if (__libc_single_threaded != 0) return;
  const sys::KeepErrno keep;
  const int own = os::duplicate_high(fd);
  if (own < 0) return;
  fd_ = own;
  is_own_ = true;
  own::protect(own);
  is_registered_ = os::close_in_children(own);
}

void HeldFile::release(void* held_file) {
  auto& self = *static_cast<HeldFile*>(held_file);
  const int fd = std::exchange(self.fd_, -1);
  if (!std::exchange(self.is_own_, false)) return;
  if (self.is_registered_) os::forget_close_in_children(fd);
  const sys::KeepErrno keep;
  own::unprotect(fd);
  sys::close(fd);
}

}  // namespace ib::host_abi::preload
