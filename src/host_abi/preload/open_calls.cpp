// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// open() and its relatives, and fopen().
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

using OpenFunction = int(const char*, int, ...);
using OpenAtFunction = int(int, const char*, int, ...);
using FopenFunction = FILE*(const char*, const char*);

constinit Real<OpenFunction> real_open{"open"};
constinit Real<OpenFunction> real_open64{"open64"};
constinit Real<OpenAtFunction> real_openat{"openat"};
constinit Real<OpenAtFunction> real_openat64{"openat64"};
constinit Real<int(const char*, int)> real_open_2{"__open_2"};
constinit Real<int(const char*, int)> real_open64_2{"__open64_2"};
constinit Real<int(int, const char*, int)> real_openat_2{"__openat_2"};
constinit Real<int(int, const char*, int)> real_openat64_2{"__openat64_2"};
constinit Real<int(const char*, mode_t)> real_creat{"creat"};
constinit Real<int(const char*, mode_t)> real_creat64{"creat64"};
constinit Real<FopenFunction> real_fopen{"fopen"};
constinit Real<FopenFunction> real_fopen64{"fopen64"};

// `real` is the call that opens a real (directory, path).
template <class RealCall>
int open_at(int directory, const char* path, int flags, RealCall real) {
  const Place place = locate(directory, path);
  if (place.where == Where::ElsewhereFull) return real(AT_FDCWD, place.at.text);
  int fd = -1;
  if (place.where == Where::Ours && view::open(place, flags, fd) == view::Outcome::Handled) {
    return fd;
  }
  return real(directory, path);
}

// open() has a mode only if it may create a file.
bool has_mode(int flags) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

#define IB_TAKE_MODE(mode, last, flags) \
  mode_t mode = 0;                      \
  if (has_mode(flags)) {                \
    va_list arguments;                  \
    va_start(arguments, last);          \
    (mode) = va_arg(arguments, mode_t); \
    va_end(arguments);                  \
  }

// "r" and its variants; every other mode writes.
int flags_of(const char* mode) {
  int flags = O_RDONLY;
  if (mode[0] == 'w') flags = O_WRONLY | O_CREAT | O_TRUNC;
  if (mode[0] == 'a') flags = O_WRONLY | O_CREAT | O_APPEND;
  if (std::strchr(mode, '+') != nullptr) flags = (flags & ~O_ACCMODE) | O_RDWR;
  if (std::strchr(mode, 'x') != nullptr) flags |= O_EXCL;
  if (std::strchr(mode, 'e') != nullptr) flags |= O_CLOEXEC;
  return flags;
}

FILE* open_stream(const char* path, const char* mode, Real<FopenFunction>& real) {
  const Place place = locate(AT_FDCWD, path);
  int fd = -1;
  if (place.where == Where::ElsewhereFull) return real(place.at.text, mode);
  if (place.where != Where::Ours || mode == nullptr ||
      view::open(place, flags_of(mode), fd) == view::Outcome::NotHandled) {
    return real(path, mode);
  }
  if (fd < 0) return nullptr;
  FILE* stream = ::fdopen(fd, mode);
  if (stream == nullptr) {
    const sys::KeepErrno keep;
    sys::close(fd);
  }
  return stream;
}

}  // namespace

extern "C" {

int preload_open(const char* path, int flags, ...) IB_STANDS_FOR("open");
int preload_open(const char* path, int flags, ...) {
  IB_TAKE_MODE(mode, flags, flags);
  return open_at(AT_FDCWD, path, flags,
                 [=](int, const char* name) { return real_open(name, flags, mode); });
}

int preload_open64(const char* path, int flags, ...) IB_STANDS_FOR("open64");
int preload_open64(const char* path, int flags, ...) {
  IB_TAKE_MODE(mode, flags, flags);
  return open_at(AT_FDCWD, path, flags,
                 [=](int, const char* name) { return real_open64(name, flags, mode); });
}

int preload_openat(int directory, const char* path, int flags, ...) IB_STANDS_FOR("openat");
int preload_openat(int directory, const char* path, int flags, ...) {
  IB_TAKE_MODE(mode, flags, flags);
  return open_at(directory, path, flags,
                 [=](int at, const char* name) { return real_openat(at, name, flags, mode); });
}

int preload_openat64(int directory, const char* path, int flags, ...) IB_STANDS_FOR("openat64");
int preload_openat64(int directory, const char* path, int flags, ...) {
  IB_TAKE_MODE(mode, flags, flags);
  return open_at(directory, path, flags,
                 [=](int at, const char* name) { return real_openat64(at, name, flags, mode); });
}

// The forms that _FORTIFY_SOURCE calls when there is no mode.
int preload_open_2(const char* path, int flags) IB_STANDS_FOR("__open_2");
int preload_open_2(const char* path, int flags) {
  return open_at(AT_FDCWD, path, flags,
                 [=](int, const char* name) { return real_open_2(name, flags); });
}

int preload_open64_2(const char* path, int flags) IB_STANDS_FOR("__open64_2");
int preload_open64_2(const char* path, int flags) {
  return open_at(AT_FDCWD, path, flags,
                 [=](int, const char* name) { return real_open64_2(name, flags); });
}

int preload_openat_2(int directory, const char* path, int flags) IB_STANDS_FOR("__openat_2");
int preload_openat_2(int directory, const char* path, int flags) {
  return open_at(directory, path, flags,
                 [=](int at, const char* name) { return real_openat_2(at, name, flags); });
}

int preload_openat64_2(int directory, const char* path, int flags) IB_STANDS_FOR("__openat64_2");
int preload_openat64_2(int directory, const char* path, int flags) {
  return open_at(directory, path, flags,
                 [=](int at, const char* name) { return real_openat64_2(at, name, flags); });
}

int preload_creat(const char* path, mode_t mode) IB_STANDS_FOR("creat");
int preload_creat(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC,
                 [=](int, const char* name) { return real_creat(name, mode); });
}

int preload_creat64(const char* path, mode_t mode) IB_STANDS_FOR("creat64");
int preload_creat64(const char* path, mode_t mode) {
  return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC,
                 [=](int, const char* name) { return real_creat64(name, mode); });
}

FILE* preload_fopen(const char* path, const char* mode) IB_STANDS_FOR("fopen");
FILE* preload_fopen(const char* path, const char* mode) {
  return open_stream(path, mode, real_fopen);
}

FILE* preload_fopen64(const char* path, const char* mode) IB_STANDS_FOR("fopen64");
FILE* preload_fopen64(const char* path, const char* mode) {
  return open_stream(path, mode, real_fopen64);
}

}  // extern "C"
}  // namespace ib::host_abi::preload
