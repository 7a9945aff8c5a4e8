// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// This process's own memory where it may be unmapped: the kernel copies, and reports it.
#include "linux/adopt/adopt_syscall.h"
#include "linux/client/client_memory.h"
#include "linux/process/client_handle.h"

#include <linux/futex.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ib::os {
namespace {

using platform::OwnCopy;

constexpr std::size_t kTail = 8;      // programs poll the last bytes
constexpr std::size_t kChunk = 4096;  // a pipe takes this much at once, whatever its size

// Returns the number of moved bytes, or -errno.
long move_own(std::byte* to, const std::byte* from, std::size_t length) {
  const std::size_t head = length > kTail ? length - kTail : 0;
  const std::array<iovec, 2> target{{{to, head}, {to + head, length - head}}};
  const iovec source{const_cast<std::byte*>(from), length};
  return raw_syscall(SYS_process_vm_readv, ::getpid(), to_long(target.data()), target.size(),
                     to_long(&source), 1);
}

bool is_forbidden(long result) {
  return result == -EPERM || result == -EACCES || result == -ENOSYS;
}

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

OwnCopy copy_own_memory(void* to, const void* from, std::size_t length) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  while (length != 0) {
    const long moved = move_own(target, source, length);
    if (moved == -EINTR) continue;
    if (is_forbidden(moved)) return copy_own_memory_by_pipe(target, source, length);
    if (moved <= 0) {
      // It has stopped at one page of each side.
      const std::size_t rest = std::min(length, page_size());
      if (!is_own_memory_accessible(source, rest, false)) return OwnCopy::NoSource;
      return moved == -EFAULT || moved == 0 ? OwnCopy::NoTarget : OwnCopy::NotNow;
    }
    target += moved;
    source += moved;
    length -= static_cast<std::size_t>(moved);
  }
  return OwnCopy::Done;
}

// A pipe of its own each time: a descriptor that is kept may be closed by the program, and its
// number be that of another file then.
OwnCopy copy_own_memory_by_pipe(void* to, const void* from, std::size_t length) {
  std::array<int, 2> ends{-1, -1};
  if (is_error(raw_syscall(SYS_pipe2, to_long(ends.data()), O_CLOEXEC | O_NONBLOCK))) {
    return OwnCopy::NotNow;
  }
  const platform::NativeHandle read_end = own_descriptor(ends[0]);
  const platform::NativeHandle write_end = own_descriptor(ends[1]);
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  while (length != 0) {
    const std::size_t rest = length > kTail ? length - kTail : length;
    const long step = raw_syscall(SYS_write, write_end.get(), to_long(source),
                                  static_cast<long>(std::min(rest, kChunk)));
    if (step == -EINTR) continue;
    if (step <= 0) return step == -EFAULT ? OwnCopy::NoSource : OwnCopy::NotNow;
    for (long done = 0; done < step;) {
      const long got = raw_syscall(SYS_read, read_end.get(), to_long(target + done), step - done);
      if (got == -EINTR) continue;
      if (got <= 0) return got == -EFAULT ? OwnCopy::NoTarget : OwnCopy::NotNow;
      done += got;
    }
    target += step;
    source += step;
    length -= static_cast<std::size_t>(step);
  }
  return OwnCopy::Done;
}

// Tests a word of each page, by operations of futexes that change nothing and wake no thread.
bool is_own_memory_accessible(const void* at, std::size_t length, bool write) {
  std::uint32_t here = 0;
  std::uint64_t place = reinterpret_cast<std::uintptr_t>(at);
  const std::uint64_t end = place + length;
  while (place < end) {
    const std::uint64_t word = place & ~std::uint64_t{3};
    // Ored with 0; or compared with 0, moving none of its waiters if it is 0.
    const long result =
        write ? raw_syscall(SYS_futex, to_long(&here), FUTEX_WAKE_OP_PRIVATE, 0, 0, to_long(word),
                            FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0))
              : raw_syscall(SYS_futex, to_long(word), FUTEX_CMP_REQUEUE_PRIVATE, 0, 0,
                            to_long(&here), 0);
    if (result == -EFAULT) return false;
    place = (place / page_size() + 1) * page_size();
  }
  return true;
}

}  // namespace ib::os
