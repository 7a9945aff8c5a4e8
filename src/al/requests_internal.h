// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of the access layer: how they are filled in, and where they are sent.
#pragma once

#include "al/system.h"
#include "io/client_file.h"
#include "io/irp.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ib::al {

template <class Code>
void prepare(io::IrpRef& irp, Code code, std::span<const std::byte> in, std::span<std::byte> out) {
  irp->requestor_mode = io::RequestorMode::Kernel;
  irp->code = static_cast<std::uint32_t>(code);
  irp->in = in;
  irp->out = out;
  irp->reason.clear();  // of the request that it was before
}

// A file that has not been closed, but is not open.
inline std::string state_of(const char* what, const io::ClientFile& file) {
  const bool opening = file.state() <= io::ClientFile::State::Open;
  return std::string(what) + " is being " + (opening ? "opened" : "closed");
}

// The verifier sends a request on to the device of its file.
inline io::DeviceObject& way_to(const System& system, io::DeviceObject& device) {
  return system.verifier != nullptr ? *system.verifier : device;
}

}  // namespace ib::al
