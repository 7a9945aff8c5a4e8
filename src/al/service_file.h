// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServiceFile: a file of an open CA on the device of one of softibd's services; what Cm (cm.h) and
// Sa (sa.h) have in common. The requests are theirs.
//
// close() ends all that the client has there: requests with Cancelled; nothing is called back
// afterwards. When the HCA is pulled out, all requests end with DeviceRemoved.
//
// Thread rule: the executor's thread, dispatch level. Nothing here blocks.
#pragma once

#include "al/al.h"
#include "base/buffers.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace ib::al {

// Create.
struct ServiceOpenIn {
  std::uint32_t ca_index = 0;     // OpenOut::ca_index
  std::array<char, 64> driver{};  // its name, for people; ends with zero
};

class IB_DRIVER_API ServiceFile {
 public:
  ServiceFile(const ServiceFile&) = delete;
  ServiceFile& operator=(const ServiceFile&) = delete;

  // The CA is open; it is closed after this. NotSupported: this softibd has no such service.
  void open(io::IrpRef irp);
  void close(io::IrpRef irp);
  bool is_open() const { return file_ && file_->is_open(); }

 protected:
  // `device`: that of the service; `what`: it, for people.
  ServiceFile(Ca& ca, io::DeviceObject* System::*device, const char* what)
      : ca_(ca), device_(device), what_(what) {}
  ~ServiceFile() { IB_ASSERT(!file_); }

  // The buffers live until the request has ended.
  void send_code(std::uint32_t code, std::span<const std::byte> in, std::span<std::byte> out,
                 io::IrpRef irp);
  template <class Code, class In, class Out>
  void call(Code code, const In& in, Out& out, io::IrpRef irp) {
    send_code(static_cast<std::uint32_t>(code), bytes_of(in), room_of(out), std::move(irp));
  }
  template <class Code, class In>
  void call(Code code, const In& in, io::IrpRef irp) {
    send_code(static_cast<std::uint32_t>(code), bytes_of(in), {}, std::move(irp));
  }

 private:
  static void opened(io::IrpRef irp, void* context);
  static void returned(io::IrpRef irp, void* context);
  static void closed(io::IrpRef irp, void* context);
  void send_close();

  Ca& ca_;
  io::DeviceObject* System::*device_;
  const char* what_;
  ServiceOpenIn open_in_;
  unsigned returning_ = 0;  // requests whose originator is being called
  std::optional<io::ClientFile> file_;
};

}  // namespace ib::al
