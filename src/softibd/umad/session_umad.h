// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SessionUmad: the open umad or issm device that a connection to softibd is (verbs/control_umad.h):
// MADs on their way to the program, and what its requests bring besides their bytes.
//
// Thread rule: the loop's thread.
#pragma once

#include "io/irp.h"
#include "linux/server/server_connection.h"
#include "services/umad/umad_device.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ib::softib {

class SessionUmad final : public services::UmadReader {
 public:
  explicit SessionUmad(os::ServerConnection& connection) : connection_(connection) {}

  // The number of the file in the session; 0: none is open.
  std::uint32_t file() const { return file_; }
  void set_file(std::uint32_t number) { file_ = number; }

  static bool opens(const io::Irp& irp);
  // A request for the file, or one that opens it: of a long one the bytes are in a file, and
  // `input` gets them.
  Status take(io::Irp& irp, std::vector<std::byte>& input, std::string& reason);
  static os::NativeHandle take_answer_socket(io::Irp& irp);
  // Sends the answer to any request of the session, with its handles: those of an open umad file go
  // to `to`, which may be anything, or nothing.
  void send(const io::Irp& irp, const os::NativeHandle& to, std::span<const std::byte> message,
            std::array<os::NativeHandle, 2> handles = {});

  // services::UmadReader
  bool has_room() const override { return !connection_.has_unsent(); }
  void deliver(services::UmadItem item) override;
  bool has_gone() const override { return connection_.peer_has_gone(); }
  void end() override { connection_.close(); }

 private:
  os::ServerConnection& connection_;
  std::uint32_t file_ = 0;
};

}  // namespace ib::softib
