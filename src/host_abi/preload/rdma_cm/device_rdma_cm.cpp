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
#include "host_abi/preload/device_files/held_file.h"
#include "host_abi/preload/device_files/own_stack.h"
#include "host_abi/preload/device_files/process_page.h"
#include "host_abi/preload/device_kinds.h"
#include "host_abi/preload/fd_table.h"
#include "host_abi/preload/rdma_cm/answers_ahead.h"
#include "host_abi/preload/rdma_cm/command_connection.h"
#include "host_abi/preload/rdma_cm/command_exchange.h"
#include "host_abi/preload/rdma_cm/event_wait.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "linux/process/client_relax.h"

#include <sys/uio.h>

#include <algorithm>
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

// Whether nobody has closed the descriptor of that file since, as far as this library sees.
bool is_still(int fd, std::uint32_t file) {
  const fds::Entry now = fds::find(fd);
  return now.device == &kRdmaCm && now.number == file;
}

// Returns false, and holds nothing, if the descriptor was closed, or is another file's: no call
// held it before.
bool hold(HeldFile& held, int fd, std::uint32_t file) {
  held.hold(fd);
  if (is_still(fd, file) && fds::device(fd) == &kRdmaCm) return true;
  HeldFile::release(&held);
  return false;
}

// One message that said that there are events.
void take_notice(HeldFile& held, int fd, std::uint32_t file) {
  if (!held.holds() && !hold(held, fd, file)) return;
  char byte;
  iovec parts[] = {{&byte, sizeof byte}};
  static_cast<void>(sys::receive_parts(held.fd(), parts, 1, MSG_DONTWAIT));
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
  const std::optional<CommandHead> head = command.head();
  if (ahead == nullptr || !head || command.size > kRdmaCmBytes) return false;
  std::array<std::uint8_t, sizeof(RdmaCmOut::bytes)> answer;
  const std::size_t size =
      ahead->find(command.file, std::span(command.copy).first(command.size), answer);
  if (size == 0) return false;
  error = command.copy_to(pointer_of(head->response), answer.data(), size) ? 0 : EFAULT;
  return true;
}

// Where GET_EVENT wants the event, if it is certain that the program has memory there: an event
// that was taken cannot be given back.
std::optional<std::span<std::byte>> place_of_event(const Command& command) {
  const std::optional<CommandHead> head = command.head();
  if (!head || command.size != sizeof *head) return std::nullopt;
  void* const to = pointer_of(head->response);
  if (!command.stack.has(to, head->out)) return std::nullopt;
  return std::span(static_cast<std::byte*>(to), head->out);
}

// Takes an event that softibd has offered, unless it has withdrawn the offer.
bool takes(const AnswersAhead::Event& event, const Command& command, HeldFile& held, int fd,
           std::span<std::byte> to) {
  CommandConnection connection(command.process);
  const bool has_taken = connection.mailbox().take_offer(event.offer);
  if (connection.was_kept()) connection.keep();
  if (!has_taken) return false;
  std::memcpy(to.data(), event.bytes.data(), event.size);
  if ((event.flags & rdma_cm_flag::kDrained) != 0) take_notice(held, fd, command.file);
  return true;
}

// The one that came with the answer to the last command.
bool takes_event_ahead(const Command& command, int fd) {
  AnswersAhead* const ahead = of_this_process<AnswersAhead>();
  const auto to = place_of_event(command);
  AnswersAhead::Event event;
  HeldFile held;
  return ahead != nullptr && to && ahead->find_event(command.file, to->size(), event) &&
         takes(event, command, held, fd, *to);
}

// The one that came with the notice; and what came with both is good until the next command. A
// notice may be old, but the offer of a notice ends with the next command.
bool takes_event_of(const Notice& notice, const Command& command, HeldFile& held, int fd) {
  AnswersAhead* const ahead = of_this_process<AnswersAhead>();
  const auto to = place_of_event(command);
  const auto answers = std::span(notice.bytes).first(notice.size);
  AnswersAhead::Event event;
  if (ahead == nullptr || !to || !AnswersAhead::read_event(answers, to->size(), event)) {
    return false;
  }
  AnswersAhead::Turn turn = ahead->last_turn();
  if (notice.is_new) turn.since = os::monotonic_now();
  if (!takes(event, command, held, fd, *to)) return false;
  ahead->keep(turn, command.file, answers);
  return true;
}

// Waits for an event. Returns true if it came with its notice, and the program has it; else there
// is an error number, or 0. The frame is large.
[[gnu::noinline]] bool waits_and_takes(HeldFile& held, int fd, const Command& command,
                                       Instant since, int& error) {
  error = EBADF;
  if (!held.holds() && !hold(held, fd, command.file)) return false;
  Notice notice;
  error = wait_for_event(held, since, notice);
  return error == 0 && takes_event_of(notice, command, held, fd);
}

// Before GET_EVENT is sent, which would take two wake-ups more. Returns its result; nothing: it is
// to be sent.
std::optional<ssize_t> result_without_sending(Command& command, HeldFile& held, int fd,
                                              Instant since) {
  command.may_wait = may_wait_in_softibd(fd);
  if (command.may_wait) return std::nullopt;
  int error = 0;
  if (waits_and_takes(held, fd, command, since, error)) return static_cast<ssize_t>(command.size);
  // There may be one without a notice yet.
  const bool is_sent = error == 0 || error == EAGAIN || error == EBADF;
  return is_sent ? std::nullopt : std::optional(fail(error));
}

// Executes it; GET_EVENT, and only that, is executed again for as long as there is no event: the
// descriptor is readable a moment after there is one.
ssize_t execute(Command& command, std::uint32_t code, int fd) {
  const auto whole = static_cast<ssize_t>(command.size);
  HeldFile held;
  Instant since{};
  if (code == kRdmaCmGetEvent) {
    since = os::monotonic_now();
    if (const auto result = result_without_sending(command, held, fd, since)) return *result;
  }
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
    } else if (answer.out.result == -EAGAIN) {
      if (waits_and_takes(held, fd, command, since, error)) return whole;
    } else {
      return answer.out.result == 0 ? whole : fail(-answer.out.result);
    }
    if (error != 0) return fail(error);
  }
}

ssize_t carry_out(Command& command, std::uint32_t code, int fd) {
  int error = 0;
  if (code == kRdmaCmGetEvent && takes_event_ahead(command, fd)) {
    return static_cast<ssize_t>(command.size);
  }
  if (!is_answered_ahead(command, error)) return execute(command, code, fd);
  return error == 0 ? static_cast<ssize_t>(command.size) : fail(error);
}

ssize_t write_command(int fd, const void* data, std::size_t size) {
  const fds::Entry now = fds::find(fd);
  if (now.device != &kRdmaCm) return fail(EBADF);  // another thread has closed it
  Command command(OwnStack(__builtin_frame_address(0)), now.number, data, size);
  return sys::leaving_errno([&] { return carry_out(command, command.read_code(), fd); });
}

// Whether librdmacm has written it, by its form: most data of a file that the descriptor might be
// by now have another one.
bool is_command(const Command& command, std::uint32_t code) {
  const std::optional<CommandHead> head = command.head();
  if (!head || code == 0) return false;
  const bool is_whole = head->in == command.size - offsetof(CommandHead, response);
  if (!is_whole || code != kRdmaCmGetEvent) return is_whole;
  return command.stack.has(pointer_of(head->response), head->out);
}

// Without a look at the descriptor: a command does what it says, or fails if it was none: then the
// descriptor is looked at after all, unless another thread has closed it, whose next file gets none
// of these data.
bool write_ahead(int fd, const void* data, std::size_t size, ssize_t& result) {
  const fds::Entry now = fds::find(fd);
  if (now.device != &kRdmaCm) return false;
  Command command(OwnStack(__builtin_frame_address(0)), now.number, data, size);
  if (size > kRdmaCmBytes || !command.stack.has(data, size)) return false;
  const std::uint32_t code = command.read_code();
  if (!is_command(command, code)) return false;
  result = sys::leaving_errno([&] { return carry_out(command, code, fd); });
  const bool may_be_another = result < 0 && code != kRdmaCmGetEvent && is_still(fd, now.number);
  return !may_be_another || fds::device(fd) == &kRdmaCm;
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
