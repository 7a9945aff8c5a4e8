// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/directory.h"

#include "host_abi/preload/claims.h"
#include "host_abi/preload/real.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/view.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ib::host_abi::preload {
namespace {

constinit Real<::dirent64*(DIR*)> real_readdir64{"readdir64"};
constinit Real<int(DIR*)> real_closedir{"closedir"};
constinit Real<long(DIR*)> real_telldir{"telldir"};
constinit Real<void(DIR*, long)> real_seekdir{"seekdir"};
constinit Real<void(DIR*)> real_rewinddir{"rewinddir"};
constinit Real<int(DIR*)> real_dirfd{"dirfd"};

constexpr char kSelfAndParent[] = ".\n..\n";

// The content of `fd` from `offset` on, after `prefix`; from malloc().
char* read_names(int fd, std::size_t offset, const char* prefix) {
  struct ::statx file;
  if (sys::stat(fd, "", AT_EMPTY_PATH, file) != 0 || file.stx_size < offset) return nullptr;
  const std::size_t before = std::strlen(prefix);
  const std::size_t size = static_cast<std::size_t>(file.stx_size) - offset;
  auto* names = static_cast<char*>(std::malloc(before + size + 1));
  if (names == nullptr) return nullptr;
  std::memcpy(names, prefix, before);
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got = sys::pread(fd, names + before + have, size - have, offset + have);
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  names[before + have] = '\0';
  return names;
}

Directory* make() {
  void* memory = std::malloc(sizeof(Directory));
  return memory == nullptr ? nullptr : new (memory) Directory;
}

}  // namespace

Directory* Directory::open_ours(int fd) {
  view::Listing listing;
  if (!view::read_listing(fd, listing)) {
    errno = ENOTDIR;
    return nullptr;
  }
  char* names = read_names(fd, listing.names_offset, kSelfAndParent);
  Directory* directory = names == nullptr ? nullptr : make();
  if (directory == nullptr) {
    std::free(names);
    errno = ENOMEM;
    return nullptr;
  }
  directory->fd = fd;
  directory->path = listing.path;
  directory->names = names;
  directory->in_names = true;
  return directory;
}

Directory* Directory::open_merged(DIR* real, const Path& path) {
  int fd = -1;
  const remote::Reply reply = remote::list(path, fd);
  errno = reply == remote::Reply::NoDescriptor ? EMFILE : 0;
  if (errno != 0 || reply == remote::Reply::Unreachable) return nullptr;
  // Without names of ours there may still be names of the machine's to leave out.
  char* names = reply == remote::Reply::Ok ? read_names(fd, 0, "") : ::strdup("");
  if (reply == remote::Reply::Ok) sys::close(fd);
  Directory* directory = names == nullptr ? nullptr : make();
  if (directory == nullptr) {
    std::free(names);
    errno = ENOMEM;
    return nullptr;
  }
  directory->fd = real_dirfd(real);
  directory->real = real;
  directory->path = path;
  directory->names = names;
  return directory;
}

::dirent64* Directory::read_real() {
  for (;;) {
    ::dirent64* found = real_readdir64(real);
    if (found == nullptr) return nullptr;
    // The machine's own adapters are not this host's.
    Path whole;
    if (may_be_claimed(found->d_name) && normalise(path.text, found->d_name, whole) &&
        is_ours(whole)) {
      continue;
    }
    return found;
  }
}

::dirent64* Directory::read_name() {
  const std::size_t length = std::strcspn(names + position, "\n");
  if (length == 0) return nullptr;
  const std::size_t used = length < sizeof entry.d_name ? length : sizeof entry.d_name - 1;
  std::memcpy(entry.d_name, names + position, used);
  entry.d_name[used] = '\0';
  position += length + (names[position + length] == '\n' ? 1 : 0);
  entry.d_reclen = static_cast<unsigned short>(sizeof entry);
  entry.d_type = DT_UNKNOWN;  // programs that need it call stat()
  entry.d_off = tell();
  Path whole;
  entry.d_ino = normalise(path.text, entry.d_name, whole) ? inode_of(whole) : 1;
  return &entry;
}

::dirent64* Directory::read() {
  if (!in_names) {
    const int before = errno;
    errno = 0;
    ::dirent64* found = read_real();
    if (found != nullptr || errno != 0) {
      if (found != nullptr) errno = before;
      return found;
    }
    errno = before;
    in_names = true;
  }
  return read_name();
}

bool narrow_entry(const ::dirent64& from, ::dirent& to) {
  to.d_ino = static_cast<decltype(to.d_ino)>(from.d_ino);
  to.d_off = static_cast<decltype(to.d_off)>(from.d_off);  // only telldir() counts
  const std::size_t head = offsetof(::dirent64, d_name) - offsetof(::dirent, d_name);
  to.d_reclen = static_cast<unsigned short>(from.d_reclen - head);
  to.d_type = from.d_type;
  std::memcpy(to.d_name, from.d_name, std::strlen(from.d_name) + 1);
  if (to.d_ino == from.d_ino) return true;
  errno = EOVERFLOW;
  return false;
}

::dirent* Directory::read_narrow() {
  const ::dirent64* found = read();
  return found != nullptr && narrow_entry(*found, narrow) ? &narrow : nullptr;
}

long Directory::tell() const {
  if (real == nullptr) return static_cast<long>(position);
  return in_names ? ~static_cast<long>(position) : real_telldir(real);
}

void Directory::seek(long where) {
  const std::size_t length = std::strlen(names);
  const bool to_names = real == nullptr || where < 0;
  const auto offset = to_names ? static_cast<std::size_t>(where < 0 ? ~where : where) : 0;
  in_names = to_names;
  position = offset < length ? offset : length;
  if (to_names) return;
  if (where == 0) {
    real_rewinddir(real);
  } else {
    real_seekdir(real, where);
  }
}

int Directory::close() {
  const int result = real != nullptr ? real_closedir(real) : ::close(fd);
  std::free(names);
  std::free(this);
  return result;
}

}  // namespace ib::host_abi::preload
