// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The forms that the address of a TCP socket has in softibd, and what it means.
#pragma once

#include "fabric/model.h"
#include "platform/stream_host.h"
#include "services/rdma_cm/command/endpoint_address.h"
#include "verbs/control_streams.h"

#include <string>

namespace ib::services {

platform::TcpName name_of(const verbs::control::StreamAddress& address);
verbs::control::StreamAddress address_of(const platform::TcpName& name);
rdma_cm::EndpointAddress endpoint_of(const platform::TcpName& name);
std::string text_of(const platform::TcpName& name);  // "127.77.0.2:5000"

// Returns the node that has the address, as a program of `node` means it, or nullptr: loopback and
// wildcard addresses are its own.
const fabric::Node* node_of(const fabric::Fabric& fabric, const fabric::Node& node,
                            const platform::TcpName& name);
// The address for which a way is looked for: of loopback addresses that of the node.
rdma_cm::EndpointAddress destination_of(const fabric::Node& node, const fabric::Node& peer,
                                        const platform::TcpName& name);

}  // namespace ib::services
