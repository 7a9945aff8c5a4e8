// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A MAD to the agents of the own port [IBA1 13.5.2], or to those at the end of a directed route, is
// answered in the call that brought it, without a packet, a queue pair or a thread.
#include "drivers/soft_hca/handlers.h"

#include <bit>

namespace ib::drivers {

void local_mad(Core& core, HcaFile& file, const control::MadIn& in, io::IrpRef irp) {
  const fabric::Port* port = find_port(file, in.port);
  if (port == nullptr) {
    return fail(core, std::move(irp), Status::InvalidParameter, no_such_port(file, in.port));
  }
  mad::Mad response{};
  std::string reason;
  const Status status = core.smi.exchange(core.fabric.graph().index_of(*port),
                                          std::bit_cast<mad::Mad>(in.mad), response, reason);
  if (status != Status::Ok) return fail(core, std::move(irp), status, std::move(reason));
  succeed_with(std::move(irp), std::bit_cast<control::MadOut>(response), mad::kMadSize);
}

}  // namespace ib::drivers
