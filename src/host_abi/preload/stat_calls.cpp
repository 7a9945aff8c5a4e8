// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// stat() and its relatives, access(), and the extended attributes that `ls -l` reads.
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"

namespace ib::host_abi::preload {
namespace {

using Stat = struct ::stat;
using Statx = struct ::statx;
// struct stat and struct stat64 are the same on 64-bit machines; so are the functions.
static_assert(sizeof(struct ::stat) == sizeof(struct ::stat64));

using StatFunction = int(const char*, Stat*);
using StatAtFunction = int(int, const char*, Stat*, int);
using FstatFunction = int(int, Stat*);

constinit Real<StatFunction> real_stat{"stat"};
constinit Real<StatFunction> real_lstat{"lstat"};
constinit Real<FstatFunction> real_fstat{"fstat"};
constinit Real<StatAtFunction> real_fstatat{"fstatat"};
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

int stat_at(int directory, const char* path, Stat* out, int flags) {
  int result = 0;
  if (names_descriptor(path, flags)) {
    if (view::stat_fd(directory, out, result) == view::Outcome::Handled) return result;
    return real_fstatat(directory, path, out, flags);
  }
  const Place place = locate(directory, path);
  if (place.where == Where::ElsewhereFull) return real_fstatat(AT_FDCWD, place.at.text, out, flags);
  const bool follow = (flags & AT_SYMLINK_NOFOLLOW) == 0;
  if (place.where == Where::Ours &&
      view::stat(place, follow, out, result) == view::Outcome::Handled) {
    return result;
  }
  return real_fstatat(directory, path, out, flags);
}

// stat() and lstat(): as above, but other paths go to the function of the same name.
int stat_path(const char* path, Stat* out, bool follow, Real<StatFunction>& real) {
  const Place place = locate(AT_FDCWD, path);
  int result = 0;
  if (place.where == Where::Ours &&
      view::stat(place, follow, out, result) == view::Outcome::Handled) {
    return result;
  }
  return real(place.where == Where::ElsewhereFull ? place.at.text : path, out);
}

int stat_fd(int fd, Stat* out) {
  int result = 0;
  if (view::stat_fd(fd, out, result) == view::Outcome::Handled) return result;
  return real_fstat(fd, out);
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

int preload_stat(const char* path, Stat* out) IB_STANDS_FOR("stat");
int preload_stat(const char* path, Stat* out) {
  return stat_path(path, out, true, real_stat);
}
int preload_stat64(const char* path, Stat* out) IB_STANDS_FOR("stat64");
int preload_stat64(const char* path, Stat* out) {
  return stat_path(path, out, true, real_stat);
}
int preload_lstat(const char* path, Stat* out) IB_STANDS_FOR("lstat");
int preload_lstat(const char* path, Stat* out) {
  return stat_path(path, out, false, real_lstat);
}
int preload_lstat64(const char* path, Stat* out) IB_STANDS_FOR("lstat64");
int preload_lstat64(const char* path, Stat* out) {
  return stat_path(path, out, false, real_lstat);
}
int preload_fstat(int fd, Stat* out) IB_STANDS_FOR("fstat");
int preload_fstat(int fd, Stat* out) {
  return stat_fd(fd, out);
}
int preload_fstat64(int fd, Stat* out) IB_STANDS_FOR("fstat64");
int preload_fstat64(int fd, Stat* out) {
  return stat_fd(fd, out);
}
int preload_fstatat(int dir, const char* path, Stat* out, int flags) IB_STANDS_FOR("fstatat");
int preload_fstatat(int dir, const char* path, Stat* out, int flags) {
  return stat_at(dir, path, out, flags);
}
int preload_fstatat64(int dir, const char* path, Stat* out, int flags) IB_STANDS_FOR("fstatat64");
int preload_fstatat64(int dir, const char* path, Stat* out, int flags) {
  return stat_at(dir, path, out, flags);
}

// The functions that programs call which were linked with a glibc before 2.33. `version` is the
// layout of struct stat; 64-bit machines have only one.
int preload_xstat(int, const char* path, Stat* out) IB_STANDS_FOR("__xstat");
int preload_xstat(int, const char* path, Stat* out) {
  return stat_path(path, out, true, real_stat);
}
int preload_xstat64(int, const char* path, Stat* out) IB_STANDS_FOR("__xstat64");
int preload_xstat64(int, const char* path, Stat* out) {
  return stat_path(path, out, true, real_stat);
}
int preload_lxstat(int, const char* path, Stat* out) IB_STANDS_FOR("__lxstat");
int preload_lxstat(int, const char* path, Stat* out) {
  return stat_path(path, out, false, real_lstat);
}
int preload_lxstat64(int, const char* path, Stat* out) IB_STANDS_FOR("__lxstat64");
int preload_lxstat64(int, const char* path, Stat* out) {
  return stat_path(path, out, false, real_lstat);
}
int preload_fxstat(int, int fd, Stat* out) IB_STANDS_FOR("__fxstat");
int preload_fxstat(int, int fd, Stat* out) {
  return stat_fd(fd, out);
}
int preload_fxstat64(int, int fd, Stat* out) IB_STANDS_FOR("__fxstat64");
int preload_fxstat64(int, int fd, Stat* out) {
  return stat_fd(fd, out);
}
int preload_fxstatat(int, int dir, const char* path, Stat* out, int f) IB_STANDS_FOR("__fxstatat");
int preload_fxstatat(int, int dir, const char* path, Stat* out, int f) {
  return stat_at(dir, path, out, f);
}
int preload_fxstatat64(int, int dir, const char* path, Stat* out, int f)
    IB_STANDS_FOR("__fxstatat64");
int preload_fxstatat64(int, int dir, const char* path, Stat* out, int f) {
  return stat_at(dir, path, out, f);
}

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
