// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of stdio that take a descriptor. libc's streams read and write by themselves, past
// the switch: a connection gets a stream of our own instead.
#include "host_abi/sockets/common/own_process.h"
#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/stdio_streams.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace ib::host_abi::sockets {
namespace {

constinit real::Real<FILE*(int, const char*)> real_fdopen{"fdopen"};
constinit real::Real<int(FILE*)> real_fileno{"fileno"};
constinit real::Real<int(FILE*)> real_fileno_unlocked{"fileno_unlocked"};
constinit real::Real<int(int, const char*, va_list)> real_vdprintf{"vdprintf"};

struct Stream {
  int fd = -1;
  FILE* file = nullptr;
  Stream* next = nullptr;
};
constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit Stream* streams = nullptr;

// libc's own names lead to the functions of the switch.
ssize_t read_stream(void* cookie, char* buffer, std::size_t length) {
  return ::read(static_cast<Stream*>(cookie)->fd, buffer, length);
}

// Returns 0 on failure, as fopencookie() wants it.
ssize_t write_stream(void* cookie, const char* buffer, std::size_t length) {
  const ssize_t sent = ::write(static_cast<Stream*>(cookie)->fd, buffer, length);
  return sent < 0 ? 0 : sent;
}

int close_stream(void* cookie) {
  auto* stream = static_cast<Stream*>(cookie);
  {
    const WithoutCancel no_cancel;
    ::pthread_mutex_lock(&lock);
    for (Stream** at = &streams; *at != nullptr; at = &(*at)->next) {
      if (*at != stream) continue;
      *at = stream->next;
      break;
    }
    ::pthread_mutex_unlock(&lock);
  }
  const int fd = stream->fd;
  delete stream;
  return ::close(fd);
}

FILE* make_stream(int fd, const char* mode) {
  const WithoutCancel no_cancel;
  auto* stream = new (std::nothrow) Stream;
  if (stream == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  stream->fd = fd;
  stream->file = ::fopencookie(stream, mode, {read_stream, write_stream, nullptr, close_stream});
  if (stream->file == nullptr) {
    delete stream;
    return nullptr;
  }
  FILE* const file = stream->file;
  ::pthread_mutex_lock(&lock);
  stream->next = streams;
  streams = stream;
  ::pthread_mutex_unlock(&lock);
  return file;
}

// Of streams that libc has no number for.
int number_of(FILE* file, int result) {
  if (result >= 0) return result;
  const WithoutCancel no_cancel;
  ::pthread_mutex_lock(&lock);
  for (const Stream* stream = streams; stream != nullptr; stream = stream->next) {
    if (stream->file == file) result = stream->fd;
  }
  ::pthread_mutex_unlock(&lock);
  return result;
}

int print_to(int fd, const char* format, va_list arguments) {
  if (!is_connection(fd)) return real_vdprintf(fd, format, arguments);
  char* text = nullptr;
  const int length = ::vasprintf(&text, format, arguments);
  if (length < 0) return length;
  const ssize_t sent = ::write(fd, text, static_cast<std::size_t>(length));
  std::free(text);
  return sent < 0 ? -1 : static_cast<int>(sent);
}

}  // namespace

void flush_streams() {
  ::pthread_mutex_lock(&lock);
  for (const Stream* stream = streams; stream != nullptr; stream = stream->next) {
    ::fflush_unlocked(stream->file);
  }
  ::pthread_mutex_unlock(&lock);
}

void release_lock_of_streams() {
  lock = PTHREAD_MUTEX_INITIALIZER;
}

namespace {

struct Standard {
  FILE** stream;
  const char* mode;
  bool is_replaced = false;
};
constinit Standard standard[] = {{&stdin, "r"}, {&stdout, "w"}, {&stderr, "w"}};

Standard* find_standard(int fd) {
  if (fd < STDIN_FILENO || fd > STDERR_FILENO) return nullptr;
  Standard* const one = &standard[fd];
  // The program may have closed its stream, or put another one there.
  if (one->is_replaced || *one->stream == nullptr) return nullptr;
  return real_fileno(*one->stream) == fd ? one : nullptr;
}

}  // namespace

void flush_standard_stream(int fd) {
  const Standard* const one = find_standard(fd);
  if (one != nullptr && fd != STDIN_FILENO) static_cast<void>(std::fflush(*one->stream));
}

void replace_standard_stream(int fd) {
  Standard* const one = find_standard(fd);
  if (one == nullptr) return;
  FILE* const file = make_stream(fd, one->mode);
  if (file == nullptr) return;
  if (fd == STDERR_FILENO) static_cast<void>(std::setvbuf(file, nullptr, _IONBF, 0));
  *one->stream = file;
  one->is_replaced = true;
}

extern "C" {

FILE* sockets_fdopen(int fd, const char* mode) IB_STANDS_FOR("fdopen");
FILE* sockets_fdopen(int fd, const char* mode) {
  if (is_connection(fd)) return make_stream(fd, mode);
  return real_fdopen(fd, mode);
}

int sockets_fileno(FILE* file) IB_STANDS_FOR("fileno");
int sockets_fileno(FILE* file) {
  return number_of(file, real_fileno(file));
}

int sockets_fileno_unlocked(FILE* file) IB_STANDS_FOR("fileno_unlocked");
int sockets_fileno_unlocked(FILE* file) {
  return number_of(file, real_fileno_unlocked(file));
}

int sockets_vdprintf(int fd, const char* format, va_list arguments) IB_STANDS_FOR("vdprintf");
int sockets_vdprintf(int fd, const char* format, va_list arguments) {
  return print_to(fd, format, arguments);
}

int sockets_dprintf(int fd, const char* format, ...) IB_STANDS_FOR("dprintf");
int sockets_dprintf(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = print_to(fd, format, arguments);
  va_end(arguments);
  return result;
}

// Of programs that are built with _FORTIFY_SOURCE.
int sockets_vdprintf_chk(int fd, int, const char* format, va_list arguments)
    IB_STANDS_FOR("__vdprintf_chk");
int sockets_vdprintf_chk(int fd, int, const char* format, va_list arguments) {
  return print_to(fd, format, arguments);
}

int sockets_dprintf_chk(int fd, int, const char* format, ...) IB_STANDS_FOR("__dprintf_chk");
int sockets_dprintf_chk(int fd, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = print_to(fd, format, arguments);
  va_end(arguments);
  return result;
}

}  // extern "C"
}  // namespace ib::host_abi::sockets
