// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sentences about connections that fail, for `softib trace`: who, why, and what to check. They are
// made when it happens, from the fabric as it is then; numbers of messages have their texts in
// cm/reject_reason.h.
#pragma once

#include "cm/reject_reason.h"
#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/connector/connector.h"

#include <string>
#include <string_view>

namespace ib::services::rdma_cm {

// "127.77.0.2:7471 (node1)"; without the node if no node has the address.
std::string place_text(const fabric::Fabric& fabric, const EndpointAddress& address);

// Why find_way() has returned `error`.
std::string no_way_text(const fabric::Fabric& fabric, const fabric::Node& node,
                        const EndpointAddress& source, const EndpointAddress& destination,
                        ucma::Error error);

// Names the port, cable or partition that keeps messages from going between two ports now; empty:
// nothing does. `to` is null if no port has the address.
std::string obstacle_text(const fabric::Fabric& fabric, const fabric::Port& from,
                          const fabric::Port* to);

// "refuses the connection: nobody listens ... (reason 8, invalid service ID); check whether ..."
std::string rejection_text(std::uint16_t reason);
std::string datagram_refusal_text(std::uint32_t status);
// The same for a cause of which the number says less:
// "refuses the connection: rping (pid 811) has ended before ... (reason 28, consumer reject)".
std::string rejection_text(std::uint16_t reason, std::string_view cause);
std::string datagram_refusal_text(std::uint32_t status, std::string_view cause);

// "REQ (sent 16 times)"
std::string message_text(const Unanswered& message);

// An address that a program cannot bind to: "10.1.2.3 is not an address of node0, which has ...".
std::string not_own_text(const fabric::Node& node, const EndpointAddress& address);

}  // namespace ib::services::rdma_cm
