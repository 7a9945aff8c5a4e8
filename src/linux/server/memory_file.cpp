// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/memory_file.h"

#include "linux/client/client_handle.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ib::os {

using platform::NativeHandle;

Status refused(const char* call, int error, std::string& reason) {
  reason = std::string(call) + ": " + std::strerror(error);
  switch (error) {
    case ENOSPC:
    case ENOMEM:
    case EFBIG:  // RLIMIT_FSIZE
    case EMFILE:
    case ENFILE: return Status::InsufficientResources;
    default: return Status::IoError;
  }
}

namespace {

// `use`: a flag of Linux 6.3, left out where it is not known.
NativeHandle make_file(const char* name, unsigned use) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  NativeHandle file = own_descriptor(::memfd_create(name, kFlags | use));
  if (!file.valid() && errno == EINVAL) file = own_descriptor(::memfd_create(name, kFlags));
  return file;
}

}  // namespace

// Some systems log or refuse files without MFD_NOEXEC_SEAL.
NativeHandle make_memory_file(const char* name) {
  constexpr unsigned kNoExecSeal = 8;
  return make_file(name, kNoExecSeal);
}

NativeHandle make_code_file(const char* name) {
  constexpr unsigned kExec = 16;
  return make_file(name, kExec);
}

Result<NativeHandle> make_shared_file(const char* name, std::uint64_t size, std::string& reason) {
  NativeHandle file = make_memory_file(name);
  if (!file.valid()) return refused("memfd_create", errno, reason);
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0)
    return refused("ftruncate (memory file)", errno, reason);
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0)
    return refused("fcntl (F_ADD_SEALS)", errno, reason);
  return file;
}

}  // namespace ib::os
