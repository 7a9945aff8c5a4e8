// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Refusal: why something that was begun is being taken down again.
#pragma once

#include "base/result.h"
#include "io/irp.h"

#include <string>
#include <utility>

namespace ib::al {

struct Refusal {
  Status status = Status::Ok;  // Ok: it is taken down because somebody wants it
  std::string reason;

  // Ends the request that began it, or the one to take it down.
  void end(io::IrpRef irp) && {
    if (status == Status::Ok) return std::move(irp).complete(Status::Ok);
    std::move(irp).fail(status, std::move(reason));
  }
};

}  // namespace ib::al
