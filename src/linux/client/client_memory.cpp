// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/client_memory.h"

#include "base/address.h"
#include "linux/process/client_handle.h"
#include "linux/process/kept_descriptor.h"
#include "linux/process/process_number.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>

namespace ib::os {
namespace {

std::uint64_t page_size() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Maps one page that is not locked, which may then grow to any size without being counted. Room of
// the whole size must be at `at`, unless that is nullptr.
void* grow_unlocked(void* at, std::size_t bytes, int flags, int file, std::uint64_t offset) {
  const std::uint64_t page = page_size();
  void* const small =
      ::mmap(nullptr, page, PROT_NONE, flags & ~MAP_FIXED, file, static_cast<off_t>(offset));
  if (small == MAP_FAILED) return MAP_FAILED;
  (void)::syscall(SYS_munlock, small, page);
  const long how = MREMAP_MAYMOVE | (at != nullptr ? MREMAP_FIXED : 0);
  const long grown = ::syscall(SYS_mremap, small, page, bytes, how, at);
  if (grown >= 0) return pointer_to<void>(static_cast<std::uint64_t>(grown));
  const int error = errno;
  (void)::munmap(small, page);
  errno = error;
  return MAP_FAILED;
}

// Device memory is not the program's: where it has called mlockall(MCL_FUTURE), the kernel would
// count all of it against RLIMIT_MEMLOCK, fail with EAGAIN, or bring in each page of each queue
// that there is. Without access it brings in nothing, and what is not locked is not counted.
void* map_unlocked(void* at, std::size_t bytes, int rights, int flags, int file,
                   std::uint64_t offset) {
  void* made = ::mmap(at, bytes, PROT_NONE, flags, file, static_cast<off_t>(offset));
  if (made == MAP_FAILED && errno == EAGAIN) made = grow_unlocked(at, bytes, flags, file, offset);
  if (made == MAP_FAILED) return MAP_FAILED;
  // By number: the preload library's functions are for what programs do.
  (void)::syscall(SYS_munlock, made, bytes);
  if (rights == PROT_NONE || ::syscall(SYS_mprotect, made, bytes, long{rights}) == 0) return made;
  return MAP_FAILED;
}

// The reserved address space has no access beyond the end of the file: tools that look at all
// memory of a process (a leak checker) pass over it, where a mapping without a file behind it would
// raise SIGBUS. The new part of a grown file is mapped when file_size() is called.
class FileMapping final : public platform::MappedFile {
 public:
  FileMapping(platform::NativeHandle file, std::byte* base, std::uint64_t size)
      : file_(std::move(file)), base_(base), size_(size), owner_(process_number()) {}
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;
  ~FileMapping() override {
    // A forked child did not inherit the mapping: another one may be at its address there.
    if (process_number() == owner_) (void)::munmap(base_, size_);
  }

  std::byte* base() const override { return base_; }
  std::uint64_t size() const override { return size_; }
  std::uint64_t file_size() override {
    struct stat status {};
    if (is_replaced(file_.get()) || ::fstat(file_.get(), &status) != 0 || status.st_size < 0) {
      return 0;
    }
    const auto length = static_cast<std::uint64_t>(status.st_size);
    return process_number() == owner_ && grow(std::min(length, size_)) ? length : 0;
  }

 private:
  bool grow(std::uint64_t length) {
    const std::lock_guard guard(mutex_);
    const std::uint64_t page = page_size();
    const std::uint64_t end = std::min((length + page - 1) / page * page, size_);
    if (end <= mapped_) return true;
    std::byte* const from = base_ + mapped_;
    const std::uint64_t bytes = end - mapped_;
    if (map_unlocked(from, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                     file_.get(), mapped_) == MAP_FAILED) {
      return false;
    }
    (void)::madvise(from, bytes, MADV_DONTDUMP);
    // Without this a child would go on writing into its parent's queues.
    if (::madvise(from, bytes, MADV_DONTFORK) != 0) return false;
    mapped_ = end;
    return true;
  }

  platform::NativeHandle file_;
  std::byte* base_;
  std::uint64_t size_;
  std::uint64_t owner_;
  std::mutex mutex_;
  std::uint64_t mapped_ = 0;  // from `base_` on
};

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{} MiB", bytes >> 20);
}

std::string why_not_mapped(int error, std::uint64_t space) {
  std::string text = "cannot reserve " + mebibytes(space) + " of address space for device memory: ";
  rlimit limit{};
  if (error == ENOMEM && ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return text + "the address space of this process is limited to " + mebibytes(limit.rlim_cur) +
           " (RLIMIT_AS); it is only reserved, not used: raise the limit with `ulimit -v "
           "unlimited`";
  }
  if (error == ENOMEM) {
    return text +
           "no address space left (see /proc/sys/vm/max_map_count if this process has many maps)";
  }
  return text + std::strerror(error);
}

Status vm_status(int error) {
  switch (error) {
    case ESRCH: return Status::NotFound;
    case EFAULT: return Status::Malformed;
    case ENOMEM: return Status::InsufficientResources;
    case EPERM:
    case EACCES:
    case ENOSYS:  // a seccomp profile may return this
      return Status::AccessDenied;
    default: return Status::IoError;
  }
}

// Programs poll the last byte of an incoming write, so the tail is a segment of its own: the kernel
// moves segments in order.
constexpr std::size_t kTail = 8;

enum class Move { Read, Write };

// The kernel moves at most 2 GiB at once, and less if it meets an unmapped page on the way; the
// next call from there shows which it was. Each call passes over the nameplate first. A read brings
// the number along, and bytes that came with another number are discarded. A write stores the
// number once more: in any other process that fails, and the kernel goes no further. By number,
// because ThreadSanitizer counts the C library's functions as accesses of the calling thread, and
// this is like DMA (hca/memory/copy.h).
Status move_all(Move move, const platform::ProcessName& who, void* here, std::uint64_t there,
                std::size_t length) {
  constexpr std::size_t kPlate = sizeof who.plate.number;
  if (who.plate.address == 0) return Status::Disconnected;
  // A 32-bit process has no name for the upper memory of a 64-bit one.
  constexpr std::uint64_t kLast = std::numeric_limits<std::uintptr_t>::max();
  if (who.plate.address > kLast - kPlate || length > kLast || there > kLast - length) {
    return Status::AccessDenied;
  }
  const long call = move == Move::Read ? SYS_process_vm_readv : SYS_process_vm_writev;
  auto* local = static_cast<std::byte*>(here);
  while (length != 0) {
    const std::size_t head = length > kTail ? length - kTail : 0;
    std::uint64_t number = move == Move::Read ? 0 : who.plate.number;
    const std::array<iovec, 3> mine{
        {{&number, kPlate}, {local, head}, {local + head, length - head}}};
    // NOLINTBEGIN(performance-no-int-to-ptr)
    const std::array<iovec, 2> theirs{{{reinterpret_cast<void*>(who.plate.address), kPlate},
                                       {reinterpret_cast<void*>(there), length}}};
    // NOLINTEND(performance-no-int-to-ptr)
    const long result = ::syscall(call, static_cast<pid_t>(who.pid), mine.data(), mine.size(),
                                  theirs.data(), theirs.size(), 0ul);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) return errno == EFAULT ? Status::Disconnected : vm_status(errno);
    const auto passed = static_cast<std::size_t>(result);
    if (passed < kPlate || number != who.plate.number) return Status::Disconnected;
    if (passed == kPlate) return Status::Malformed;
    const std::size_t moved = passed - kPlate;
    local += moved;
    there += moved;
    length -= moved;
  }
  return Status::Ok;
}

// Of the 4 GiB of a 32-bit process: the tables, and 845 MiB of queues, which softibd allocates from
// the lowest addresses on. The rest is for the program and the adopted pages of its peers.
constexpr bool kIs32Bit = sizeof(void*) == 4;
constexpr std::uint64_t kMostReserved =
    kIs32Bit ? std::uint64_t{1536} << 20 : std::numeric_limits<std::uint64_t>::max();

// The next smaller size to try; 0: that would be too small for a file of `length` bytes.
std::uint64_t smaller(std::uint64_t reserved, std::uint64_t length) {
  const std::uint64_t next = kIs32Bit ? reserved - (std::uint64_t{64} << 20) : reserved / 2;
  const std::uint64_t least = kIs32Bit ? length + length / 4 : length * 2;
  return next < least ? 0 : next;
}

// Address space for `space` bytes; less where RLIMIT_AS allows no more, but room for all of the
// file and as much again, or in a 32-bit process a quarter. Returns nullptr with errno on failure.
std::byte* reserve(int file, std::uint64_t space, std::uint64_t& reserved) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return nullptr;
  const auto length = static_cast<std::uint64_t>(status.st_size);
  for (reserved = std::min(space, kMostReserved);;) {
    void* const base = map_unlocked(nullptr, reserved, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED) {
      (void)::madvise(base, reserved, MADV_DONTFORK);
      return static_cast<std::byte*>(base);
    }
    const std::uint64_t next = smaller(reserved, length);
    if (errno != ENOMEM || next == 0) return nullptr;
    reserved = next;
  }
}

}  // namespace

Result<std::unique_ptr<platform::MappedFile>> map_file(const platform::NativeHandle& file,
                                                       std::uint64_t space, std::string& reason) {
  platform::NativeHandle copy = own_descriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) {
    const int error = errno;
    reason = std::string("cannot duplicate a file descriptor: ") + std::strerror(error);
    return no_descriptor(error);
  }
  std::uint64_t reserved = 0;
  std::byte* const base = reserve(copy.get(), space, reserved);
  if (base == nullptr) {
    const int error = errno;
    reason = why_not_mapped(error, space);
    return error == ENOMEM ? Status::InsufficientResources : Status::IoError;
  }
  auto mapping = std::make_unique<FileMapping>(keep_descriptor(std::move(copy)), base, reserved);
  if (mapping->file_size() == 0) {
    reason = std::string("cannot map device memory: ") + std::strerror(errno);
    return Status::IoError;
  }
  return std::unique_ptr<platform::MappedFile>(std::move(mapping));
}

Status read_process_memory(const platform::ProcessName& who, std::uint64_t from, void* to,
                           std::size_t length) {
  return move_all(Move::Read, who, to, from, length);
}

Status write_process_memory(const platform::ProcessName& who, std::uint64_t to, const void* from,
                            std::size_t length) {
  // Only read: iovec has no const.
  return move_all(Move::Write, who, const_cast<void*>(from), to, length);
}

}  // namespace ib::os
