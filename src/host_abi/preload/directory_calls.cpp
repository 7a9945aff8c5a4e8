// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// opendir(), readdir(), scandir() and their relatives.
#include "host_abi/preload/claims.h"
#include "host_abi/preload/directory.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

using Entry = ::dirent64;  // the same as struct dirent on 64-bit machines
static_assert(sizeof(::dirent) == sizeof(::dirent64));
using Filter = int (*)(const Entry*);
using Compare = int (*)(const Entry**, const Entry**);
using ScandirFunction = int(const char*, Entry***, Filter, Compare);

constinit Real<DIR*(const char*)> real_opendir{"opendir"};
constinit Real<DIR*(int)> real_fdopendir{"fdopendir"};
constinit Real<Entry*(DIR*)> real_readdir{"readdir"};
constinit Real<Entry*(DIR*)> real_readdir64{"readdir64"};
constinit Real<int(DIR*, Entry*, Entry**)> real_readdir_r{"readdir_r"};
constinit Real<int(DIR*, Entry*, Entry**)> real_readdir64_r{"readdir64_r"};
constinit Real<int(DIR*)> real_closedir{"closedir"};
constinit Real<void(DIR*)> real_rewinddir{"rewinddir"};
constinit Real<long(DIR*)> real_telldir{"telldir"};
constinit Real<void(DIR*, long)> real_seekdir{"seekdir"};
constinit Real<int(DIR*)> real_dirfd{"dirfd"};
constinit Real<ScandirFunction> real_scandir{"scandir"};
constinit Real<ScandirFunction> real_scandir64{"scandir64"};
constinit Real<int(int, const char*, Entry***, Filter, Compare)> real_scandirat{"scandirat"};
constinit Real<int(int, const char*, Entry***, Filter, Compare)> real_scandirat64{"scandirat64"};

// A stream on a real directory, followed by our names if it lists ours. Returns nullptr with errno
// if ours cannot be listed: a listing without them would be wrong.
DIR* merged(DIR* real) {
  if (real == nullptr) return nullptr;
  const int before = errno;
  Path path;
  Directory* directory = nullptr;
  if (path_of(real_dirfd(real), path) && is_parent(path)) {
    directory = Directory::open_merged(real, path);
    const int error = directory == nullptr ? errno : 0;
    if (error != 0) {
      real_closedir(real);
      errno = error;
      return nullptr;
    }
  }
  errno = before;
  return directory == nullptr ? real : directory->stream();
}

// Returns the stream of a directory of ours, or nullptr with errno.
DIR* open_ours(int fd) {
  if (fd < 0) return nullptr;
  Directory* directory = Directory::open_ours(fd);
  if (directory != nullptr) return directory->stream();
  const sys::KeepErrno keep;
  ::close(fd);
  return nullptr;
}

// Returns true if our functions must read it: it is ours, or it lists ours.
bool is_special(int at, const char* path) {
  const Place place = locate(at, path);
  if (place.where == Where::Ours || place.where == Where::ElsewhereFull) return true;
  if (!may_be_parent(path)) return false;
  const sys::KeepErrno keep;
  Path base{"/", 1};
  Path whole;
  return (path[0] == '/' || path_of(at, base)) && normalise(base.text, path, whole) &&
         is_parent(whole);
}

struct List {
  Entry** entries = nullptr;
  std::size_t count = 0;
  std::size_t room = 0;

  bool add(const Entry& entry) {
    if (count == room) {
      const std::size_t more = room == 0 ? 16 : room * 2;
      auto* grown = static_cast<Entry**>(std::realloc(entries, more * sizeof(void*)));
      if (grown == nullptr) return false;
      entries = grown;
      room = more;
    }
    auto* copy = static_cast<Entry*>(std::malloc(sizeof(Entry)));
    if (copy == nullptr) return false;
    // libc's entries are only d_reclen bytes long.
    std::memcpy(copy, &entry, std::min<std::size_t>(entry.d_reclen, sizeof entry));
    entries[count++] = copy;
    return true;
  }
  void free_all() {
    for (std::size_t i = 0; i < count; ++i) std::free(entries[i]);
    std::free(entries);
  }
};

// libc's scandir() reads directories without calling our functions, so special ones are read here.
int scan(int at, const char* path, Entry*** out, Filter filter, Compare compare) {
  const int fd = ::openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    const sys::KeepErrno keep;
    ::close(fd);
    return -1;
  }
  List list;
  bool complete = true;
  while (const Entry* entry = ::readdir64(stream)) {
    if (filter != nullptr && filter(entry) == 0) continue;
    complete = list.add(*entry);
    if (!complete) break;
  }
  const sys::KeepErrno keep;
  ::closedir(stream);
  if (!complete) {
    list.free_all();
    return -1;
  }
  if (compare != nullptr && list.count > 0) {
    std::qsort(list.entries, list.count, sizeof(void*),
               reinterpret_cast<int (*)(const void*, const void*)>(compare));
  }
  *out = list.entries;
  return static_cast<int>(list.count);
}

int read_into(Directory& directory, Entry* entry, Entry** result) {
  const int before = errno;
  errno = 0;
  const Entry* found = directory.read();
  const int error = errno;
  errno = before;
  *result = nullptr;
  if (found == nullptr) return error;
  std::memcpy(entry, found, std::min<std::size_t>(found->d_reclen, sizeof *entry));
  *result = entry;
  return 0;
}

}  // namespace

extern "C" {

DIR* preload_opendir(const char* path) IB_STANDS_FOR("opendir");
DIR* preload_opendir(const char* path) {
  const Place place = locate(AT_FDCWD, path);
  int fd = -1;
  if (place.where == Where::Ours &&
      view::open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC, fd) == view::Outcome::Handled) {
    return open_ours(fd);
  }
  const bool full = place.where == Where::ElsewhereFull;
  DIR* real = real_opendir(full ? place.at.text : path);
  return full || may_be_parent(path) ? merged(real) : real;
}

DIR* preload_fdopendir(int fd) IB_STANDS_FOR("fdopendir");
DIR* preload_fdopendir(int fd) {
  view::Listing listing;
  if (fds::find(fd).kind == fds::Kind::Directory && view::read_listing(fd, listing)) {
    Directory* directory = Directory::open_ours(fd);
    return directory == nullptr ? nullptr : directory->stream();
  }
  return merged(real_fdopendir(fd));
}

Entry* preload_readdir(DIR* stream) IB_STANDS_FOR("readdir");
Entry* preload_readdir(DIR* stream) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? directory->read() : real_readdir(stream);
}

Entry* preload_readdir64(DIR* stream) IB_STANDS_FOR("readdir64");
Entry* preload_readdir64(DIR* stream) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? directory->read() : real_readdir64(stream);
}

int preload_readdir_r(DIR* stream, Entry* entry, Entry** result) IB_STANDS_FOR("readdir_r");
int preload_readdir_r(DIR* stream, Entry* entry, Entry** result) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? read_into(*directory, entry, result)
                              : real_readdir_r(stream, entry, result);
}

int preload_readdir64_r(DIR* stream, Entry* entry, Entry** result) IB_STANDS_FOR("readdir64_r");
int preload_readdir64_r(DIR* stream, Entry* entry, Entry** result) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? read_into(*directory, entry, result)
                              : real_readdir64_r(stream, entry, result);
}

int preload_closedir(DIR* stream) IB_STANDS_FOR("closedir");
int preload_closedir(DIR* stream) {
  if (stream == nullptr) return real_closedir(stream);
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? directory->close() : real_closedir(stream);
}

void preload_rewinddir(DIR* stream) IB_STANDS_FOR("rewinddir");
void preload_rewinddir(DIR* stream) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? directory->rewind() : real_rewinddir(stream);
}

long preload_telldir(DIR* stream) IB_STANDS_FOR("telldir");
long preload_telldir(DIR* stream) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? directory->tell() : real_telldir(stream);
}

void preload_seekdir(DIR* stream, long where) IB_STANDS_FOR("seekdir");
void preload_seekdir(DIR* stream, long where) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? directory->seek(where) : real_seekdir(stream, where);
}

int preload_dirfd(DIR* stream) IB_STANDS_FOR("dirfd");
int preload_dirfd(DIR* stream) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? directory->fd : real_dirfd(stream);
}

int preload_scandir(const char* path, Entry*** out, Filter filter, Compare compare)
    IB_STANDS_FOR("scandir");
int preload_scandir(const char* path, Entry*** out, Filter filter, Compare compare) {
  return is_special(AT_FDCWD, path) ? scan(AT_FDCWD, path, out, filter, compare)
                                    : real_scandir(path, out, filter, compare);
}

int preload_scandir64(const char* path, Entry*** out, Filter filter, Compare compare)
    IB_STANDS_FOR("scandir64");
int preload_scandir64(const char* path, Entry*** out, Filter filter, Compare compare) {
  return is_special(AT_FDCWD, path) ? scan(AT_FDCWD, path, out, filter, compare)
                                    : real_scandir64(path, out, filter, compare);
}

int preload_scandirat(int at, const char* path, Entry*** out, Filter filter, Compare compare)
    IB_STANDS_FOR("scandirat");
int preload_scandirat(int at, const char* path, Entry*** out, Filter filter, Compare compare) {
  return is_special(at, path) ? scan(at, path, out, filter, compare)
                              : real_scandirat(at, path, out, filter, compare);
}

int preload_scandirat64(int at, const char* path, Entry*** out, Filter filter, Compare compare)
    IB_STANDS_FOR("scandirat64");
int preload_scandirat64(int at, const char* path, Entry*** out, Filter filter, Compare compare) {
  return is_special(at, path) ? scan(at, path, out, filter, compare)
                              : real_scandirat64(at, path, out, filter, compare);
}

}  // extern "C"
}  // namespace ib::host_abi::preload
