// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests for completion channels and backings of a process, and their end with it.
#pragma once

#include "drivers/soft_hca/core.h"

namespace ib::drivers {

void create_channel(Core& core, Session& session, io::IrpRef irp);
void destroy_channel(Core& core, Session& session, const control::IndexIn& in, io::IrpRef irp);
void get_channel(Core& core, Session& session, const control::GenerationIn& in, io::IrpRef irp);
void create_backing(Core& core, Session& session, const control::BackingIn& in, io::IrpRef irp);
void destroy_backing(Core& core, Session& session, const control::IndexIn& in, io::IrpRef irp);
void get_backing(Core& core, Session& session, const control::GenerationIn& in, io::IrpRef irp);
void release_channels_and_backings(Core& core, Session& session);

}  // namespace ib::drivers
