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

// scandir() and scandir64(), readdir() and readdir64() have layouts of their own, which are the
// same on 64-bit machines.
template <class Entry>
struct Scan {
  using List = Entry***;
  using Filter = int (*)(const Entry*);
  using Compare = int (*)(const Entry**, const Entry**);
  using Function = int(const char*, Entry***, Filter, Compare);
  using AtFunction = int(int, const char*, Entry***, Filter, Compare);
};

constinit Real<DIR*(const char*)> real_opendir{"opendir"};
constinit Real<DIR*(int)> real_fdopendir{"fdopendir"};
constinit Real<::dirent*(DIR*)> real_readdir{"readdir"};
constinit Real<::dirent64*(DIR*)> real_readdir64{"readdir64"};
constinit Real<int(DIR*, ::dirent*, ::dirent**)> real_readdir_r{"readdir_r"};
constinit Real<int(DIR*, ::dirent64*, ::dirent64**)> real_readdir64_r{"readdir64_r"};
constinit Real<int(DIR*)> real_closedir{"closedir"};
constinit Real<void(DIR*)> real_rewinddir{"rewinddir"};
constinit Real<long(DIR*)> real_telldir{"telldir"};
constinit Real<void(DIR*, long)> real_seekdir{"seekdir"};
constinit Real<int(DIR*)> real_dirfd{"dirfd"};
constinit Real<Scan<::dirent>::Function> real_scandir{"scandir"};
constinit Real<Scan<::dirent64>::Function> real_scandir64{"scandir64"};
constinit Real<Scan<::dirent>::AtFunction> real_scandirat{"scandirat"};
constinit Real<Scan<::dirent64>::AtFunction> real_scandirat64{"scandirat64"};

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

template <class Entry>
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

::dirent* next(DIR* stream, ::dirent*) {
  return ::readdir(stream);
}
::dirent64* next(DIR* stream, ::dirent64*) {
  return ::readdir64(stream);
}

// libc's scandir() reads directories without calling our functions, so special ones are read here.
template <class Entry>
int scan(int at, const char* path, Entry*** out, typename Scan<Entry>::Filter filter,
         typename Scan<Entry>::Compare compare) {
  const int fd = ::openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    const sys::KeepErrno keep;
    ::close(fd);
    return -1;
  }
  List<Entry> list;
  bool complete = true;
  while (const Entry* entry = next(stream, static_cast<Entry*>(nullptr))) {
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

template <class Entry, class Read>
int read_into(Read read, Entry* entry, Entry** result) {
  const int before = errno;
  errno = 0;
  const Entry* found = read();
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

::dirent* preload_readdir(DIR* stream) IB_STANDS_FOR("readdir");
::dirent* preload_readdir(DIR* stream) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? directory->read_narrow() : real_readdir(stream);
}

::dirent64* preload_readdir64(DIR* stream) IB_STANDS_FOR("readdir64");
::dirent64* preload_readdir64(DIR* stream) {
  Directory* directory = Directory::from(stream);
  return directory != nullptr ? directory->read() : real_readdir64(stream);
}

int preload_readdir_r(DIR* stream, ::dirent* entry, ::dirent** result) IB_STANDS_FOR("readdir_r");
int preload_readdir_r(DIR* stream, ::dirent* entry, ::dirent** result) {
  Directory* directory = Directory::from(stream);
  if (directory == nullptr) return real_readdir_r(stream, entry, result);
  return read_into([directory] { return directory->read_narrow(); }, entry, result);
}

int preload_readdir64_r(DIR* stream, ::dirent64* entry, ::dirent64** result)
    IB_STANDS_FOR("readdir64_r");
int preload_readdir64_r(DIR* stream, ::dirent64* entry, ::dirent64** result) {
  Directory* directory = Directory::from(stream);
  if (directory == nullptr) return real_readdir64_r(stream, entry, result);
  return read_into([directory] { return directory->read(); }, entry, result);
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

#define IB_SCANDIR(Entry, suffix)                                                                  \
  int preload_scandir##suffix(const char* path, Scan<Entry>::List out, Scan<Entry>::Filter filter, \
                              Scan<Entry>::Compare compare) IB_STANDS_FOR("scandir" #suffix);      \
  int preload_scandir##suffix(const char* path, Scan<Entry>::List out, Scan<Entry>::Filter filter, \
                              Scan<Entry>::Compare compare) {                                      \
    return is_special(AT_FDCWD, path) ? scan<Entry>(AT_FDCWD, path, out, filter, compare)          \
                                      : real_scandir##suffix(path, out, filter, compare);          \
  }                                                                                                \
  int preload_scandirat##suffix(int at, const char* path, Scan<Entry>::List out,                   \
                                Scan<Entry>::Filter filter, Scan<Entry>::Compare compare)          \
      IB_STANDS_FOR("scandirat" #suffix);                                                          \
  int preload_scandirat##suffix(int at, const char* path, Scan<Entry>::List out,                   \
                                Scan<Entry>::Filter filter, Scan<Entry>::Compare compare) {        \
    return is_special(at, path) ? scan<Entry>(at, path, out, filter, compare)                      \
                                : real_scandirat##suffix(at, path, out, filter, compare);          \
  }

IB_SCANDIR(::dirent, )
IB_SCANDIR(::dirent64, 64)
#undef IB_SCANDIR

}  // extern "C"
}  // namespace ib::host_abi::preload
