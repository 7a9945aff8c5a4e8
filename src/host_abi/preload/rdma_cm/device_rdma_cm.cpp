// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// /dev/infiniband/rdma_cm, which librdmacm writes its commands to
// (docs/design/0016-rdma-cm-device.md).
//
// The object is a connection to softibd that has sent OpenRdmaCm: softibd sends it a message
// when there are events, so it polls as the device would, whichever process or thread looks; when
// its last descriptor is closed, softibd ends the file. A command goes over another connection
// (command_connection.h) and is executed there; this library interprets no command and keeps no
// state. The kernel copies from and to the program's memory, so a wrong pointer gives EFAULT; only
// what is on the caller's own stack is copied here.
#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/rdma_cm/answers_ahead.h"
#include "host_abi/preload/rdma_cm/command_connection.h"
#include "host_abi/preload/rdma_cm/event_wait.h"
#include "host_abi/preload/rdma_cm/held_file.h"
#include "host_abi/preload/rdma_cm/own_stack.h"
#include "host_abi/preload/rdma_cm/process_page.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "linux/client/brief_receive.h"

#include <pthread.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

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
  return sys::receive_parts(socket, &data, 1, 0) >= static_cast<ssize_t>(sizeof(ReplyHeader));
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

// One command of the program, and its process.
struct Command {
  Command(OwnStack of_caller, int fd, const void* bytes, std::size_t count)
      : data(bytes),
        size(count),
        file(fds::find(fd).number),
        process(CommandConnection::this_process()),
        stack(of_caller) {}

  const void* data;
  std::size_t size;
  std::uint32_t file;
  std::uint32_t turn = 0;  // AnswersAhead
  int process;
  OwnStack stack;  // of the thread that sends it
  // The kernel copies between addresses of this process: a filter of system calls may forbid it.
  bool may_copy = false;
  bool is_copied = false;  // `copy` has all that softibd looks at
  bool may_wait = false;   // rdma_cm_in_flag::kMayWait
  std::array<std::uint8_t, kRdmaCmBytes> copy;
};

constexpr std::size_t kRequestBytes = sizeof(RequestHeader) + sizeof(RdmaCmIn);

RequestHeader command_header() {
  return {kRequestBytes, static_cast<std::uint32_t>(Code::RdmaCm), 1, 0, 0};
}

constexpr char kZeros[kRdmaCmBytes] = {};

iovec part(const void* data, std::size_t size) {
  return {const_cast<void*>(data), size};  // sendmsg() only reads
}

// Returns the number of bytes up to where the program has no memory, or -1.
ssize_t copy_from(const Command& command, void* to, const void* from, std::size_t size) {
  if (!command.stack.has(from, size)) {
    return sys::read_own_memory(command.process, {to, size}, part(from, size));
  }
  std::memcpy(to, from, size);
  return static_cast<ssize_t>(size);
}

// Returns false if the program has no such memory.
bool copy_to(const Command& command, void* to, const void* from, std::size_t size) {
  if (!command.stack.has(to, size)) {
    return sys::write_own_memory(command.process, {to, size}, part(from, size)) ==
           static_cast<ssize_t>(size);
  }
  std::memcpy(to, from, size);
  return true;
}

int send_command(int socket, const Command& command, const Extra& extra) {
  struct {
    RequestHeader header;
    std::uint32_t file;
    std::uint32_t from_file;
    std::uint64_t size;
    std::uint32_t option_size;
    std::uint32_t reserved;
  } head{};
  static_assert(sizeof head == sizeof(RequestHeader) + offsetof(RdmaCmIn, bytes));
  head.header = command_header();
  head.file = command.file;
  head.from_file = extra.from_file;
  head.size = command.size;
  head.option_size = extra.option_size;
  const std::size_t sent = std::min(command.size, kRdmaCmBytes);
  const std::size_t option = std::min<std::size_t>(extra.option_size, kRdmaCmBytes);
  iovec parts[] = {part(&head, sizeof head), part(command.data, sent),
                   part(kZeros, kRdmaCmBytes - sent), part(extra.option, option),
                   part(kZeros, kRdmaCmBytes - option)};
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

// Whether commands poll for their answers: threads share the state, and one may overwrite
// another's.
std::atomic<platform::BriefPolling> command_polling;
static_assert(decltype(command_polling)::is_always_lock_free);

ssize_t wait_for_answer(int socket, iovec* parts, std::size_t count, int flags) {
  platform::BriefPolling polling = command_polling.load(std::memory_order_relaxed);
  const ssize_t got = os::receive_briefly(
      polling, [&](int more) { return sys::receive_parts(socket, parts, count, flags | more); });
  command_polling.store(polling, std::memory_order_relaxed);
  return got;
}

constexpr std::size_t kHead = sizeof(ReplyHeader) + offsetof(RdmaCmOut, bytes);

void* pointer_of(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the ABI has pointers as 64-bit integers
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

void* place_of(const RdmaCmOut& out) {
  return pointer_of(out.address);
}

// Where the data of an answer go is in the answer: it is looked at before it is received.
int receive_twice(int socket, Answer& answer) {
  iovec parts[] = {{&answer, kHead}, {}};
  if (wait_for_answer(socket, parts, 1, MSG_PEEK) != kHead || answer.header.status != 0) return EIO;
  if (answer.out.size == 0) {
    return sys::receive_parts(socket, parts, 1, 0) == kHead ? 0 : EIO;
  }
  parts[1] = {place_of(answer.out), answer.out.size};
  const ssize_t whole = static_cast<ssize_t>(kHead + answer.out.size);
  if (sys::receive_parts(socket, parts, 2, 0) == whole) return 0;
  return errno == EFAULT ? EFAULT : EIO;
}

// An answer of `got` bytes (or a failure): its data go to where the program wants them. Returns an
// error number.
int take_answer(const Command& command, Answer& answer, ssize_t got) {
  if (got < static_cast<ssize_t>(kHead) || answer.header.status != 0) return EIO;
  const std::size_t size = answer.out.size;
  if (size > answer.out.bytes.size() || got < static_cast<ssize_t>(kHead + size)) return EIO;
  if (size == 0) return 0;
  return copy_to(command, place_of(answer.out), answer.out.bytes.data(), size) ? 0 : EFAULT;
}

// In one call, where the kernel may copy the data to the program afterwards.
int receive_answer(int socket, const Command& command, Answer& answer) {
  if (!command.may_copy) return receive_twice(socket, answer);
  iovec all{&answer, sizeof answer};
  return take_answer(command, answer, wait_for_answer(socket, &all, 1, 0));
}

// Writes the request into the mailbox. Returns false if the program has no such memory: the kernel
// finds out what to say of it, as the command goes through the socket.
bool write_request(os::ClientMailbox& mailbox, const Command& command, const Extra& extra) {
  struct {
    RequestHeader header;
    RdmaCmIn in;
  } request{};
  static_assert(sizeof request == kRequestBytes && kRequestBytes <= os::MailboxPage::kRequestBytes);
  request.header = command_header();
  request.in.file = command.file;
  request.in.from_file = extra.from_file;
  request.in.size = command.size;
  request.in.option_size = extra.option_size;
  request.in.flags =
      rdma_cm_in_flag::kTakesAhead | (command.may_wait ? rdma_cm_in_flag::kMayWait : 0);
  if (!command.is_copied) return false;
  std::memcpy(request.in.bytes.data(), command.copy.data(), std::min(command.size, kRdmaCmBytes));
  const std::size_t option = std::min<std::size_t>(extra.option_size, kRdmaCmBytes);
  if (option != 0 && copy_from(command, request.in.option.data(), extra.option, option) !=
                         static_cast<ssize_t>(option)) {
    return false;
  }
  std::memcpy(mailbox.request(), &request, sizeof request);
  return true;
}

template <class Receive>
os::ClientMailbox::Waited wait_in_mailbox(os::ClientMailbox& mailbox, bool for_event,
                                          Receive&& receive) {
  if (for_event) return mailbox.wait_long(platform::BriefPolling::kShortSleep, receive);
  platform::BriefPolling polling = command_polling.load(std::memory_order_relaxed);
  const auto waited = mailbox.wait(polling, receive);
  command_polling.store(polling, std::memory_order_relaxed);
  return waited;
}

// Returns nothing if the command has to go through the socket, which is another one then if that of
// the mailbox is dead.
std::optional<int> exchange_in_mailbox(CommandConnection& connection, const Command& command,
                                       const Extra& extra, Answer& answer) {
  os::ClientMailbox& mailbox = connection.mailbox();
  if (!command.may_copy || !mailbox.takes(kRequestBytes)) return std::nullopt;
  if (!write_request(mailbox, command, extra)) return std::nullopt;
  if (!mailbox.is_watched() && !connection.is_still_there()) {
    connection.renew();
    return std::nullopt;
  }
  const char bell = 0;
  if (mailbox.post(kRequestBytes) &&
      (!connection.is_still_there() ||
       sys::send(connection.socket(), &bell, os::kBellBytes) != os::kBellBytes)) {
    connection.renew();
    return std::nullopt;
  }
  iovec all{&answer, sizeof answer};
  const auto receive = [&](int more) {
    if (connection.is_still_there()) return sys::receive_parts(connection.socket(), &all, 1, more);
    errno = EBADF;  // whether it was carried out is not known
    return ssize_t{-1};
  };
  const auto waited = wait_in_mailbox(mailbox, command.may_wait, receive);
  // Also if softibd had carried it out before it ended: the file has ended with it.
  if (!waited.in_mailbox && (waited.got == 0 || (waited.got < 0 && errno == ECONNRESET))) {
    connection.renew();
    return std::nullopt;
  }
  if (!waited.in_mailbox) return take_answer(command, answer, waited.got);
  const std::span<const std::byte> bytes = mailbox.answer();
  const std::size_t size = std::min(bytes.size(), sizeof answer);
  std::memcpy(&answer, bytes.data(), size);
  if (answer.out.ahead_size != 0 && answer.out.ahead_size == bytes.size() - size) {
    if (AnswersAhead* ahead = of_this_process<AnswersAhead>()) {
      ahead->keep(command.turn, command.file, bytes.subspan(size));
    }
  }
  return take_answer(command, answer, static_cast<ssize_t>(size));
}

// Returns 0 if softibd has executed the command (or needs more for it), or an error number.
int exchange(Command& command, const Extra& extra, Answer& answer) {
  if (AnswersAhead* ahead = of_this_process<AnswersAhead>()) {
    command.turn = ahead->command_follows();
  }
  CommandConnection connection(command.process);
  const auto none = [&connection] {
    return connection.why() == remote::Reply::NoDescriptor ? EMFILE : EIO;
  };
  if (const auto done = exchange_in_mailbox(connection, command, extra, answer)) {
    if (*done == 0) connection.keep();
    return *done;
  }
  if (!connection.is_still_there()) connection.renew();
  if (connection.socket() < 0) return none();
  int error = send_command(connection.socket(), command, extra);
  if (error == EIO && connection.was_kept()) {  // it is dead: the request was not sent
    connection.renew();
    if (connection.socket() < 0) return none();
    error = send_command(connection.socket(), command, extra);
  }
  if (error == 0) error = receive_answer(connection.socket(), command, answer);
  if (error == 0) connection.keep();
  return error;
}

// One message that said that there are events, unless the descriptor, which was not held during the
// command, is closed by now or another file's.
void take_notice(HeldFile& held, int fd, std::uint32_t file) {
  if (!held.holds()) {
    held.hold(fd);
    if (fds::device(fd) != &kRdmaCm || fds::find(fd).number != file) return;
  }
  char byte;
  iovec parts[] = {{&byte, sizeof byte}};
  static_cast<void>(sys::receive_parts(held.fd(), parts, 1, MSG_DONTWAIT));
}

// Copies the command. Returns its number, or 0 if it cannot be read: then the kernel finds out why,
// as it sends the command.
std::uint32_t code_of(Command& command) {
  std::uint32_t code = 0;
  if (command.size < sizeof code) return 0;
  const std::size_t all = std::min(command.size, kRdmaCmBytes);
  // Fails or ends early, and raises no signal, if the program has no such memory.
  const ssize_t got = copy_from(command, command.copy.data(), command.data, all);
  command.may_copy = got >= static_cast<ssize_t>(sizeof code);
  command.is_copied = got == static_cast<ssize_t>(all);
  if (command.may_copy) std::memcpy(&code, command.copy.data(), sizeof code);
  return code;
}

// Fills in what softibd needs. Returns an error number.
int add(const RdmaCmOut& out, Extra& extra) {
  if (out.need == RdmaCmNeed::Option) {
    extra.option = pointer_of(out.need_address);
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

// Returns false if the answer did not come with the last event.
bool is_answered_ahead(const Command& command, int& error) {
  AnswersAhead* const ahead = of_this_process<AnswersAhead>();
  if (ahead == nullptr || !command.is_copied || command.size > kRdmaCmBytes) return false;
  std::array<std::uint8_t, sizeof(RdmaCmOut::bytes)> answer;
  const std::size_t size =
      ahead->find(command.file, std::span(command.copy).first(command.size), answer);
  if (size == 0) return false;
  std::uint64_t response = 0;
  std::memcpy(&response, command.copy.data() + sizeof(std::uint64_t), sizeof response);
  error = copy_to(command, pointer_of(response), answer.data(), size) ? 0 : EFAULT;
  return true;
}

// Executes it; GET_EVENT, and only that, is executed again for as long as there is no event.
ssize_t execute(Command& command, int fd, HeldFile& held) {
  Extra extra;
  for (;;) {
    Answer answer{};
    int error = exchange(command, extra, answer);
    if ((answer.out.flags & rdma_cm_flag::kDrained) != 0) take_notice(held, fd, command.file);
    if ((answer.out.flags & rdma_cm_flag::kOldFileDrained) != 0) {
      HeldFile none;
      take_notice(none, extra.from_fd, extra.from_file);
    }
    if (error != 0) return fail(error);
    command.may_wait = false;
    if (answer.out.need != RdmaCmNeed::Nothing) {
      error = add(answer.out, extra);
      if (error != 0) return fail(error);
    } else if (answer.out.result == -EAGAIN) {  // another thread was faster, or its id has ended
      held.hold(fd);
      error = wait_for_event(held);
      if (error != 0) return fail(error);
    } else {
      return answer.out.result == 0 ? static_cast<ssize_t>(command.size) : fail(-answer.out.result);
    }
  }
}

ssize_t write_command(int fd, const void* data, std::size_t size) {
  constexpr std::uint32_t kGetEvent = 12;
  Command command(OwnStack(__builtin_frame_address(0)), fd, data, size);
  HeldFile held;
  // GET_EVENT waits before anything else, and looks for events once one is there.
  const bool waits = code_of(command) == kGetEvent;
  if (waits) held.hold(fd);
  // Another thread may have closed it, or replaced it, before it was held.
  const fds::Entry now = fds::find(fd);
  if (now.device != &kRdmaCm || now.number != command.file) return fail(EBADF);
  command.may_wait = waits && may_wait_in_softibd(held);
  if (waits && !command.may_wait) {
    if (const int error = wait_for_event(held); error != 0) return fail(error);
  }
  if (int error = 0; is_answered_ahead(command, error)) {
    return error == 0 ? static_cast<ssize_t>(size) : fail(error);
  }
  return execute(command, fd, held);
}

// A question that the last event has answered names an id of that file, as no other file's data
// would a moment after.
bool write_ahead(int fd, const void* data, std::size_t size, ssize_t& result) {
  if (size != AnswersAhead::kQuestionBytes) return false;
  Command command(OwnStack(__builtin_frame_address(0)), fd, data, size);
  if (!command.stack.has(data, size)) return false;
  static_cast<void>(code_of(command));
  int error = 0;
  if (!is_answered_ahead(command, error)) return false;
  result = error == 0 ? static_cast<ssize_t>(size) : fail(error);
  return true;
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
                                   .write = write_command,
                                   .write_ahead = write_ahead};

}  // namespace ib::host_abi::preload
