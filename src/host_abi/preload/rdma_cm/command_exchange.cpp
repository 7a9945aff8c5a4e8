// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/rdma_cm/command_exchange.h"

#include "host_abi/preload/device_files/process_page.h"
#include "host_abi/preload/rdma_cm/answers_ahead.h"
#include "host_abi/preload/rdma_cm/command_connection.h"
#include "host_abi/preload/remote.h"
#include "host_abi/preload/system_calls.h"
#include "linux/client/brief_receive.h"

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

namespace ib::host_abi::preload {
namespace {

using namespace verbs::control;

constexpr std::size_t kMostRequestBytes = sizeof(RequestHeader) + sizeof(RdmaCmIn);
static_assert(kMostRequestBytes <= os::MailboxPage::kRequestBytes);

// All but the data of a request of that size.
struct RequestHead {
  RequestHeader header;
  RdmaCmHead in;
};
static_assert(sizeof(RequestHead) == sizeof(RequestHeader) + offsetof(RdmaCmIn, bytes));

RequestHead head_of(const Command& command, const Extra& extra, std::size_t size) {
  RequestHead head;
  head.header = {static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(Code::RdmaCm), 1, 0,
                 0};
  head.in.file = command.file;
  head.in.from_file = extra.from_file;
  head.in.size = command.size;
  head.in.option_size = extra.option_size;
  return head;
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

int send_command(int socket, const Command& command, const Extra& extra) {
  const RequestHead head = head_of(command, extra, kMostRequestBytes);
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

// Whether commands poll for their answers: threads share the state, and one may overwrite
// another's. Relaxed, since it is a guess.
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
  return command.copy_to(place_of(answer.out), answer.out.bytes.data(), size) ? 0 : EFAULT;
}

// In one call, where the kernel may copy the data to the program afterwards.
int receive_answer(int socket, const Command& command, Answer& answer) {
  if (!command.may_copy) return receive_twice(socket, answer);
  iovec all{&answer, sizeof answer};
  return take_answer(command, answer, wait_for_answer(socket, &all, 1, 0));
}

// Writes the request into the mailbox. Returns its size, or 0 if the program has no such memory:
// the kernel finds out what to say of it, as the command goes through the socket.
std::size_t write_request(os::ClientMailbox& mailbox, const Command& command, const Extra& extra) {
  if (!command.is_copied) return 0;
  std::byte* const data = mailbox.request() + sizeof(RequestHead);
  const std::size_t bytes = std::min(command.size, kRdmaCmBytes);
  std::size_t size = sizeof(RequestHead) + bytes;
  std::memcpy(data, command.copy.data(), bytes);
  const std::size_t option = std::min<std::size_t>(extra.option_size, kRdmaCmBytes);
  if (option != 0) {
    std::memset(data + bytes, 0, kRdmaCmBytes - bytes);
    if (copy_from(command, data + kRdmaCmBytes, extra.option, option) !=
        static_cast<ssize_t>(option)) {
      return 0;
    }
    size = sizeof(RequestHead) + kRdmaCmBytes + option;
  }
  RequestHead head = head_of(command, extra, size);
  head.in.flags = rdma_cm_in_flag::kTakesAhead | (command.may_wait ? rdma_cm_in_flag::kMayWait : 0);
  std::memcpy(mailbox.request(), &head, sizeof head);
  return size;
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
  if (!command.may_copy || !mailbox.takes(kMostRequestBytes)) return std::nullopt;
  if (command.may_wait && !mailbox.is_watched()) {
    // softibd sleeps: woken for this, it would find nothing to do and not wait.
    answer.out.result = -EAGAIN;
    return 0;
  }
  const std::size_t size = write_request(mailbox, command, extra);
  if (size == 0) return std::nullopt;
  if (!mailbox.is_watched() && !connection.is_still_there()) {
    connection.renew();
    return std::nullopt;
  }
  const char bell = 0;
  if (mailbox.post(size) &&
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
  const std::size_t first = std::min(bytes.size(), sizeof answer);
  std::memcpy(&answer, bytes.data(), first);
  if (answer.out.ahead_size != 0 && answer.out.ahead_size == bytes.size() - first) {
    if (AnswersAhead* ahead = of_this_process<AnswersAhead>()) {
      ahead->keep({command.turn, os::monotonic_now()}, command.file, bytes.subspan(first));
    }
  }
  return take_answer(command, answer, static_cast<ssize_t>(first));
}

}  // namespace

Command::Command(OwnStack of_caller, std::uint32_t of_file, const void* bytes, std::size_t count)
    : data(bytes),
      size(count),
      file(of_file),
      process(CommandConnection::this_process()),
      stack(of_caller) {}

std::uint32_t Command::read_code() {
  std::uint32_t code = 0;
  if (size < sizeof code) return 0;
  const std::size_t all = std::min(size, kRdmaCmBytes);
  // Fails or ends early, and raises no signal, if the program has no such memory.
  const ssize_t got = copy_from(*this, copy.data(), data, all);
  may_copy = got >= static_cast<ssize_t>(sizeof code);
  is_copied = got == static_cast<ssize_t>(all);
  if (may_copy) std::memcpy(&code, copy.data(), sizeof code);
  return code;
}

std::optional<CommandHead> Command::head() const {
  CommandHead head;
  if (!is_copied || size < sizeof head) return std::nullopt;
  std::memcpy(&head, copy.data(), sizeof head);
  return head;
}

bool Command::copy_to(void* to, const void* from, std::size_t count) const {
  if (!stack.has(to, count)) {
    return sys::write_own_memory(process, {to, count}, part(from, count)) ==
           static_cast<ssize_t>(count);
  }
  std::memcpy(to, from, count);
  return true;
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

}  // namespace ib::host_abi::preload
