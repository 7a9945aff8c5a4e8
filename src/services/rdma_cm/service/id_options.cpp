// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/id_options.h"

#include <cstring>

namespace ib::services::rdma_cm {
namespace {

template <class T>
std::optional<T> value_of(std::span<const std::uint8_t> bytes) {
  T value{};
  if (bytes.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

std::optional<verbs::QpType> qp_type_of(PortSpace space, std::uint8_t wanted) {
  switch (space) {
    case PortSpace::Tcp: return verbs::QpType::Rc;
    case PortSpace::Udp:
    case PortSpace::Ipoib: return verbs::QpType::Ud;
    case PortSpace::Ib: break;
  }
  const auto type = static_cast<verbs::QpType>(wanted);
  switch (type) {
    case verbs::QpType::Rc:
    case verbs::QpType::Uc:
    case verbs::QpType::Ud:
    case verbs::QpType::XrcSend:
    case verbs::QpType::XrcRecv: return type;
    case verbs::QpType::Smi:
    case verbs::QpType::Gsi: break;
  }
  return std::nullopt;
}

Error set_id_option(Id& id, std::uint32_t name, std::span<const std::uint8_t> value,
                    AddressBinder& binder) {
  const auto byte = value_of<std::uint8_t>(value);
  const auto number = value_of<std::int32_t>(value);
  switch (name) {
    case ucma::kOptionTos:
      if (!byte) return Error::Invalid;
      id.tos = *byte;
      return Error::None;
    case ucma::kOptionReuseAddr:
      if (!number) return Error::Invalid;
      if (id.state != IdState::Idle && (*number == 0 || id.state == IdState::Listen)) {
        return Error::Invalid;
      }
      binder.set_reuse(id, *number != 0);
      return Error::None;
    case ucma::kOptionAfOnly:
      if (!number) return Error::Invalid;
      if (id.state != IdState::Idle && id.state != IdState::AddrBound) return Error::Invalid;
      id.af_only = *number != 0;
      return Error::None;
    case ucma::kOptionAckTimeout:
      if (!byte) return Error::Invalid;
      if (id.qp_type != verbs::QpType::Rc && id.qp_type != verbs::QpType::XrcSend) {
        return Error::Invalid;
      }
      id.ack_timeout = *byte & 0x1f;
      return Error::None;
    default: return Error::NotImplemented;
  }
}

}  // namespace ib::services::rdma_cm
