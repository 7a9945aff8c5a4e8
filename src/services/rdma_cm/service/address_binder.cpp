// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/address_binder.h"

#include "services/rdma_cm/addresses/interface_places.h"
#include "services/rdma_cm/words/words.h"

#include <fmt/format.h>

#include <optional>

namespace ib::services::rdma_cm {
namespace {

constexpr const char* kNoScope =
    "a link-local address needs its sin6_scope_id, which is 0 (EINVAL); getaddrinfo() sets it for "
    "\"fe80::1%lo\"";

// The address that an AF_IB id has with its port: the whole service id.
void complete(EndpointAddress& address, PortSpace space) {
  if (address.family != Family::Ib) return;
  const std::uint64_t beyond_port = service_id(space, std::uint16_t{0});
  address.service_id = beyond_port | address.port;
  address.service_mask = ~std::uint64_t{0};
}

}  // namespace

Error AddressBinder::bind(Id& id, EndpointAddress address) {
  if (id.state != IdState::Idle) return Error::Invalid;
  if (lacks_scope(address)) {
    trace_.report(id, fmt::format("cannot bind to {}: ", text_of(address)), kNoScope);
    return Error::Invalid;
  }
  const fabric::Node& node = fabric_.nodes()[id.node];
  const fabric::Port* port = nullptr;
  if (!takes_any_address(address)) {
    if (!has_address(fabric_, node, address)) {
      trace_.report(id, "cannot bind: ", not_own_text(node, address));
      return address.family == Family::Ib ? Error::NoDevice : Error::NoAddress;
    }
    port = port_of(fabric_, node, address);
    if (port == nullptr) {
      trace_.report(id, fmt::format("cannot bind to {}: ", text_of(address)),
                    no_way_text(fabric_, node, address, address, Error::NoDevice));
      return Error::NoDevice;
    }
  }
  const auto space =
      address.family == Family::Ib ? port_space_of(id.space, address) : std::optional(id.space);
  if (!space) return Error::NoProtocol;
  PortOwner owner;
  owner.id = id.number;
  owner.address = address;
  owner.reuse = id.reuse;
  owner.af_only = id.af_only || address.family == Family::Ipv4;
  const Error error = ports_.bind(id.node, *space, owner);
  id.port_space = *space;
  if (error != Error::None) return trace_.report_address_in_use(id, error, address);
  complete(owner.address, *space);
  id.af_only = owner.af_only;
  id.source = owner.address;
  id.has_port = true;
  id.port = port;
  const fabric::IpInterface* interface = interface_of(fabric_, node, address);
  if (interface != nullptr) id.pkey = interface->pkey;
  id.state = IdState::AddrBound;
  return Error::None;
}

Error AddressBinder::listen(Id& id, std::uint32_t backlog) {
  if (id.state == IdState::Idle) {
    const Error error = bind(id, any_address(Family::Ipv4));
    if (error != Error::None) return error;
  }
  if (id.state != IdState::AddrBound) return Error::Invalid;
  const Error error = ports_.listen(id.node, id.port_space, id.source.port, id.number);
  if (error != Error::None) return trace_.report_address_in_use(id, error, id.source);
  id.reuse = false;
  id.backlog = backlog > 0 && backlog < kMaxBacklog ? backlog : kMaxBacklog;
  id.requests = cm::WaitingRoom::of_backlog(id.backlog);
  id.state = IdState::Listen;
  return Error::None;
}

void AddressBinder::set_reuse(Id& id, bool reuse) {
  id.reuse = reuse;
  if (id.has_port) ports_.set_reuse(id.node, id.port_space, id.source.port, id.number, reuse);
}

void AddressBinder::release(const Id& id) {
  if (id.has_port) ports_.release(id.node, id.port_space, id.source.port, id.number);
}

}  // namespace ib::services::rdma_cm
