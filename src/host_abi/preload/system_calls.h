// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The system calls that the preload library makes for itself. They bypass the PLT: a call of open()
// here would reach our own open(), or another preload library's.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <type_traits>

namespace ib::host_abi::preload::sys {

// Each number as a whole word: the last argument lies on the stack, where half of it would be
// whatever was there.
template <class T>
auto word(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<long>(value);
  } else {
    return value;
  }
}
template <class... T>
long call(long number, T... arguments) {
  return ::syscall(number, word(arguments)...);
}

inline int result(long value) {
  return static_cast<int>(value);
}

inline int open(const char* path, int flags) {
  return result(call(SYS_openat, AT_FDCWD, path, flags, 0));
}
inline int close(int fd) {
  return result(call(SYS_close, fd));
}
inline ssize_t read(int fd, void* data, std::size_t size) {
  return call(SYS_read, fd, data, size);
}
inline ssize_t pread(int fd, void* data, std::size_t size, std::size_t offset) {
#if defined(__i386__)
  return call(SYS_pread64, fd, data, size, offset, 0);  // two words
#else
  return call(SYS_pread64, fd, data, size, offset);
#endif
}
inline ssize_t write(int fd, const void* data, std::size_t size) {
  return call(SYS_write, fd, data, size);
}
inline int seek_to_start(int fd) {
  return result(call(SYS_lseek, fd, 0, SEEK_SET));
}
inline int fcntl(int fd, int command, int argument) {
  return result(call(SYS_fcntl, fd, command, argument));
}
inline int close_range(unsigned first, unsigned last, int flags) {
  return result(call(SYS_close_range, first, last, flags));
}
inline int memory_file(const char* name) {
  constexpr unsigned kCloseOnExec = 1;  // MFD_CLOEXEC
  return result(call(SYS_memfd_create, name, kCloseOnExec));
}
inline ssize_t read_link(const char* path, char* text, std::size_t size) {
  return call(SYS_readlinkat, AT_FDCWD, path, text, size);
}
inline ssize_t current_directory(char* text, std::size_t size) {
  return call(SYS_getcwd, text, size);
}
inline int madvise(void* address, std::size_t length, int advice) {
  return result(call(SYS_madvise, address, length, advice));
}
inline void* mmap(void* address, std::size_t length, int rights, int flags, int fd,
                  off64_t offset) {
#if defined(SYS_mmap2)
  constexpr int kPageShift = 12;  // of this system call, on every machine that has it
  const long at =
      call(SYS_mmap2, address, length, rights, flags, fd, static_cast<long>(offset >> kPageShift));
#else
  const long at = call(SYS_mmap, address, length, rights, flags, fd, offset);
#endif
  return reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr)
}
inline int munmap(void* address, std::size_t length) {
  return result(call(SYS_munmap, address, length));
}
inline int mprotect(void* address, std::size_t length, int rights) {
  return result(call(SYS_mprotect, address, length, rights));
}
inline int pkey_mprotect(void* address, std::size_t length, int rights, int key) {
  return result(call(SYS_pkey_mprotect, address, length, rights, key));
}
inline void* mremap(void* from, std::size_t old_length, std::size_t length, int flags, void* to) {
  const long at = call(SYS_mremap, from, old_length, length, flags, to);
  return reinterpret_cast<void*>(at);  // NOLINT(performance-no-int-to-ptr)
}
inline int change_directory(const char* path) {
  return result(call(SYS_chdir, path));
}
inline int process_id() {
  return result(call(SYS_getpid));
}
inline int socket(int domain, int type) {
  return result(call(SYS_socket, domain, type, 0));
}
inline int socket_pair(int type, int ends[2]) {
  return result(call(SYS_socketpair, AF_UNIX, type, 0, ends));
}
// Waits without a limit; -1 also if a signal came.
inline int poll_one(pollfd& one) {
  return result(call(SYS_ppoll, &one, 1, nullptr, nullptr, 0));
}
inline int connect(int fd, const sockaddr* address, socklen_t length) {
  return result(call(SYS_connect, fd, address, length));
}
inline int bind(int fd, const sockaddr* address, socklen_t length) {
  return result(call(SYS_bind, fd, address, length));
}
inline int get_option(int fd, int name, void* value, socklen_t* length) {
  return result(call(SYS_getsockopt, fd, SOL_SOCKET, name, value, length));
}
inline int set_option(int fd, int name, const void* value, socklen_t length) {
  return result(call(SYS_setsockopt, fd, SOL_SOCKET, name, value, length));
}
inline int peer_name(int fd, void* address, socklen_t* length) {
  return result(call(SYS_getpeername, fd, address, length));
}
inline ssize_t send(int fd, const void* data, std::size_t size) {
  return call(SYS_sendto, fd, data, size, MSG_NOSIGNAL, nullptr, 0);
}
// `process`: process_id(). They fail, and raise no signal, where there is no such memory.
inline ssize_t read_own_memory(int process, const iovec& to, const iovec& from) {
  return call(SYS_process_vm_readv, process, &to, 1, &from, 1, 0);
}
inline ssize_t write_own_memory(int process, const iovec& to, const iovec& from) {
  return call(SYS_process_vm_writev, process, &from, 1, &to, 1, 0);
}
inline ssize_t send_message(int fd, const msghdr* message, int flags) {
  return call(SYS_sendmsg, fd, message, flags);
}
inline ssize_t receive(int fd, msghdr* message, int flags) {
  return call(SYS_recvmsg, fd, message, flags);
}
// One message, whatever signals come meanwhile.
inline ssize_t receive_parts(int fd, iovec* parts, std::size_t count, int flags) {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  ssize_t got = -1;
  do {
    got = receive(fd, &message, flags);
  } while (got < 0 && errno == EINTR);
  return got;
}
inline std::time_t seconds() {
  timespec now{};
  call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}
// The kernel's statx, since its layout is the same on all machines.
inline int stat(int directory, const char* path, int flags, struct statx& out) {
  return result(call(SYS_statx, directory, path, flags, STATX_BASIC_STATS, &out));
}

// Restores the caller's errno, unless a new one is set to be kept.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_;
};

// Returns what `call` returns. If that is not negative, errno is as before: the kernel's system
// calls leave it alone when they succeed, and programs look at it after calls that clean up.
template <class Call>
auto leaving_errno(Call&& call) {
  const int before = errno;
  const auto result = call();
  if (result >= 0) errno = before;
  return result;
}

}  // namespace ib::host_abi::preload::sys
