// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/device_files/session_umad.h"

#include "linux/server/memory_file.h"
#include "linux/server/server_message_io.h"
#include "softibd/daemon_request.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace ib::softib {

namespace control = verbs::control;
using control::UmadCode;

bool SessionUmad::opens(const io::Irp& irp) {
  return irp.code == static_cast<std::uint32_t>(UmadCode::Open);
}

Status SessionUmad::take(io::Irp& irp, std::vector<std::byte>& input, std::string& reason) {
  if (opens(irp) == (file_ != 0)) {
    reason = file_ != 0 ? "this connection is an open umad device already"
                        : "this connection is no open umad device";
    return Status::InvalidState;
  }
  if (irp.code != static_cast<std::uint32_t>(UmadCode::Send) || !irp.in_handles[1].valid()) {
    return Status::Ok;
  }
  const os::NativeHandle file = std::move(irp.in_handles[1]);
  auto bytes = os::read_bytes_file(file, control::kUmadMostWritten, reason);
  if (!bytes) return bytes.error();
  input = *std::move(bytes);
  irp.in = input;
  return Status::Ok;
}

os::NativeHandle SessionUmad::take_answer_socket(io::Irp& irp) {
  if (irp.code == static_cast<std::uint32_t>(UmadCode::PutBack)) return {};
  return std::move(irp.in_handles[0]);
}

void SessionUmad::send(const io::Irp& irp, const os::NativeHandle& to,
                       std::span<const std::byte> message,
                       std::array<os::NativeHandle, 2> handles) {
  // A connection that is no umad device brings no MADs: even requests of one are answered in it.
  if (file_ == 0 || !control::is_umad(irp.code) || opens(irp)) {
    return connection_.send(message, std::move(handles));
  }
  if (to.valid()) static_cast<void>(os::send_message(to.get(), message, {}));
}

void SessionUmad::deliver(services::UmadItem item) {
  std::array<os::NativeHandle, 2> handles;
  const std::size_t most = item.message.header_size + control::kUmadMadBytes;
  if (item.file.valid()) {
    handles[0] = std::move(item.file);
  } else if (item.bytes.size() > most) {
    std::string reason;
    auto file = os::make_bytes_file("softib-mad", item.bytes, reason);
    if (!file) return;  // no memory or descriptor for it: it is lost, as in the kernel
    handles[0] = *std::move(file);
  }
  std::array<std::byte, sizeof(control::ReplyHeader) + control::kMostUmadMessage> buffer;
  const std::size_t bytes = std::min(item.bytes.size(), most);
  std::byte* at = buffer.data() + sizeof(control::ReplyHeader);
  std::memcpy(at, &item.message, sizeof item.message);
  std::copy_n(item.bytes.begin(), bytes, at + sizeof item.message);  // there may be none
  const auto message =
      std::span(buffer).first(sizeof(control::ReplyHeader) + sizeof item.message + bytes);
  finish_reply({}, message);
  connection_.send(message, std::move(handles));
}

}  // namespace ib::softib
