// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/streams/inherited.h"

#include "host_abi/sockets/common/stdio_streams.h"
#include "host_abi/streams/connections.h"
#include "host_abi/streams/fabric.h"
#include "host_abi/streams/left_rung.h"
#include "host_abi/streams/own_link.h"
#include "host_abi/streams/set_waiters.h"
#include "host_abi/streams/table.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ib::host_abi::stream_switch {
namespace {

template <class Function>
void for_each_descriptor(const msghdr& message, Function function) {
  auto& mutable_message = const_cast<msghdr&>(message);  // CMSG_NXTHDR() wants it so
  for (cmsghdr* one = CMSG_FIRSTHDR(&mutable_message); one != nullptr;
       one = CMSG_NXTHDR(&mutable_message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(one) + i * sizeof fd, sizeof fd);
      function(fd);
    }
  }
}

// getdents64() fills in these.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
};
constexpr std::size_t kNameOffset = offsetof(DirectoryEntry, type) + 1;

}  // namespace

void take_inherited() {
  const long directory = ::syscall(SYS_openat, long{AT_FDCWD}, "/proc/self/fd",
                                   long{O_RDONLY | O_DIRECTORY | O_CLOEXEC}, 0L);
  if (directory < 0) return;
  alignas(DirectoryEntry) char room[2048];
  long got = 0;
  while ((got = ::syscall(SYS_getdents64, directory, room, sizeof room)) > 0) {
    for (long at = 0; at < got;) {
      DirectoryEntry entry;
      std::memcpy(&entry, room + at, kNameOffset);
      const std::string_view name(room + at + kNameOffset);
      int fd = -1;
      std::from_chars(name.data(), name.data() + name.size(), fd);
      if (fd >= 0 && fd != directory) take_if_link(fd);
      if (fd >= 0 && fd != directory) take_if_listener(fd);
      at += entry.length;
    }
  }
  ::syscall(SYS_close, directory);
}

void take_if_link(int fd) {
  if (!has_place(fd)) return;
  const auto name = name_of_link(fd);
  if (!name) return;
  Ref stream = make();
  if (!stream) return;
  stream->stream = name->stream;
  stream->end_number = name->end;
  stream->file = os::file_word(fd);
  stream->is_inherited.store(true);
  stream->family = AF_INET;  // until its end is opened
  begin_leaving(*stream, LeftBy::others());
  put(fd, std::move(stream));
  if (fd <= STDERR_FILENO) sockets::replace_standard_stream(fd);
}

void take_links_from(const msghdr& message) {
  if (!is_on()) return;
  for_each_descriptor(message, take_if_link);
}

void note_links_in(const msghdr& message) {
  for_each_descriptor(message, [](int fd) {
    if (const Ref stream = find_stream(fd)) stream->is_inherited.store(true);
    settle_left(fd);
    if (is_set(fd)) share(fd);
  });
}

}  // namespace ib::host_abi::stream_switch
