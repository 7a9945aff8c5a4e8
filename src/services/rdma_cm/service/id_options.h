// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Choices of a program for an id: the type of its queue pair, and the options of level
// RDMA_OPTION_ID.
#pragma once

#include "services/rdma_cm/service/address_binder.h"
#include "services/rdma_cm/service/ids.h"

#include <cstdint>
#include <optional>
#include <span>

namespace ib::services::rdma_cm {

// The queue pairs of a port space; of "IB" the program says which. Returns nothing if these are
// none that connect.
std::optional<verbs::QpType> qp_type_of(PortSpace space, std::uint8_t wanted);

Error set_id_option(Id& id, std::uint32_t name, std::span<const std::uint8_t> value,
                    AddressBinder& binder);

}  // namespace ib::services::rdma_cm
