// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NodeRecord [IBA1 15.2.5.2]: NodeInfo and description of the node at a LID; PortInfoRecord
// [IBA1 15.2.5.3]: the PortInfo of a port. They hold the attributes of SMPs (mad/smp.h).
#pragma once

#include "mad/smp.h"
#include "sa/records/field.h"

namespace ib::sa {

struct NodeRecord {
  static constexpr std::size_t kSize = 108;

  std::uint16_t lid = 0;
  mad::NodeInfo info;
  std::array<std::uint8_t, 64> description{};  // UTF-8
};

struct PortInfoRecord {
  static constexpr std::size_t kSize = 68;

  std::uint16_t lid = 0;
  std::uint8_t port = 0;
  std::uint8_t options = 0;
  mad::PortInfo info;
};

// A structure of bytes in network order is a field like an array of bytes.
template <class T>
auto& as_bytes_of(T& structure) {
  using Bytes = std::array<std::uint8_t, sizeof(T)>;
  static_assert(alignof(T) == 1 && std::is_trivially_copyable_v<T>);
  if constexpr (std::is_const_v<T>) {
    return reinterpret_cast<const Bytes&>(structure);
  } else {
    return reinterpret_cast<Bytes&>(structure);
  }
}

template <RecordOf<NodeRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(Field{0, 0, 16}, record.lid);
  visit(whole(4, sizeof record.info), as_bytes_of(record.info));
  visit(whole(44, 64), record.description);
}

template <RecordOf<PortInfoRecord> Record, class Visitor>
void visit_fields(Record& record, const Visitor& visit) {
  visit(Field{0, 0, 16}, record.lid);
  visit(Field{2, 0, 8}, record.port);
  visit(Field{3, 0, 8}, record.options);
  visit(whole(4, sizeof record.info), as_bytes_of(record.info));
}

// Bits of the component masks that requests of ours use.
namespace node_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kNodeType = 1u << 4;
inline constexpr std::uint64_t kNodeGuid = 1u << 7;
inline constexpr std::uint64_t kPortGuid = 1u << 8;
}  // namespace node_component
namespace port_info_component {
inline constexpr std::uint64_t kLid = 1u << 0;
inline constexpr std::uint64_t kPort = 1u << 1;
inline constexpr std::uint64_t kCapabilityMask = 1u << 7;
inline constexpr std::uint64_t kState = 1u << 15;
inline constexpr std::uint64_t kCapabilityMask2 = std::uint64_t{1} << 53;
}  // namespace port_info_component

}  // namespace ib::sa
