// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc by which a process gives up rights: its streams get ready before each, and
// after a filter was installed the other files here do without most system calls.
#include "host_abi/streams/sandbox.h"

#include "host_abi/sockets/common/own_process.h"
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/streams/fabric.h"
#include "host_abi/streams/inside.h"
#include "host_abi/streams/table.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

namespace ib::host_abi::stream_switch {
namespace {

using preload::Real;

inline constinit Real<int(int, unsigned long, unsigned long, unsigned long, unsigned long)>
    real_prctl{"prctl"};
inline constinit Real<int(uid_t)> real_setuid{"setuid"};
inline constinit Real<int(uid_t)> real_seteuid{"seteuid"};
inline constinit Real<int(uid_t, uid_t)> real_setreuid{"setreuid"};
inline constinit Real<int(uid_t, uid_t, uid_t)> real_setresuid{"setresuid"};
inline constinit Real<int(const char*)> real_chroot{"chroot"};
inline constinit Real<int(int, const void*)> real_setrlimit{"setrlimit"};
inline constinit Real<int(int, const void*)> real_setrlimit64{"setrlimit64"};

// Attaches to softibd, which answers no other user, and opens the ends of all streams, while that
// is possible. In a child of vfork() the table is its parent's.
void prepare() {
  const int error = errno;
  attach_in_time();
  if (!has_any_stream() || Inside::is() || sockets::in_vfork_child()) return;
  for (int fd = next_in_table(0); fd >= 0; fd = next_in_table(fd + 1)) {
    const Ref stream = find_stream(fd);
    if (!stream) continue;
    static_cast<void>(end_of(*stream));
    const long flags = ::syscall(SYS_fcntl, static_cast<long>(fd), long{F_GETFL});
    stream->is_nonblocking.store((flags & O_NONBLOCK) != 0, std::memory_order_relaxed);
  }
  errno = error;
}

}  // namespace

extern "C" {

int streams_prctl(int option, ...) IB_STANDS_FOR("prctl");
int streams_prctl(int option, ...) {
  va_list rest;
  va_start(rest, option);
  unsigned long words[4];
  for (unsigned long& word : words) word = va_arg(rest, unsigned long);
  va_end(rest);
  const bool filters = option == PR_SET_SECCOMP && has_any_stream();
  if (filters) {
    prepare();
    sandboxed.store(true);
  }
  const int result = real_prctl(option, words[0], words[1], words[2], words[3]);
  if (filters && result != 0) sandboxed.store(false);
  return result;
}

int streams_setuid(uid_t user) IB_STANDS_FOR("setuid");
int streams_setuid(uid_t user) {
  prepare();
  return real_setuid(user);
}

int streams_seteuid(uid_t user) IB_STANDS_FOR("seteuid");
int streams_seteuid(uid_t user) {
  prepare();
  return real_seteuid(user);
}

int streams_setreuid(uid_t real, uid_t effective) IB_STANDS_FOR("setreuid");
int streams_setreuid(uid_t real, uid_t effective) {
  prepare();
  return real_setreuid(real, effective);
}

int streams_setresuid(uid_t real, uid_t effective, uid_t saved) IB_STANDS_FOR("setresuid");
int streams_setresuid(uid_t real, uid_t effective, uid_t saved) {
  prepare();
  return real_setresuid(real, effective, saved);
}

// Also before there may be no descriptors more.
int streams_setrlimit(int resource, const void* limit) IB_STANDS_FOR("setrlimit");
int streams_setrlimit(int resource, const void* limit) {
  if (resource == RLIMIT_NOFILE) prepare();
  return real_setrlimit(resource, limit);
}

int streams_setrlimit64(int resource, const void* limit) IB_STANDS_FOR("setrlimit64");
int streams_setrlimit64(int resource, const void* limit) {
  if (resource == RLIMIT_NOFILE) prepare();
  return real_setrlimit64(resource, limit);
}

int streams_chroot(const char* path) IB_STANDS_FOR("chroot");
int streams_chroot(const char* path) {
  prepare();
  return real_chroot(path);
}

}  // extern "C"
}  // namespace ib::host_abi::stream_switch
