// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// readlink(), realpath() and glob().
#include "host_abi/preload/claims.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"
#include "host_abi/preload/working_directory.h"

#include <dirent.h>
#include <glob.h>

#include <cstdlib>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

constinit Real<ssize_t(const char*, char*, std::size_t)> real_readlink{"readlink"};
constinit Real<ssize_t(int, const char*, char*, std::size_t)> real_readlinkat{"readlinkat"};
constinit Real<char*(const char*, char*)> real_realpath{"realpath"};
constinit Real<char*(const char*, char*, std::size_t)> real_realpath_chk{"__realpath_chk"};
template <class Glob>
using GlobFunction = int(const char*, int, int (*)(const char*, int), Glob*);
constinit Real<GlobFunction<::glob_t>> real_glob{"glob"};
constinit Real<GlobFunction<::glob64_t>> real_glob64{"glob64"};

template <class RealCall>
ssize_t read_link_at(int directory, const char* path, char* text, std::size_t size, RealCall real) {
  const Place place = locate(directory, path);
  if (place.where == Where::ElsewhereFull) return real(AT_FDCWD, place.at.text);
  ssize_t result = -1;
  if (place.where == Where::Ours &&
      view::read_link(place, text, size, result) == view::Outcome::Handled) {
    return result;
  }
  return real(directory, path);
}

// `resolved` may be null: then the caller gets memory to free().
template <class RealCall>
char* resolve(const char* path, char* resolved, RealCall real) {
  const Place place = locate(AT_FDCWD, path);
  int result = 0;
  Path found;
  if (place.where != Where::Ours ||
      view::real_path(place, found, result) == view::Outcome::NotHandled) {
    return real(place.where == Where::ElsewhereFull ? place.at.text : path);
  }
  if (result != 0) return nullptr;
  if (resolved == nullptr) return ::strdup(found.text);
  std::memcpy(resolved, found.text, found.length + 1);
  return resolved;
}

bool may_match_ours(const char* pattern) {
  return may_match_claimed(pattern) || (pattern[0] != '/' && working_directory::is_ours());
}

// glob() opens directories inside libc, but takes functions of its caller for that.
void use_our_functions(::glob_t& out) {
  out.gl_readdir = [](void* directory) { return ::readdir(static_cast<DIR*>(directory)); };
  out.gl_stat = [](const char* path, struct ::stat* to) { return ::stat(path, to); };
  out.gl_lstat = [](const char* path, struct ::stat* to) { return ::lstat(path, to); };
}
void use_our_functions(::glob64_t& out) {
  out.gl_readdir = [](void* directory) { return ::readdir64(static_cast<DIR*>(directory)); };
  out.gl_stat = [](const char* path, struct ::stat64* to) { return ::stat64(path, to); };
  out.gl_lstat = [](const char* path, struct ::stat64* to) { return ::lstat64(path, to); };
}
template <class Glob>
int glob_with_our_functions(const char* pattern, int flags, int (*on_error)(const char*, int),
                            Glob* out, Real<GlobFunction<Glob>>& real) {
  if ((flags & GLOB_ALTDIRFUNC) != 0 || !may_match_ours(pattern)) {
    return real(pattern, flags, on_error, out);
  }
  out->gl_opendir = [](const char* path) -> void* { return ::opendir(path); };
  out->gl_closedir = [](void* directory) { ::closedir(static_cast<DIR*>(directory)); };
  use_our_functions(*out);
  return real(pattern, flags | GLOB_ALTDIRFUNC, on_error, out);
}

}  // namespace

extern "C" {

ssize_t preload_readlink(const char* path, char* text, std::size_t size) IB_STANDS_FOR("readlink");
ssize_t preload_readlink(const char* path, char* text, std::size_t size) {
  return read_link_at(AT_FDCWD, path, text, size,
                      [=](int, const char* name) { return real_readlink(name, text, size); });
}

ssize_t preload_readlinkat(int dir, const char* path, char* text, std::size_t size)
    IB_STANDS_FOR("readlinkat");
ssize_t preload_readlinkat(int dir, const char* path, char* text, std::size_t size) {
  return read_link_at(dir, path, text, size, [=](int at, const char* name) {
    return real_readlinkat(at, name, text, size);
  });
}

// The forms of _FORTIFY_SOURCE also have the size of the buffer.
ssize_t preload_readlink_chk(const char* path, char* text, std::size_t size, std::size_t room)
    IB_STANDS_FOR("__readlink_chk");
ssize_t preload_readlink_chk(const char* path, char* text, std::size_t size, std::size_t room) {
  if (size > room) std::abort();
  return preload_readlink(path, text, size);
}

ssize_t preload_readlinkat_chk(int dir, const char* path, char* text, std::size_t size,
                               std::size_t room) IB_STANDS_FOR("__readlinkat_chk");
ssize_t preload_readlinkat_chk(int dir, const char* path, char* text, std::size_t size,
                               std::size_t room) {
  if (size > room) std::abort();
  return preload_readlinkat(dir, path, text, size);
}

char* preload_realpath(const char* path, char* resolved) IB_STANDS_FOR("realpath");
char* preload_realpath(const char* path, char* resolved) {
  return resolve(path, resolved, [=](const char* at) { return real_realpath(at, resolved); });
}

char* preload_realpath_chk(const char* path, char* resolved, std::size_t room)
    IB_STANDS_FOR("__realpath_chk");
char* preload_realpath_chk(const char* path, char* resolved, std::size_t room) {
  return resolve(path, resolved,
                 [=](const char* at) { return real_realpath_chk(at, resolved, room); });
}

char* preload_canonicalize_file_name(const char* path) IB_STANDS_FOR("canonicalize_file_name");
char* preload_canonicalize_file_name(const char* path) {
  return preload_realpath(path, nullptr);
}

int preload_glob(const char* pattern, int flags, int (*on_error)(const char*, int), ::glob_t* out)
    IB_STANDS_FOR("glob");
int preload_glob(const char* pattern, int flags, int (*on_error)(const char*, int), ::glob_t* out) {
  return glob_with_our_functions(pattern, flags, on_error, out, real_glob);
}

int preload_glob64(const char* pattern, int flags, int (*on_error)(const char*, int),
                   ::glob64_t* out) IB_STANDS_FOR("glob64");
int preload_glob64(const char* pattern, int flags, int (*on_error)(const char*, int),
                   ::glob64_t* out) {
  return glob_with_our_functions(pattern, flags, on_error, out, real_glob64);
}

}  // extern "C"
}  // namespace ib::host_abi::preload
