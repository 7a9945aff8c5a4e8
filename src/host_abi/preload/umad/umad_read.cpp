// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message of softibd's is looked at where the program wants it, and then taken, unless it does
// not fit: the device keeps a MAD that does not fit. Another thread or process may take it in
// between, and this one takes the next: then that counts, and goes back if it does not fit.
#include "host_abi/preload/umad/umad_read.h"

#include "host_abi/preload/device_files/held_file.h"
#include "host_abi/preload/system_calls.h"
#include "host_abi/preload/umad/umad_request.h"
#include "linux/received_descriptors.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

using namespace verbs::control;

struct Head {
  ReplyHeader reply;
  UmadMessage message;
};
struct Taken {
  Head head;
  std::byte bytes[kUmadMostShort];
};

constexpr std::size_t kTidOffset = 12;  // its lower half, in a MAD

std::size_t whole_size(const UmadMessage& message) {
  return std::size_t{message.header_size} + message.size;
}

// 0, or why the program cannot have it in a buffer of this size.
int fitting_error(const UmadMessage& message, std::size_t size) {
  const std::size_t first = std::min<std::size_t>(message.size, kUmadMadBytes);
  if (size < message.header_size + first) return EINVAL;
  return size < whole_size(message) ? ENOSPC : 0;
}

// Looks at the next message, or waits for one. libc's function: a thread that sleeps here may be
// cancelled.
ssize_t peek(HeldFile& held, int fd, Head& head, void* data, std::size_t size) {
  iovec parts[] = {{&head, sizeof head}, {data, std::min(size, kUmadMostShort)}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t got = -1;
  pthread_cleanup_push(&HeldFile::release, &held);
  got = ::recvmsg(held.holds() ? held.fd() : fd, &message, MSG_PEEK);
  pthread_cleanup_pop(0);
  return got;
}

// Takes the next message, and its file. Returns its size, or -1.
ssize_t take(int fd, Taken& taken, int& memory_file) {
  iovec all{&taken, sizeof taken};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  msghdr message{};
  message.msg_iov = &all;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = -1;
  do {
    got = sys::receive(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return got;
  os::take_descriptors(message, [&memory_file](int received) {
    if (memory_file < 0) {
      memory_file = received;
    } else {
      sys::close(received);
    }
  });
  return got;
}

// All of a long message. Returns an error number.
int read_file(int memory_file, void* data, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t got =
        sys::pread(memory_file, static_cast<std::byte*>(data) + done, size - done, done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return EIO;
    done += static_cast<std::size_t>(got);
  }
  return 0;
}

void note_received(std::uint32_t file, const Taken& taken) {
  UmadMirror* const mirror = umad_mirror();
  if (mirror == nullptr) return;
  std::uint32_t tid = 0;
  std::memcpy(&tid, taken.bytes + taken.head.message.header_size % kUmadMostShort + kTidOffset,
              sizeof tid);
  mirror->received(file, tid);
}

// Gives the program what was taken. `seen`: the number of the message that it has in its buffer
// already.
ssize_t give(int fd, std::uint32_t file, const Taken& taken, std::size_t got, int memory_file,
             std::uint32_t seen, void* data, std::size_t size) {
  const UmadMessage& message = taken.head.message;
  const std::size_t whole = whole_size(message);
  int error = fitting_error(message, size);
  if (error != 0) {
    umad_put_back(fd, &taken.head.message, got - sizeof taken.head.reply, memory_file);
  } else if (memory_file >= 0) {
    error = read_file(memory_file, data, whole);
  } else if (whole > kUmadMostShort) {
    error = EMFILE;  // its file found no number
  } else if (message.number != seen && !copy_to_program(data, taken.bytes, whole)) {
    error = EFAULT;
  }
  if (memory_file >= 0) sys::close(memory_file);
  if (error == 0) {
    note_received(file, taken);
    return static_cast<ssize_t>(whole);
  }
  errno = error;
  return -1;
}

// The device is gone, or softibd. A program that reads on and on, and logs each error, as OpenSM
// does, would fill the disk and keep a processor busy: from some reads on each takes a while.
ssize_t fail_as_gone() {
  constexpr unsigned kReadsAtOnce = 8;
  static std::atomic<unsigned> reads = 0;  // a device that is gone does not come back
  if (reads < kReadsAtOnce) {
    ++reads;
  } else {
    const timespec pause{0, 200'000'000};
    (void)::syscall(SYS_nanosleep, &pause, nullptr);
  }
  errno = EIO;
  return -1;
}

}  // namespace

ssize_t umad_read(int fd, std::uint32_t file, void* data, std::size_t size) {
  const UmadMirror* const mirror = umad_mirror();
  const std::size_t header = mirror != nullptr ? mirror->header_size(file) : 0;
  if (size < (header != 0 ? header : kUmadHeader)) {
    errno = EINVAL;
    return -1;
  }
  HeldFile held;
  if ((sys::fcntl(fd, F_GETFL, 0) & O_NONBLOCK) == 0) held.hold(fd);
  const int at = held.holds() ? held.fd() : fd;
  for (;;) {
    Head head;
    ssize_t got = peek(held, fd, head, data, size);
    if (got < 0 && errno == ECONNRESET) got = 0;
    if (got < 0) return -1;
    if (got < static_cast<ssize_t>(sizeof head)) return fail_as_gone();
    if (const int error = fitting_error(head.message, size); error != 0) {
      errno = error;
      return -1;
    }
    Taken taken;
    int memory_file = -1;
    got = take(at, taken, memory_file);
    if (got < 0 && errno == EAGAIN) continue;  // another thread has it
    if (got < static_cast<ssize_t>(sizeof taken.head)) return fail_as_gone();
    return give(at, file, taken, static_cast<std::size_t>(got), memory_file, head.message.number,
                data, size);
  }
}

}  // namespace ib::host_abi::preload
