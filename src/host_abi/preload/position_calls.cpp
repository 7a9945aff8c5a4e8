// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The other ways to read, write and seek: readv() and writev() are the device's read() and write(),
// once per buffer as in the kernel; a device that is a stream has no position.
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"

#include <sys/uio.h>

#include <cerrno>
#include <climits>

namespace ib::host_abi::preload {
namespace {

constinit Real<ssize_t(int, const iovec*, int)> real_readv{"readv"};
constinit Real<ssize_t(int, const iovec*, int)> real_writev{"writev"};

bool is_stream(int fd, const fds::Entry& entry) {
  const DeviceKind* device = fds::device(fd, entry);
  return device != nullptr && device->is_stream;
}

// The errno of a call with a position, or 0: the real function answers.
int seeking_error(int fd, const fds::Entry& entry) {
  return is_stream(fd, entry) ? ESPIPE : 0;
}

int reading_at_error(int fd, const fds::Entry& entry) {
  const int error = seeking_error(fd, entry);
  return error != 0 ? error : view::reading_error(fd, entry);
}

ssize_t fail(int error) {
  errno = error;
  return -1;
}

bool has_bytes(const iovec* buffers, int count) {
  for (int i = 0; i < count; ++i) {
    if (buffers[i].iov_len != 0) return true;
  }
  return false;
}

// A call that moves less than a buffer is the last; after an error the sum of the others is
// returned.
template <class Call>
ssize_t each(const iovec* buffers, int count, Call call) {
  ssize_t moved = 0;
  for (int i = 0; i < count; ++i) {
    if (buffers[i].iov_len == 0) continue;
    const ssize_t now = call(buffers[i].iov_base, buffers[i].iov_len);
    if (now < 0) return moved != 0 ? moved : now;
    moved += now;
    if (static_cast<std::size_t>(now) != buffers[i].iov_len) break;
  }
  return moved;
}

// The kernel has the errors for what no device gets to see.
bool is_for_device(const iovec* buffers, int count) {
  return buffers != nullptr && count > 0 && count <= IOV_MAX && has_bytes(buffers, count);
}

}  // namespace

extern "C" {

ssize_t preload_readv(int fd, const iovec* buffers, int count) IB_STANDS_FOR("readv");
ssize_t preload_readv(int fd, const iovec* buffers, int count) {
  const fds::Entry entry = fds::find(fd);
  if (const int error = view::reading_error(fd, entry); error != 0) return fail(error);
  const DeviceKind* device = fds::device(fd, entry);
  if (device == nullptr || device->read == nullptr || !is_for_device(buffers, count)) {
    return real_readv(fd, buffers, count);
  }
  return each(buffers, count,
              [&](void* data, std::size_t size) { return device->read(fd, data, size); });
}

ssize_t preload_writev(int fd, const iovec* buffers, int count) IB_STANDS_FOR("writev");
ssize_t preload_writev(int fd, const iovec* buffers, int count) {
  const DeviceKind* device = fds::device(fd);
  if (device == nullptr || device->write == nullptr || !is_for_device(buffers, count)) {
    return real_writev(fd, buffers, count);
  }
  return each(buffers, count,
              [&](void* data, std::size_t size) { return device->write(fd, data, size); });
}

// off_t and off64_t are the same here, so two names of libc are one function each.
// `error_of`: the errno for a descriptor of ours.
#define IB_HAS_POSITION(error_of, name, symbol, result, parameters, arguments) \
  result preload_##name parameters IB_STANDS_FOR(symbol);                      \
  result preload_##name parameters {                                           \
    static constinit Real<result parameters> real{symbol};                     \
    const int error = error_of(fd, fds::find(fd));                             \
    return error != 0 ? static_cast<result>(fail(error)) : real arguments;     \
  }

IB_HAS_POSITION(seeking_error, lseek, "lseek", off_t, (int fd, off_t offset, int whence),
                (fd, offset, whence))
IB_HAS_POSITION(seeking_error, lseek64, "lseek64", off_t, (int fd, off_t offset, int whence),
                (fd, offset, whence))
IB_HAS_POSITION(reading_at_error, pread, "pread", ssize_t,
                (int fd, void* data, std::size_t size, off_t offset), (fd, data, size, offset))
IB_HAS_POSITION(reading_at_error, pread64, "pread64", ssize_t,
                (int fd, void* data, std::size_t size, off_t offset), (fd, data, size, offset))
IB_HAS_POSITION(reading_at_error, pread_chk, "__pread_chk", ssize_t,
                (int fd, void* data, std::size_t size, off_t offset, std::size_t room),
                (fd, data, size, offset, room))
IB_HAS_POSITION(reading_at_error, pread64_chk, "__pread64_chk", ssize_t,
                (int fd, void* data, std::size_t size, off_t offset, std::size_t room),
                (fd, data, size, offset, room))
IB_HAS_POSITION(seeking_error, pwrite, "pwrite", ssize_t,
                (int fd, const void* data, std::size_t size, off_t offset),
                (fd, data, size, offset))
IB_HAS_POSITION(seeking_error, pwrite64, "pwrite64", ssize_t,
                (int fd, const void* data, std::size_t size, off_t offset),
                (fd, data, size, offset))
IB_HAS_POSITION(reading_at_error, preadv, "preadv", ssize_t,
                (int fd, const iovec* buffers, int count, off_t offset),
                (fd, buffers, count, offset))
IB_HAS_POSITION(reading_at_error, preadv64, "preadv64", ssize_t,
                (int fd, const iovec* buffers, int count, off_t offset),
                (fd, buffers, count, offset))
IB_HAS_POSITION(seeking_error, pwritev, "pwritev", ssize_t,
                (int fd, const iovec* buffers, int count, off_t offset),
                (fd, buffers, count, offset))
IB_HAS_POSITION(seeking_error, pwritev64, "pwritev64", ssize_t,
                (int fd, const iovec* buffers, int count, off_t offset),
                (fd, buffers, count, offset))
#undef IB_HAS_POSITION

// Without an offset (-1) they are readv() and writev().
#define IB_HAS_FLAGS(error_of, name, symbol, without)                                        \
  ssize_t preload_##name(int fd, const iovec* buffers, int count, off_t offset, int flags)   \
      IB_STANDS_FOR(symbol);                                                                 \
  ssize_t preload_##name(int fd, const iovec* buffers, int count, off_t offset, int flags) { \
    static constinit Real<ssize_t(int, const iovec*, int, off_t, int)> real{symbol};         \
    const fds::Entry entry = fds::find(fd);                                                  \
    if (offset == -1 && is_stream(fd, entry)) return without(fd, buffers, count);            \
    const int error = error_of(fd, entry);                                                   \
    return error != 0 ? fail(error) : real(fd, buffers, count, offset, flags);               \
  }

IB_HAS_FLAGS(reading_at_error, preadv2, "preadv2", preload_readv)
IB_HAS_FLAGS(reading_at_error, preadv64v2, "preadv64v2", preload_readv)
IB_HAS_FLAGS(seeking_error, pwritev2, "pwritev2", preload_writev)
IB_HAS_FLAGS(seeking_error, pwritev64v2, "pwritev64v2", preload_writev)
#undef IB_HAS_FLAGS

}  // extern "C"
}  // namespace ib::host_abi::preload
