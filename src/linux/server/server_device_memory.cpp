// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/server_device_memory.h"

#include "base/assert.h"
#include "linux/barriers.h"
#include "linux/process/client_handle.h"
#include "linux/process/client_wait.h"
#include "linux/server/memory_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

namespace ib::os {
namespace {

using platform::NativeHandle;

bool write_all(int file, std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    // Not write(): the reader shares the file position and starts at 0.
    const ssize_t n =
        ::pwrite(file, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

// `space`, or as large a part of it as leaves the process addresses for its threads and its heap
// (RLIMIT_AS), but not below `least`.
std::uint64_t affordable(std::uint64_t space, std::uint64_t least) {
  constexpr std::uint64_t kForTheRest = std::uint64_t{256} << 20;
  for (; space / 2 >= least; space /= 2) {
    const std::uint64_t all = space + kForTheRest;
    void* const probe =
        ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED) continue;
    (void)::munmap(probe, all);
    break;
  }
  return space;
}

}  // namespace

ServerDeviceMemory::~ServerDeviceMemory() {
  if (base_ != nullptr) ::munmap(base_, space_);
}

Status ServerDeviceMemory::create(std::uint64_t size, std::uint64_t space, std::string& reason) {
  IB_ASSERT(base_ == nullptr && size <= space);
  Result<NativeHandle> file = make_shared_file("softib-device-memory", size, reason);
  if (!file) return file.error();
  file_ = *std::move(file);
  space_ = affordable(space, 2 * size);
  void* at =
      ::mmap(nullptr, space_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  if (at == MAP_FAILED) return refused("mmap (device memory)", errno, reason);
  base_ = static_cast<std::byte*>(at);
  // Not in core dumps: they would have the size of the address space. Failure does no harm.
  (void)::madvise(at, space_, MADV_DONTDUMP);
  return Status::Ok;
}

std::uint64_t ServerDeviceMemory::size() {
  struct stat s {};
  return ::fstat(file_.get(), &s) == 0 ? static_cast<std::uint64_t>(s.st_size) : 0;
}

Status ServerDeviceMemory::grow(std::uint64_t size, std::string& reason) {
  IB_ASSERT(size <= space_);
  if (size <= this->size()) return Status::Ok;
  if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0)
    return refused("ftruncate (device memory)", errno, reason);
  return Status::Ok;
}

void ServerDeviceMemory::punch(std::uint64_t offset, std::uint64_t length) {
  IB_ASSERT(offset + length <= space_);
  if (length == 0) return;
  const int error = ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(offset), static_cast<off_t>(length));
  if (error != 0) std::memset(base_ + offset, 0, length);
}

std::uint64_t ServerDeviceMemory::used_bytes() {
  struct stat s {};
  constexpr std::uint64_t kBlock = 512;  // the unit of st_blocks, whatever st_blksize is
  return ::fstat(file_.get(), &s) == 0 ? static_cast<std::uint64_t>(s.st_blocks) * kBlock : 0;
}

Result<NativeHandle> ServerDeviceMemory::device_memory_handle(std::string& reason) {
  return duplicate(file_, reason);
}

Result<NativeHandle> ServerDeviceMemory::duplicate(const NativeHandle& handle,
                                                   std::string& reason) {
  NativeHandle copy = own_descriptor(::fcntl(handle.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return refused("fcntl (F_DUPFD_CLOEXEC)", errno, reason);
  return copy;
}

Result<NativeHandle> ServerDeviceMemory::make_text(std::string_view text, std::string& reason) {
  NativeHandle file = make_memory_file("softib-text");
  if (!file.valid()) return refused("memfd_create", errno, reason);
  if (!write_all(file.get(), text)) return refused("pwrite (memory file)", errno, reason);
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0)
    return refused("fcntl (F_ADD_SEALS)", errno, reason);
  return file;
}

Result<std::uint64_t> ServerDeviceMemory::seal_and_measure(const NativeHandle& file,
                                                           std::string& reason) {
  if (!file.valid()) {
    reason = "a memory file was expected, none came";
    return Status::InvalidParameter;
  }
  // It may have the seal already, and one that forbids more.
  (void)::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK);
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  struct stat s {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(file.get(), &s) != 0) {
    reason = "the file is not a memfd that can be sealed against shrinking (MFD_ALLOW_SEALING)";
    return Status::InvalidParameter;
  }
  return static_cast<std::uint64_t>(s.st_size);
}

bool ServerDeviceMemory::is_pipe_end(const NativeHandle& handle, bool write_end) {
  struct stat s {};
  if (!handle.valid() || ::fstat(handle.get(), &s) != 0 || !S_ISFIFO(s.st_mode)) return false;
  const int flags = ::fcntl(handle.get(), F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == (write_end ? O_WRONLY : O_RDONLY);
}

bool ServerDeviceMemory::write_pipe(const NativeHandle& write_end,
                                    std::span<const std::byte> bytes) {
  // The client made the pipe, and a process that shares it may have made it blocking: that would
  // stop softibd.
  const int flags = ::fcntl(write_end.get(), F_GETFL);
  if (flags < 0) return false;
  if ((flags & O_NONBLOCK) == 0 && ::fcntl(write_end.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return false;
  return write_to_pipe(write_end.get(), bytes) == Status::Ok;
}

std::uint64_t ServerDeviceMemory::unread_bytes(const NativeHandle& read_end) {
  int bytes = 0;
  const bool is_known = ::ioctl(read_end.get(), FIONREAD, &bytes) == 0 && bytes > 0;
  return is_known ? static_cast<std::uint64_t>(bytes) : 0;
}

std::size_t ServerDeviceMemory::max_handles() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

platform::Barriers& ServerDeviceMemory::barriers() {
  return os::barriers();
}

std::uint64_t ServerDeviceMemory::page_size() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint32_t ServerDeviceMemory::pid() {
  return static_cast<std::uint32_t>(::getpid());
}

bool ServerDeviceMemory::is_alive(std::uint32_t pid) {
  if (pid == 0 || pid > INT_MAX) return false;
  const NativeHandle process =
      own_descriptor(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
  if (!process.valid()) {
    // Unless there is no such process, query with kill(), which counts zombies.
    return errno != ESRCH && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
  }
  pollfd ended{process.get(), POLLIN, 0};  // readable once its last thread has gone
  return ::poll(&ended, 1, 0) == 0;
}

void ServerDeviceMemory::wake(std::atomic<std::uint32_t>& word) {
  futex_wake(word);
}

}  // namespace ib::os
