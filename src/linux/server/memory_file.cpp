// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/memory_file.h"

#include "linux/process/client_handle.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

Result<NativeHandle> make_bytes_file(const char* name, std::span<const std::byte> bytes,
                                     std::string& reason) {
  NativeHandle file = make_memory_file(name);
  if (!file.valid()) return refused("memfd_create", errno, reason);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote =
        ::pwrite(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return refused("pwrite (memory file)", errno, reason);
    done += static_cast<std::size_t>(wrote);
  }
  return file;
}

// Only memory files have seals. One may be made shorter while it is read.
Result<std::vector<std::byte>> read_bytes_file(const NativeHandle& file, std::size_t most,
                                               std::string& reason) {
  struct ::stat facts {};
  if (::fcntl(file.get(), F_GET_SEALS) < 0 || ::fstat(file.get(), &facts) != 0) {
    reason = "the file is not a memfd";
    return Status::InvalidParameter;
  }
  if (static_cast<std::uint64_t>(facts.st_size) > most) {
    reason = "the file is longer than " + std::to_string(most) + " bytes";
    return Status::LimitExceeded;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(facts.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        ::pread(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused("pread (memory file)", errno, reason);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace ib::os
