// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client_memory.h"

#include "linux/client_handle.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ib::os {
namespace {

class FileMapping final : public platform::MappedFile {
 public:
  FileMapping(platform::NativeHandle file, std::byte* base, std::uint64_t size)
      : file_(std::move(file)), base_(base), size_(size), owner_(::getpid()) {}
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;
  ~FileMapping() override {
    // A forked child did not inherit the mapping: something else may be at its address there.
    if (::getpid() == owner_) (void)::munmap(base_, size_);
  }

  std::byte* base() const override { return base_; }
  std::uint64_t size() const override { return size_; }
  std::uint64_t file_size() override {
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0 || status.st_size < 0) return 0;
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  platform::NativeHandle file_;
  std::byte* base_;
  std::uint64_t size_;
  pid_t owner_;
};

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
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
    case ENOSYS:  // a seccomp profile may answer so
      return Status::AccessDenied;
    default: return Status::IoError;
  }
}

// Programs poll the last byte of an incoming write, so the tail is a segment of its own: the kernel
// moves segments in order.
constexpr std::size_t kTail = 8;

enum class Move { Read, Write };

// The kernel moves at most 2 GiB at once, and less if it meets an unmapped page on the way; going
// on from there tells which it was.
// Each call passes over the nameplate first. A read brings the number along, and what came with
// another one is nothing. A write stores the number once more: in any other process that fails, and
// the kernel goes no further.
// By number, because ThreadSanitizer takes the C library's functions for accesses of the calling
// thread, and this is what DMA is to a processor (hca/copy.h).
Status move_all(Move move, const platform::ProcessName& who, void* here, std::uint64_t there,
                std::size_t length) {
  constexpr std::size_t kPlate = sizeof who.plate.number;
  if (who.plate.address == 0) return Status::Disconnected;
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

}  // namespace

Result<std::unique_ptr<platform::MappedFile>> map_file(const platform::NativeHandle& file,
                                                       std::uint64_t space, std::string& reason) {
  platform::NativeHandle copy = own_descriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) {
    reason = std::string("cannot duplicate a file descriptor: ") + std::strerror(errno);
    return errno == EMFILE ? Status::InsufficientResources : Status::IoError;
  }
  void* base =
      ::mmap(nullptr, space, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, copy.get(), 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    reason = why_not_mapped(error, space);
    return error == ENOMEM ? Status::InsufficientResources : Status::IoError;
  }
  (void)::madvise(base, space, MADV_DONTDUMP);
  // Without this a child would go on writing into queues that softibd takes for its parent's.
  if (::madvise(base, space, MADV_DONTFORK) != 0) {
    reason = std::string("madvise(MADV_DONTFORK): ") + std::strerror(errno);
    (void)::munmap(base, space);
    return Status::IoError;
  }
  return std::unique_ptr<platform::MappedFile>(
      std::make_unique<FileMapping>(std::move(copy), static_cast<std::byte*>(base), space));
}

Status read_process_memory(const platform::ProcessName& who, std::uint64_t from, void* to,
                           std::size_t length) {
  return move_all(Move::Read, who, to, from, length);
}

Status write_process_memory(const platform::ProcessName& who, std::uint64_t to, const void* from,
                            std::size_t length) {
  // Only read: iovec knows no const.
  return move_all(Move::Write, who, const_cast<void*>(from), to, length);
}

}  // namespace ib::os
