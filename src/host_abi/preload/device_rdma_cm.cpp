// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// /dev/infiniband/rdma_cm, which librdmacm writes its commands to
// (docs/design/0016-rdma-cm-device.md).
//
// The object is a connection to softibd that has sent OpenRdmaCm: softibd sends it a message
// when there are events, so it polls as the device would, whichever process or thread looks; when
// its last descriptor is closed, softibd ends the file. A command goes over another connection
// (command_connection.h) and is executed there; this library interprets no command and keeps no
// state. The kernel copies from and to the program's memory, so a wrong pointer gives EFAULT.
#include "host_abi/preload/command_connection.h"
#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "linux/client/brief_receive.h"

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace ib::host_abi::preload {
namespace {

using namespace verbs::control;

// A minor number of the kernel's dynamic range for miscellaneous devices; softibd has the same.
constexpr DeviceKind::Number kDevice{kRdmaCmMajor, kRdmaCmMinor};

DeviceKind::Number number(unsigned) {
  return kDevice;
}

bool is_socket(const struct ::statx& now) {
  return S_ISSOCK(now.stx_mode);
}

ssize_t fail(int error) {
  errno = error;
  return -1;
}

// --- open ---

template <class T>
bool receive(int socket, T& answer) {
  iovec data{&answer, sizeof answer};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  ssize_t got = -1;
  do {
    got = sys::receive(socket, &message, 0);
  } while (got < 0 && errno == EINTR);
  return got >= static_cast<ssize_t>(sizeof(ReplyHeader));
}

// Has softibd make the connection an open device.
bool make_device(int socket, unsigned& file) {
  struct {
    RequestHeader header;
    OpenRdmaCmIn in;
  } request{};
  request.header = {sizeof request, static_cast<std::uint32_t>(Code::OpenRdmaCm), 1, 0, 0};
  static_assert(sizeof request == sizeof(RequestHeader) + sizeof(OpenRdmaCmIn));
  remote::copy_node(request.in.node);
  const char* program = program_invocation_short_name;
  const std::size_t length = std::min(std::strlen(program), request.in.program.size() - 1);
  std::memcpy(request.in.program.data(), program, length);
  if (sys::send(socket, &request, sizeof request) != sizeof request) return false;
  ReplyHeader answer{};
  if (!receive(socket, answer) || answer.status != 0) return false;
  file = static_cast<unsigned>(answer.information);
  return true;
}

int open_file(unsigned& unit, int flags) {
  remote::Reply why;
  const int socket = remote::connect(why);
  if (socket < 0) {
    errno = why == remote::Reply::NoDescriptor ? EMFILE : ENXIO;
    return -1;
  }
  // Waits for events have no limit, unlike that for the answer.
  const timeval no_limit{};
  if (!make_device(socket, unit) ||
      ((flags & O_NONBLOCK) != 0 && sys::fcntl(socket, F_SETFL, O_RDWR | O_NONBLOCK) != 0)) {
    sys::close(socket);
    errno = ENXIO;
    return -1;
  }
  sys::set_option(socket, SO_RCVTIMEO, &no_limit, sizeof no_limit);
  sys::set_option(socket, SO_SNDTIMEO, &no_limit, sizeof no_limit);
  return socket;
}

// --- commands ---

// Goes with a command when softibd needs it.
struct Extra {
  const void* option = nullptr;
  std::uint32_t option_size = 0;
  std::uint32_t from_file = 0;
  int from_fd = -1;
};

constexpr char kZeros[kRdmaCmBytes] = {};

iovec part(const void* data, std::size_t size) {
  return {const_cast<void*>(data), size};  // sendmsg() only reads
}

int send_command(int socket, std::uint32_t file, const void* data, std::size_t size,
                 const Extra& extra) {
  struct {
    RequestHeader header;
    std::uint32_t file;
    std::uint32_t from_file;
    std::uint64_t size;
    std::uint32_t option_size;
    std::uint32_t reserved;
  } head{};
  static_assert(sizeof head == sizeof(RequestHeader) + offsetof(RdmaCmIn, bytes));
  head.header = {sizeof(RequestHeader) + sizeof(RdmaCmIn), static_cast<std::uint32_t>(Code::RdmaCm),
                 1, 0, 0};
  head.file = file;
  head.from_file = extra.from_file;
  head.size = size;
  head.option_size = extra.option_size;
  const std::size_t sent = std::min(size, kRdmaCmBytes);
  const std::size_t option = std::min<std::size_t>(extra.option_size, kRdmaCmBytes);
  iovec parts[] = {part(&head, sizeof head), part(data, sent), part(kZeros, kRdmaCmBytes - sent),
                   part(extra.option, option), part(kZeros, kRdmaCmBytes - option)};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  while (sys::send_message(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno == EFAULT ? EFAULT : EIO;
  }
  return 0;
}

// The answer without its data, which then go to where the program wants them.
struct Answer {
  ReplyHeader header;
  RdmaCmOut out;
};

ssize_t receive_parts(int socket, iovec* parts, std::size_t count, int flags) {
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  ssize_t got = -1;
  do {
    got = sys::receive(socket, &message, flags);
  } while (got < 0 && errno == EINTR);
  return got;
}

// Whether commands poll for their answers: threads share the state, and one may overwrite
// another's.
std::atomic<platform::BriefPolling> command_polling;
static_assert(decltype(command_polling)::is_always_lock_free);

ssize_t peek_at_answer(int socket, iovec* parts) {
  platform::BriefPolling polling = command_polling.load(std::memory_order_relaxed);
  const ssize_t got = os::receive_briefly(
      polling, [&](int more) { return receive_parts(socket, parts, 1, MSG_PEEK | more); });
  command_polling.store(polling, std::memory_order_relaxed);
  return got;
}

int receive_answer(int socket, Answer& answer) {
  constexpr std::size_t kHead = sizeof(ReplyHeader) + offsetof(RdmaCmOut, bytes);
  iovec parts[] = {{&answer, kHead}, {}};
  if (peek_at_answer(socket, parts) != kHead || answer.header.status != 0) return EIO;
  if (answer.out.size == 0) {
    return receive_parts(socket, parts, 1, 0) == kHead ? 0 : EIO;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the ABI has pointers as 64-bit integers
  parts[1].iov_base = reinterpret_cast<void*>(static_cast<std::uintptr_t>(answer.out.address));
  parts[1].iov_len = answer.out.size;
  const ssize_t whole = static_cast<ssize_t>(kHead + answer.out.size);
  if (receive_parts(socket, parts, 2, 0) == whole) return 0;
  return errno == EFAULT ? EFAULT : EIO;
}

// Returns 0 if softibd has executed the command (or needs more for it), or an error number.
int exchange(std::uint32_t file, const void* data, std::size_t size, const Extra& extra,
             Answer& answer) {
  CommandConnection connection;
  const auto none = [&connection] {
    return connection.why() == remote::Reply::NoDescriptor ? EMFILE : EIO;
  };
  if (connection.socket() < 0) return none();
  int error = send_command(connection.socket(), file, data, size, extra);
  if (error == EIO && connection.was_kept()) {  // it is dead: the request was not sent
    connection.renew();
    if (connection.socket() < 0) return none();
    error = send_command(connection.socket(), file, data, size, extra);
  }
  if (error == 0) error = receive_answer(connection.socket(), answer);
  if (error == 0) connection.keep();
  return error;
}

// One message that said that there are events.
void take_notice(int fd) {
  if (fds::device(fd) != &kRdmaCm) return;  // closed meanwhile
  char byte;
  iovec parts[] = {{&byte, sizeof byte}};
  static_cast<void>(receive_parts(fd, parts, 1, MSG_DONTWAIT));
}

// Waits for an event as the descriptor says: EAGAIN, EINTR, or 0. Calls libc's recv(), since a
// thread that waits here may be cancelled.
int wait_for_event(int fd) {
  char byte;
  const ssize_t got = ::recv(fd, &byte, sizeof byte, MSG_PEEK);
  if (got > 0) return 0;
  return got == 0 ? EIO : errno == ECONNRESET ? EIO : errno;
}

// Whether the command waits for an event: GET_EVENT. It waits before anything else, so that it
// holds the open file like a call of the kernel's when another thread closes the descriptor
// meanwhile.
bool is_get_event(const void* data, std::size_t size) {
  constexpr std::uint32_t kGetEvent = 12;
  std::uint32_t code = 0;
  if (size < sizeof code) return false;
  const iovec to{&code, sizeof code};
  const iovec from = part(data, sizeof code);
  // Fails, and raises no signal, if the program has no such memory.
  return sys::read_own_memory(to, from) == sizeof code && code == kGetEvent;
}

// Fills in what softibd needs. Returns an error number.
int add(const RdmaCmOut& out, Extra& extra) {
  if (out.need == RdmaCmNeed::Option) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    extra.option = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(out.need_address));
    extra.option_size = out.need_size;
    return 0;
  }
  extra.from_fd = static_cast<int>(out.need_address);
  if (fds::device(extra.from_fd) != &kRdmaCm) {
    return sys::fcntl(extra.from_fd, F_GETFD, 0) < 0 ? ENOENT : EINVAL;
  }
  extra.from_file = fds::find(extra.from_fd).number;
  return 0;
}

ssize_t write_command(int fd, const void* data, std::size_t size) {
  const std::uint32_t file = fds::find(fd).number;
  Extra extra;
  if (is_get_event(data, size)) {
    if (const int error = wait_for_event(fd); error != 0) return fail(error);
  }
  for (;;) {
    Answer answer{};
    int error = exchange(file, data, size, extra, answer);
    if ((answer.out.flags & rdma_cm_flag::kDrained) != 0) take_notice(fd);
    if ((answer.out.flags & rdma_cm_flag::kOldFileDrained) != 0) take_notice(extra.from_fd);
    if (error != 0) return fail(error);
    if (answer.out.need != RdmaCmNeed::Nothing) {
      error = add(answer.out, extra);
      if (error != 0) return fail(error);
    } else if (answer.out.result == -EAGAIN) {  // GET_EVENT, and another thread was faster
      error = wait_for_event(fd);
      if (error != 0) return fail(error);
    } else {
      return answer.out.result == 0 ? static_cast<ssize_t>(size) : fail(-answer.out.result);
    }
  }
}

// The kernel's result for a device without read().
ssize_t read_nothing(int, void*, std::size_t) {
  return fail(EINVAL);
}

}  // namespace

constinit const DeviceKind kRdmaCm{.name = "rdma_cm",
                                   .numbered = false,
                                   .mode = 0666,
                                   .number = number,
                                   .is_stream = true,
                                   .open = open_file,
                                   .is_object = is_socket,
                                   .read = read_nothing,
                                   .write = write_command};

}  // namespace ib::host_abi::preload
