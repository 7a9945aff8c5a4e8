// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of a device's file: for each code, from the first on, the function of the file that
// gets its input, and the size of its output. A request whose buffers have other sizes does not get
// there.
#pragma once

#include "fabric/model.h"
#include "io/irp.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace ib::services {

template <class File>
struct RequestEntry {
  std::size_t out_size;
  void (*handle)(File&, io::IrpRef);
};

template <auto kHandler>
struct RequestHandler;
template <class File, class In, void (File::*kHandler)(const In&, io::IrpRef)>
struct RequestHandler<kHandler> {
  static void call(File& file, io::IrpRef irp) {
    const auto in = irp->input<In>();
    if (in) return (file.*kHandler)(*in, std::move(irp));
    const std::size_t got = irp->in.size();
    std::move(irp).fail(
        Status::InvalidParameter,
        fmt::format("the input buffer has {} bytes, this request takes {}", got, sizeof(In)));
  }
};
// The function for an entry.
template <auto kHandler>
// NOLINTNEXTLINE(readability-identifier-naming): it reads as a function in the tables
inline constexpr auto with = &RequestHandler<kHandler>::call;

// The device that the requests of a file go to.
struct RequestTarget {
  std::string_view device;  // in words
  const fabric::Hca& hca;
  bool is_gone;           // it was pulled out: objects are destroyed, and nothing else
  std::uint32_t first;    // the code of the table's first entry
  std::uint32_t destroy;  // the code of that
};

template <class File, std::size_t kCodes>
void run_request(const std::array<RequestEntry<File>, kCodes>& table, File& file,
                 const RequestTarget& target, io::IrpRef irp) {
  const std::uint32_t code = irp->code;
  if (code < target.first || code - target.first >= kCodes) {
    return std::move(irp).fail(Status::NotSupported,
                               fmt::format("{} has no request {}", target.device, code));
  }
  if (target.is_gone && code != target.destroy) {
    return std::move(irp).fail(Status::DeviceRemoved,
                               fmt::format("HCA {} was pulled out", target.hca.name));
  }
  const RequestEntry<File>& entry = table[code - target.first];
  if (irp->out.size() < entry.out_size) {
    const std::size_t room = irp->out.size();
    return std::move(irp).fail(
        Status::InvalidParameter,
        fmt::format("the output buffer has {} bytes, the answer {}", room, entry.out_size));
  }
  entry.handle(file, std::move(irp));
}

}  // namespace ib::services
