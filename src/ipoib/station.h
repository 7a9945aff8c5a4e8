// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Station: the port and P_Key at which an interface is, and the objects that its queue pairs share.
#pragma once

#include "ulp/ipoib/host.h"
#include "user/hca.h"

#include <cstdint>
#include <memory>

namespace ib::user {
class ServiceChannel;
}

namespace ib::ipoib::driver {

struct Station {
  user::Process& process;
  user::Hca& hca;
  user::ServiceChannel& services;
  const user::CompletionChannel& completions;
  std::uint32_t port = 1;
  Pkey pkey{0xffff};
};

// The objects that the queue pairs of an interface are made with.
struct Objects {
  std::unique_ptr<user::ProtectionDomain> pd;
  std::unique_ptr<user::CompletionQueue> sends;
  std::unique_ptr<user::CompletionQueue> receives;
};

// An address of the engine as a request of a datagram queue pair has it.
inline verbs::AddressVector to_verbs(const AddressVector& to, std::uint32_t port) {
  verbs::AddressVector av;
  av.dlid = static_cast<std::uint16_t>(to.dlid);
  av.sl = to.service_level;
  av.static_rate = to.rate;
  av.port = static_cast<std::uint8_t>(port);
  if (to.has_grh) {
    av.is_global = 1;
    av.dgid = to.dgid.bytes;
    av.flow_label = to.flow_label;
    av.hop_limit = to.hop_limit;
    av.traffic_class = to.traffic_class;
  }
  return av;
}

}  // namespace ib::ipoib::driver
