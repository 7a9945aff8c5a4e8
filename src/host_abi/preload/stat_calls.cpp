// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// stat() and its relatives, access(), and the extended attributes that `ls -l` reads.
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"

#include <sys/sysmacros.h>

#include <cstdint>

namespace ib::host_abi::preload {
namespace {

using Statx = struct ::statx;
// The functions of libc for one of its two layouts of struct stat. On 64-bit machines the layouts
// are the same; the smaller one of a 32-bit machine does not hold each size and each inode.
template <class S>
struct Family {
  Real<int(const char*, S*)> stat;
  Real<int(const char*, S*)> lstat;
  Real<int(int, S*)> fstat;
  Real<int(int, const char*, S*, int)> fstatat;
};
using Stat = struct ::stat;
using Stat64 = struct ::stat64;
constinit Family<Stat> plain{Real<int(const char*, Stat*)>("stat"),
                             Real<int(const char*, Stat*)>("lstat"), Real<int(int, Stat*)>("fstat"),
                             Real<int(int, const char*, Stat*, int)>("fstatat")};
constinit Family<Stat64> wide{
    Real<int(const char*, Stat64*)>("stat64"), Real<int(const char*, Stat64*)>("lstat64"),
    Real<int(int, Stat64*)>("fstat64"), Real<int(int, const char*, Stat64*, int)>("fstatat64")};

#if __TIMESIZE == 32
// The third layout of 32-bit machines, for programs with a time_t of 64 bits.
struct Time64 {
  std::int64_t tv_sec;
  std::int32_t tv_nsec;
  std::int32_t unused;
};
struct StatTime64 {
  std::uint64_t st_dev;
  std::uint64_t st_ino;
  std::uint32_t st_mode;
  std::uint32_t st_nlink;
  std::uint32_t st_uid;
  std::uint32_t st_gid;
  std::uint64_t st_rdev;
  std::int64_t st_size;
  std::int32_t st_blksize;
  std::int64_t st_blocks;
  Time64 st_atim;
  Time64 st_mtim;
  Time64 st_ctim;
};
static_assert(sizeof(StatTime64) == 108 && alignof(StatTime64) == 4);
constinit Family<StatTime64> time64{
    Real<int(const char*, StatTime64*)>("__stat64_time64"),
    Real<int(const char*, StatTime64*)>("__lstat64_time64"),
    Real<int(int, StatTime64*)>("__fstat64_time64"),
    Real<int(int, const char*, StatTime64*, int)>("__fstatat64_time64")};
#endif

constinit Real<int(int, const char*, int, unsigned, Statx*)> real_statx{"statx"};
constinit Real<int(const char*, int)> real_access{"access"};
constinit Real<int(int, const char*, int, int)> real_faccessat{"faccessat"};
constinit Real<int(const char*, int)> real_euidaccess{"euidaccess"};
constinit Real<ssize_t(const char*, const char*, void*, std::size_t)> real_getxattr{"getxattr"};
constinit Real<ssize_t(const char*, const char*, void*, std::size_t)> real_lgetxattr{"lgetxattr"};
constinit Real<ssize_t(const char*, char*, std::size_t)> real_listxattr{"listxattr"};
constinit Real<ssize_t(const char*, char*, std::size_t)> real_llistxattr{"llistxattr"};

// fstatat(fd, "", AT_EMPTY_PATH) is fstat(fd).
bool names_descriptor(const char* path, int flags) {
  return (flags & AT_EMPTY_PATH) != 0 && (path == nullptr || path[0] == '\0');
}

template <class T, class From>
bool fits(T& to, From from) {
  to = static_cast<T>(from);
  return static_cast<From>(to) == from;
}

// Returns 0, or -1 with EOVERFLOW.
template <class S>
int convert(const Statx& from, S& to) {
  to = {};
  to.st_dev = ::makedev(from.stx_dev_major, from.stx_dev_minor);
  to.st_nlink = from.stx_nlink;
  to.st_mode = from.stx_mode;
  to.st_rdev = ::makedev(from.stx_rdev_major, from.stx_rdev_minor);
  to.st_blksize = 4096;
  const bool all = fits(to.st_ino, from.stx_ino) && fits(to.st_size, from.stx_size) &&
                   fits(to.st_atim.tv_sec, from.stx_atime.tv_sec) &&
                   fits(to.st_mtim.tv_sec, from.stx_mtime.tv_sec) &&
                   fits(to.st_ctim.tv_sec, from.stx_ctime.tv_sec);
  to.st_atim.tv_nsec = static_cast<long>(from.stx_atime.tv_nsec);
  to.st_mtim.tv_nsec = static_cast<long>(from.stx_mtime.tv_nsec);
  to.st_ctim.tv_nsec = static_cast<long>(from.stx_ctime.tv_nsec);
  if (all) return 0;
  errno = EOVERFLOW;
  return -1;
}

template <class S>
bool stat_ours(const Place& place, bool follow, S* out, int& result) {
  Statx found;
  if (place.where != Where::Ours ||
      view::statx(place, follow, &found, result) != view::Outcome::Handled) {
    return false;
  }
  if (result == 0) result = convert(found, *out);
  return true;
}

template <class S>
int stat_fd(int fd, S* out, Family<S>& real) {
  Statx found;
  int result = 0;
  if (view::statx_fd(fd, &found, result) != view::Outcome::Handled) return real.fstat(fd, out);
  return convert(found, *out);
}

template <class S>
int stat_at(int directory, const char* path, S* out, int flags, Family<S>& real) {
  if (names_descriptor(path, flags)) {
    Statx found;
    int result = 0;
    if (view::statx_fd(directory, &found, result) == view::Outcome::Handled) {
      return convert(found, *out);
    }
    return real.fstatat(directory, path, out, flags);
  }
  const Place place = locate(directory, path);
  if (place.where == Where::ElsewhereFull) {
    return real.fstatat(AT_FDCWD, place.at.text, out, flags);
  }
  int result = 0;
  if (stat_ours(place, (flags & AT_SYMLINK_NOFOLLOW) == 0, out, result)) return result;
  return real.fstatat(directory, path, out, flags);
}

// stat() and lstat(): as above, but other paths go to the function of the same name.
template <class S>
int stat_path(const char* path, S* out, bool follow, Family<S>& real) {
  const Place place = locate(AT_FDCWD, path);
  int result = 0;
  if (stat_ours(place, follow, out, result)) return result;
  const char* const at = place.where == Where::ElsewhereFull ? place.at.text : path;
  return follow ? real.stat(at, out) : real.lstat(at, out);
}

template <class RealCall>
int access_at(int directory, const char* path, int mode, int flags, RealCall real) {
  const Place place = locate(directory, path);
  if (place.where == Where::ElsewhereFull) return real(AT_FDCWD, place.at.text);
  int result = 0;
  const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
  if (place.where == Where::Ours &&
      view::access(place, follow, mode, result) == view::Outcome::Handled) {
    return result;
  }
  return real(directory, path);
}

// Our files have no extended attributes, like those in /sys.
template <class RealCall>
ssize_t no_attributes(const char* path, bool follow, RealCall real) {
  const Place place = locate(AT_FDCWD, path);
  int result = 0;
  if (place.where == Where::ElsewhereFull) return real(place.at.text);
  if (place.where != Where::Ours ||
      view::access(place, follow, F_OK, result) == view::Outcome::NotHandled) {
    return real(path);
  }
  if (result == 0) errno = EOPNOTSUPP;
  return -1;
}

}  // namespace

extern "C" {

// stat64() has a layout of its own only on 32-bit machines. The functions with an `x` are those of
// programs that were linked with a glibc before 2.33; their first argument is a version of the
// layout, of which there is one.
#define IB_STATS(Pointer, real, suffix)                                                           \
  int preload_stat##suffix(const char* path, Pointer out) IB_STANDS_FOR("stat" #suffix);          \
  int preload_stat##suffix(const char* path, Pointer out) {                                       \
    return stat_path(path, out, true, real);                                                      \
  }                                                                                               \
  int preload_lstat##suffix(const char* path, Pointer out) IB_STANDS_FOR("lstat" #suffix);        \
  int preload_lstat##suffix(const char* path, Pointer out) {                                      \
    return stat_path(path, out, false, real);                                                     \
  }                                                                                               \
  int preload_fstat##suffix(int fd, Pointer out) IB_STANDS_FOR("fstat" #suffix);                  \
  int preload_fstat##suffix(int fd, Pointer out) {                                                \
    return stat_fd(fd, out, real);                                                                \
  }                                                                                               \
  int preload_fstatat##suffix(int dir, const char* path, Pointer out, int flags)                  \
      IB_STANDS_FOR("fstatat" #suffix);                                                           \
  int preload_fstatat##suffix(int dir, const char* path, Pointer out, int flags) {                \
    return stat_at(dir, path, out, flags, real);                                                  \
  }                                                                                               \
  int preload_xstat##suffix(int, const char* path, Pointer out) IB_STANDS_FOR("__xstat" #suffix); \
  int preload_xstat##suffix(int, const char* path, Pointer out) {                                 \
    return stat_path(path, out, true, real);                                                      \
  }                                                                                               \
  int preload_lxstat##suffix(int, const char* path, Pointer out)                                  \
      IB_STANDS_FOR("__lxstat" #suffix);                                                          \
  int preload_lxstat##suffix(int, const char* path, Pointer out) {                                \
    return stat_path(path, out, false, real);                                                     \
  }                                                                                               \
  int preload_fxstat##suffix(int, int fd, Pointer out) IB_STANDS_FOR("__fxstat" #suffix);         \
  int preload_fxstat##suffix(int, int fd, Pointer out) {                                          \
    return stat_fd(fd, out, real);                                                                \
  }                                                                                               \
  int preload_fxstatat##suffix(int, int dir, const char* path, Pointer out, int flags)            \
      IB_STANDS_FOR("__fxstatat" #suffix);                                                        \
  int preload_fxstatat##suffix(int, int dir, const char* path, Pointer out, int flags) {          \
    return stat_at(dir, path, out, flags, real);                                                  \
  }

IB_STATS(Stat*, plain, )
IB_STATS(Stat64*, wide, 64)
#undef IB_STATS

#if __TIMESIZE == 32
int preload_stat_time64(const char* path, StatTime64* out) IB_STANDS_FOR("__stat64_time64");
int preload_stat_time64(const char* path, StatTime64* out) {
  return stat_path(path, out, true, time64);
}
int preload_lstat_time64(const char* path, StatTime64* out) IB_STANDS_FOR("__lstat64_time64");
int preload_lstat_time64(const char* path, StatTime64* out) {
  return stat_path(path, out, false, time64);
}
int preload_fstat_time64(int fd, StatTime64* out) IB_STANDS_FOR("__fstat64_time64");
int preload_fstat_time64(int fd, StatTime64* out) {
  return stat_fd(fd, out, time64);
}
int preload_fstatat_time64(int dir, const char* path, StatTime64* out, int flags)
    IB_STANDS_FOR("__fstatat64_time64");
int preload_fstatat_time64(int dir, const char* path, StatTime64* out, int flags) {
  return stat_at(dir, path, out, flags, time64);
}
#endif

int preload_statx(int dir, const char* path, int flags, unsigned mask, Statx* out)
    IB_STANDS_FOR("statx");
int preload_statx(int dir, const char* path, int flags, unsigned mask, Statx* out) {
  int result = 0;
  if (names_descriptor(path, flags)) {
    if (view::statx_fd(dir, out, result) == view::Outcome::Handled) return result;
    return real_statx(dir, path, flags, mask, out);
  }
  const Place place = locate(dir, path);
  if (place.where == Where::ElsewhereFull) {
    return real_statx(AT_FDCWD, place.at.text, flags, mask, out);
  }
  const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
  if (place.where == Where::Ours &&
      view::statx(place, follow, out, result) == view::Outcome::Handled) {
    return result;
  }
  return real_statx(dir, path, flags, mask, out);
}

int preload_access(const char* path, int mode) IB_STANDS_FOR("access");
int preload_access(const char* path, int mode) {
  return access_at(AT_FDCWD, path, mode, 0,
                   [=](int, const char* name) { return real_access(name, mode); });
}
int preload_faccessat(int dir, const char* path, int mode, int flags) IB_STANDS_FOR("faccessat");
int preload_faccessat(int dir, const char* path, int mode, int flags) {
  return access_at(dir, path, mode, flags,
                   [=](int at, const char* name) { return real_faccessat(at, name, mode, flags); });
}
int preload_euidaccess(const char* path, int mode) IB_STANDS_FOR("euidaccess");
int preload_euidaccess(const char* path, int mode) {
  return access_at(AT_FDCWD, path, mode, 0,
                   [=](int, const char* name) { return real_euidaccess(name, mode); });
}
int preload_eaccess(const char* path, int mode) IB_STANDS_FOR("eaccess");
int preload_eaccess(const char* path, int mode) {
  return preload_euidaccess(path, mode);
}

ssize_t preload_getxattr(const char* path, const char* name, void* value, std::size_t size)
    IB_STANDS_FOR("getxattr");
ssize_t preload_getxattr(const char* path, const char* name, void* value, std::size_t size) {
  return no_attributes(path, true,
                       [=](const char* at) { return real_getxattr(at, name, value, size); });
}
ssize_t preload_lgetxattr(const char* path, const char* name, void* value, std::size_t size)
    IB_STANDS_FOR("lgetxattr");
ssize_t preload_lgetxattr(const char* path, const char* name, void* value, std::size_t size) {
  return no_attributes(path, false,
                       [=](const char* at) { return real_lgetxattr(at, name, value, size); });
}
ssize_t preload_listxattr(const char* path, char* list, std::size_t size)
    IB_STANDS_FOR("listxattr");
ssize_t preload_listxattr(const char* path, char* list, std::size_t size) {
  return no_attributes(path, true, [=](const char* at) { return real_listxattr(at, list, size); });
}
ssize_t preload_llistxattr(const char* path, char* list, std::size_t size)
    IB_STANDS_FOR("llistxattr");
ssize_t preload_llistxattr(const char* path, char* list, std::size_t size) {
  return no_attributes(path, false,
                       [=](const char* at) { return real_llistxattr(at, list, size); });
}

}  // extern "C"
}  // namespace ib::host_abi::preload
