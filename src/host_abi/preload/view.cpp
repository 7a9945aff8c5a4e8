// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/view.h"

#include "host_abi/preload/claims.h"
#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/system_calls.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ib::host_abi::preload {

using verbs::control::ViewKind;
using verbs::control::ViewStatOut;

namespace view {
namespace {

constexpr char kMagic[] = "softib directory\n";  // start of the memfd that stands for a directory
constexpr std::size_t kMagicLength = sizeof kMagic - 1;
constexpr unsigned kDeviceMajor = 0;  // as in all file systems without a disk
constexpr unsigned kDeviceMinor = 0x5f1b;
constexpr int kMaxLinks = 8;

Outcome fail(int error, int& result) {
  errno = error;
  result = -1;
  return Outcome::Handled;
}

std::uint32_t type_bits(ViewKind kind) {
  switch (kind) {
    case ViewKind::File: return S_IFREG;
    case ViewKind::Directory: return S_IFDIR;
    case ViewKind::Link: return S_IFLNK;
    case ViewKind::CharDevice: return S_IFCHR;
  }
  return S_IFREG;
}

// Everything belongs to root, as in the real /sys; files have no blocks.
struct ::statx describe(std::uint32_t inode, const ViewStatOut& file) {
  struct ::statx out {};
  out.stx_mask = STATX_BASIC_STATS;
  out.stx_blksize = 4096;
  // 1 means "the number of subdirectories is not in the link count", as on btrfs.
  out.stx_nlink = 1;
  out.stx_mode = static_cast<__u16>(type_bits(file.kind) | (file.mode & 07777));
  out.stx_ino = inode;
  out.stx_size = file.kind == ViewKind::Link ? std::strlen(file.target.data()) : file.size;
  out.stx_atime = out.stx_mtime = out.stx_ctime = remote::start_time();
  out.stx_dev_major = kDeviceMajor;
  out.stx_dev_minor = kDeviceMinor;
  out.stx_rdev_major = file.device_major;
  out.stx_rdev_minor = file.device_minor;
  return out;
}

// `path` is a link to `target`: replaces it by the path of its target, which is relative to the
// directory that the link is in.
bool follow_link(Path& path, const char* target) {
  Place parent;
  if (!normalise(path.text, "..", parent.at)) return false;
  ViewStatOut directory;
  int result = 0;
  if (is_emulated(parent.at) &&
      (find(parent, true, directory, result) == Outcome::NotHandled || result != 0)) {
    return false;
  }
  return normalise(parent.at.text, target, path) && is_emulated(path);
}

// The path that softibd gives for a file that is no link.
void settle_path(Path& path, const ViewStatOut& file) {
  const std::size_t length = strnlen(file.target.data(), file.target.size());
  if (length == 0 || length >= kPathSize) return;
  std::memcpy(path.text, file.target.data(), length);
  path.text[length] = '\0';
  path.length = length;
}

bool copy_text(int from, int to) {
  char buffer[2048];
  for (;;) {
    const ssize_t got = sys::read(from, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got < 0 || sys::write(to, buffer, static_cast<std::size_t>(got)) != got) return false;
  }
}

// Makes a memfd: magic, path, names. The memfd describes itself, so it needs no memory of ours and
// works in a forked child as well.
int make_directory(const Path& path) {
  int names = -1;
  const remote::Reply reply = remote::list(path, names);
  if (reply != remote::Reply::Ok) {
    errno = reply == remote::Reply::NoDescriptor ? EMFILE : ENOENT;
    return -1;
  }
  const int fd = sys::memory_file("softib-directory");
  if (fd >= 0) {
    const auto put = [fd](const char* text, std::size_t length) {
      return sys::write(fd, text, length) == static_cast<ssize_t>(length);
    };
    const bool written = put(kMagic, kMagicLength) && put(path.text, path.length) && put("\n", 1) &&
                         copy_text(names, fd) && sys::seek_to_start(fd) == 0;
    if (!written) {
      sys::close(fd);
      sys::close(names);
      errno = EIO;
      return -1;
    }
  }
  sys::close(names);
  return fd;
}

// The file system of memfds (one per machine, not mounted anywhere): distinguishes a text of ours
// from a stale table entry, whose number now belongs to another unlinked file. Relaxed: the word
// stands for nothing else, and a thread that has such a number has what came before it.
std::atomic<std::uint64_t> memory_files{0};

std::uint64_t file_system_of(const struct ::statx& file) {
  return (std::uint64_t{file.stx_dev_major} << 32) | file.stx_dev_minor;
}

void remember_memory_files(int fd) {
  if (memory_files.load(std::memory_order_relaxed) != 0) return;
  struct ::statx file;
  if (sys::stat(fd, "", AT_EMPTY_PATH, file) == 0) memory_files.store(file_system_of(file));
}

// open() promises the lowest free number, and close-on-exec only on request.
int settle(int fd, int flags, fds::Entry entry) {
  if (fd < 0) return -1;
  const int command = (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD;
  const int lowest = sys::fcntl(fd, command, 0);
  if (lowest < 0 || lowest > fd) {
    if (lowest >= 0) sys::close(lowest);
    if ((flags & O_CLOEXEC) == 0) sys::fcntl(fd, F_SETFD, 0);
  } else {
    sys::close(fd);
    fd = lowest;
  }
  if (fds::mark(fd, entry)) return fd;
  sys::close(fd);
  errno = EMFILE;
  return -1;
}

int settle_memory_file(int fd, int flags, fds::Entry entry) {
  if (fd >= 0) remember_memory_files(fd);
  return settle(fd, flags, entry);
}

bool wants_to_write(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
}

int open_directory(const Place& at, int flags) {
  if (wants_to_write(flags) || (flags & O_CREAT) != 0) {
    errno = EISDIR;
    return -1;
  }
  return settle_memory_file(make_directory(at.at), flags,
                            {fds::Kind::Directory, inode_of(at.at), nullptr});
}

int open_device(const Place& at, int flags) {
  if ((flags & O_DIRECTORY) != 0 || at.must_be_directory) {
    errno = ENOTDIR;
    return -1;
  }
  unsigned unit = 0;
  const DeviceKind* kind = devices::find(at.at, unit);
  if (kind == nullptr) {  // softibd has the device, but this library has no kind for it
    errno = ENXIO;
    return -1;
  }
  const int fd = kind->open(unit, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
  return settle(fd, flags, {fds::Kind::Device, unit, kind});
}

int open_file(const Place& at, int flags, int content) {
  const bool directory = (flags & O_DIRECTORY) != 0 || at.must_be_directory;
  if (directory || wants_to_write(flags)) {
    sys::close(content);
    errno = directory ? ENOTDIR : EACCES;
    return -1;
  }
  return settle_memory_file(content, flags, {fds::Kind::File, inode_of(at.at), nullptr});
}

// Returns whether `fd` is still the object of its table entry.
bool is_still(const fds::Entry& entry, int fd, struct ::statx& now) {
  if (sys::stat(fd, "", AT_EMPTY_PATH, now) != 0) return false;
  switch (entry.kind) {
    case fds::Kind::File:
    case fds::Kind::Directory:
      return S_ISREG(now.stx_mode) && now.stx_nlink == 0 &&
             file_system_of(now) == memory_files.load(std::memory_order_relaxed);
    case fds::Kind::Device:  // only a kind with a file
      return entry.device->name != nullptr &&
             (entry.device->is_object == nullptr || entry.device->is_object(now));
    case fds::Kind::None: break;
  }
  return false;
}

Outcome absent(int flags, int& result) {
  return fail((flags & O_CREAT) != 0 ? EACCES : ENOENT, result);
}

// Follows links in `at`.
Outcome open_at_end_of_links(Place& at, int flags, int& result) {
  for (int links = 0; links <= kMaxLinks; ++links) {
    ViewStatOut file;
    int content = -1;
    switch (remote::open(at.at, file, content)) {
      case remote::Reply::Unreachable: return Outcome::NotHandled;
      case remote::Reply::NoDescriptor: return fail(EMFILE, result);
      case remote::Reply::Absent: return absent(flags, result);
      // Linux lets it be opened and fails the read with the same error.
      case remote::Reply::Unreadable: return fail(EINVAL, result);
      case remote::Reply::Ok: break;
    }
    constexpr int kMustCreate = O_CREAT | O_EXCL;
    if ((flags & kMustCreate) == kMustCreate) {
      if (content >= 0) sys::close(content);
      return fail(EEXIST, result);
    }
    if (file.kind != ViewKind::Link) settle_path(at.at, file);
    switch (file.kind) {
      case ViewKind::File: result = open_file(at, flags, content); return Outcome::Handled;
      case ViewKind::Directory: result = open_directory(at, flags); return Outcome::Handled;
      case ViewKind::CharDevice: result = open_device(at, flags); return Outcome::Handled;
      case ViewKind::Link: break;
    }
    if ((flags & O_NOFOLLOW) != 0) return fail(ELOOP, result);
    if (!follow_link(at.at, file.target.data())) return fail(ENOENT, result);
  }
  return fail(ELOOP, result);
}

}  // namespace

Outcome find(Place& at, bool follow, ViewStatOut& out, int& result) {
  for (int links = 0; links <= kMaxLinks; ++links) {
    switch (remote::stat(at.at, out)) {
      case remote::Reply::Unreachable: return Outcome::NotHandled;
      case remote::Reply::NoDescriptor: return fail(EMFILE, result);
      case remote::Reply::Unreadable:
      case remote::Reply::Absent: return fail(ENOENT, result);
      case remote::Reply::Ok: break;
    }
    const bool is_link = out.kind == ViewKind::Link;
    if (!is_link || (!follow && !at.must_be_directory)) {
      if (at.must_be_directory && out.kind != ViewKind::Directory) return fail(ENOTDIR, result);
      if (!is_link) settle_path(at.at, out);
      result = 0;
      return Outcome::Handled;
    }
    if (!follow_link(at.at, out.target.data())) return fail(ENOENT, result);
  }
  return fail(ELOOP, result);
}

Outcome open(Place at, int flags, int& result) {
  const int before = errno;
  const Outcome outcome = open_at_end_of_links(at, flags, result);
  if (outcome == Outcome::Handled && result >= 0) errno = before;  // as sys::leaving_errno()
  return outcome;
}

Outcome statx(Place at, bool follow, struct ::statx* out, int& result) {
  ViewStatOut file;
  if (find(at, follow, file, result) == Outcome::NotHandled) return Outcome::NotHandled;
  if (result == 0) *out = describe(inode_of(at.at), file);
  return Outcome::Handled;
}

Outcome access(Place at, bool follow, int mode, int& result) {
  ViewStatOut file;
  if (find(at, follow, file, result) == Outcome::NotHandled) return Outcome::NotHandled;
  // Permissions are the same for every user, so "others" decide (R_OK, W_OK, X_OK are those bits).
  if (result == 0 && (static_cast<std::uint32_t>(mode) & ~file.mode & 7u) != 0) {
    return fail(EACCES, result);
  }
  return Outcome::Handled;
}

Outcome read_link(Place at, char* text, std::size_t size, ssize_t& result) {
  ViewStatOut file;
  int found = 0;
  if (find(at, false, file, found) == Outcome::NotHandled) return Outcome::NotHandled;
  result = found;
  if (found != 0) return Outcome::Handled;
  if (file.kind != ViewKind::Link) {
    errno = EINVAL;
    result = -1;
    return Outcome::Handled;
  }
  const std::size_t length = std::min(size, std::strlen(file.target.data()));
  std::memcpy(text, file.target.data(), length);
  result = static_cast<ssize_t>(length);
  return Outcome::Handled;
}

Outcome real_path(Place at, Path& out, int& result) {
  ViewStatOut file;
  const Outcome outcome = find(at, true, file, result);
  if (outcome == Outcome::Handled && result == 0) out = at.at;
  return outcome;
}

int reading_error(int fd, const fds::Entry& entry) {
  if (entry.kind != fds::Kind::Directory) return 0;
  const sys::KeepErrno keep;
  struct ::statx now;
  return is_still(entry, fd, now) ? EISDIR : 0;
}

Outcome statx_fd(int fd, struct ::statx* out, int& result) {
  const fds::Entry entry = fds::find(fd);
  if (entry.kind == fds::Kind::None) return Outcome::NotHandled;
  const sys::KeepErrno keep;
  struct ::statx now;
  if (!is_still(entry, fd, now)) return Outcome::NotHandled;
  ViewStatOut file;
  std::uint32_t inode = entry.number;
  switch (entry.kind) {
    case fds::Kind::Directory:
      file.kind = ViewKind::Directory;
      file.mode = 0755;
      break;
    case fds::Kind::Device:
      file = devices::describe(*entry.device, entry.number);
      inode = devices::inode_of(*entry.device, entry.number);
      break;
    case fds::Kind::File:
    case fds::Kind::None:
      file.mode = 0444;
      file.size = now.stx_size;
      break;
  }
  *out = describe(inode, file);
  result = 0;
  return Outcome::Handled;
}

bool read_listing(int fd, Listing& out) {
  char head[kMagicLength + kPathSize];
  const ssize_t got = sys::pread(fd, head, sizeof head - 1, 0);
  if (got <= static_cast<ssize_t>(kMagicLength)) return false;
  head[got] = '\0';
  if (std::memcmp(head, kMagic, kMagicLength) != 0) return false;
  const char* path = head + kMagicLength;
  const std::size_t length = std::strcspn(path, "\n");
  if (path[length] != '\n') return false;
  std::memcpy(out.path.text, path, length);
  out.path.text[length] = '\0';
  out.path.length = length;
  out.names_offset = kMagicLength + length + 1;
  return true;
}

}  // namespace view
}  // namespace ib::host_abi::preload
