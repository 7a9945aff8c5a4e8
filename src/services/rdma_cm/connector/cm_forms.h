// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The paths of the rdma_cm service in the form that the communication manager's engine has for
// them, and back.
#pragma once

#include "cm/engine.h"
#include "fabric/model.h"
#include "services/rdma_cm/addresses/path.h"
#include "services/rdma_cm/connector/connector.h"

namespace ib::services::rdma_cm {

cm::Path to_cm(const Path& path);
// Of a request that came to `port`. The path's port is this one.
Path from_cm(const cm::Path& path, const fabric::Port& port, verbs::Mtu mtu);
// The way back to the sender of a MAD.
Path path_to(const cm::MadAddress& sender, const fabric::Port& port);

// The message that waits for an answer in that state.
Unanswered::Kind kind_of(cm::State state);
Unanswered unanswered(Unanswered::Kind kind, const cm::Waiting& waiting);

}  // namespace ib::services::rdma_cm
