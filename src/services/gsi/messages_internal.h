// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Addresses and headers of messages, as the parts of Gsi use them.
#pragma once

#include "mad/peer.h"
#include "mad/rmpp.h"
#include "services/gsi/gsi.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ib::services {

mad::Peer peer_of(std::uint32_t port, const al::MadAddress& remote);

std::string text_of(const al::MadAddress& address);  // "LID 3"

using mad::header_of;
// The message, or as much of it as one packet has.
mad::Mad first_packet(std::span<const std::byte> message);
// Returns whether it goes as several packets, or says that it does.
bool needs_rmpp(std::span<const std::byte> message);

}  // namespace ib::services
