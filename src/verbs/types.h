// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The vocabulary of verbs that both sides of the user/driver boundary share [IBA1 ch. 11].
//
// Numbers equal those of the Linux verbs ABI (rdma/ib_user_verbs.h, infiniband/verbs.h), so that
// the libibverbs provider converts by cast; host_abi/ asserts that they do.
#pragma once

#include <array>
#include <cstdint>

namespace ib::verbs {

using Gid = std::array<std::uint8_t, 16>;

// Smi and Gsi: queue pairs 0 and 1 of a port [IBA1 3.9.2]; for kernel clients.
enum class QpType : std::uint32_t {
  Smi = 0,
  Gsi = 1,
  Rc = 2,
  Uc = 3,
  Ud = 4,
  XrcSend = 9,
  XrcRecv = 10
};
constexpr bool is_special(QpType type) {
  return type == QpType::Smi || type == QpType::Gsi;
}
// Each of its requests names its destination.
constexpr bool is_datagram(QpType type) {
  return type == QpType::Ud || is_special(type);
}

// Nobody acknowledges its messages [IBA1 9.8].
constexpr bool is_unreliable(QpType type) {
  return type == QpType::Uc || is_datagram(type);
}
// Of the queue pair at the other end of a connection [IBA1 annex A14 for XRC].
constexpr QpType peer_type(QpType type) {
  if (type == QpType::XrcSend) return QpType::XrcRecv;
  return type == QpType::XrcRecv ? QpType::XrcSend : type;
}

// Q_Keys with this bit are controlled [IBA1 10.2.5]: a request that names one sends that of its own
// queue pair, whose program was allowed to give it one.
inline constexpr std::uint32_t kControlledQkey = 0x80000000u;
inline constexpr std::uint32_t kGsiQkey = 0x80010000u;  // of every queue pair 1 [IBA1 3.5.3]

// Returns whether ports with these P_Keys may communicate: the same partition, and not two limited
// members (top bit 0) of it [IBA1 10.9.1.1, 10.9.3].
constexpr bool share_partition(std::uint16_t a, std::uint16_t b) {
  return ((a ^ b) & 0x7fff) == 0 && ((a | b) & 0x8000) != 0;
}

// The P_Key of the partition with the bit of full membership, which MGIDs and addresses of IP over
// InfiniBand have whatever the port is [RFC 4391 4].
constexpr std::uint16_t as_full_member(std::uint16_t pkey) {
  return static_cast<std::uint16_t>(pkey | 0x8000u);
}

inline constexpr std::uint32_t kGrhBytes = 40;   // Global Route Header [IBA1 8.3]
inline constexpr std::uint32_t kMadBytes = 256;  // every management datagram [IBA1 13.4.2]

enum class QpState : std::uint32_t { Reset, Init, Rtr, Rts, Sqd, Sqe, Error };
// Takes what comes in [IBA1 10.3.1].
constexpr bool receives(QpState state) {
  return state == QpState::Rtr || state == QpState::Rts || state == QpState::Sqd ||
         state == QpState::Sqe;
}

enum class MigState : std::uint32_t { Migrated, Rearm, Armed };

enum class SrqType : std::uint32_t { Basic = 0, Xrc = 1 };

enum class Mtu : std::uint32_t { B256 = 1, B512, B1024, B2048, B4096 };
constexpr std::uint32_t mtu_bytes(Mtu mtu) {  // 4096 for no Mtu
  return mtu >= Mtu::B256 && mtu <= Mtu::B4096 ? 128u << static_cast<std::uint32_t>(mtu) : 4096u;
}

// Numbers of IBV_LINK_LAYER_*.
enum class LinkLayer : std::uint32_t { Unspecified = 0, InfiniBand, Ethernet };
// The kind of network in which a GID is an address; numbers of ibv_gid_type.
enum class GidType : std::uint32_t { InfiniBand = 0, RoceV1, RoceV2 };

enum class PortState : std::uint32_t { Nop = 0, Down, Init, Armed, Active, ActiveDefer };

// Access flags of memory regions, windows and queue pairs.
namespace access {
inline constexpr std::uint32_t kLocalWrite = 1;
inline constexpr std::uint32_t kRemoteWrite = 1u << 1;
inline constexpr std::uint32_t kRemoteRead = 1u << 2;
inline constexpr std::uint32_t kRemoteAtomic = 1u << 3;
inline constexpr std::uint32_t kMwBind = 1u << 4;
inline constexpr std::uint32_t kZeroBased = 1u << 5;
inline constexpr std::uint32_t kOnDemand = 1u << 6;
inline constexpr std::uint32_t kHugeTlb = 1u << 7;
inline constexpr std::uint32_t kFlushGlobal = 1u << 8;
inline constexpr std::uint32_t kFlushPersistent = 1u << 9;
inline constexpr std::uint32_t kRelaxedOrdering = 1u << 20;  // first of the optional range 20..29
inline constexpr std::uint32_t kOptionalRange = 0x3ff00000u;
inline constexpr std::uint32_t kRemoteAny = kRemoteWrite | kRemoteRead | kRemoteAtomic;
}  // namespace access

enum class WrOpcode : std::uint32_t {
  RdmaWrite = 0,
  RdmaWriteWithImm = 1,
  Send = 2,
  SendWithImm = 3,
  RdmaRead = 4,
  AtomicCmpSwap = 5,
  AtomicFetchAdd = 6,
  LocalInv = 7,
  BindMw = 8,
  SendWithInv = 9,
  Flush = 14,
  AtomicWrite = 15,
};

// Operands of a FLUSH [IBA1 1.6 annex A19]: what becomes of earlier writes, and where. Numbers of
// rdma-core's IBV_FLUSH_*.
namespace flush {
inline constexpr std::uint8_t kGlobal = 1;  // placement types, one or more
inline constexpr std::uint8_t kPersistent = 1u << 1;
inline constexpr std::uint8_t kRange = 0;  // selectivity levels
inline constexpr std::uint8_t kRegion = 1;
// Both, as a work request has them.
constexpr std::uint32_t operands(std::uint8_t type, std::uint8_t level) {
  return type | std::uint32_t{level} << 8;
}
constexpr std::uint8_t type_of(std::uint32_t operands) {
  return static_cast<std::uint8_t>(operands);
}
constexpr std::uint8_t level_of(std::uint32_t operands) {
  return static_cast<std::uint8_t>(operands >> 8);
}
constexpr bool is_valid(std::uint32_t operands) {
  const std::uint8_t type = type_of(operands);
  return type != 0 && (type & ~(kGlobal | kPersistent)) == 0 && operands >> 8 <= kRegion;
}
// The right that each placement type needs.
constexpr std::uint32_t access_for(std::uint8_t type) {
  return ((type & kGlobal) != 0 ? access::kFlushGlobal : 0) |
         ((type & kPersistent) != 0 ? access::kFlushPersistent : 0);
}
}  // namespace flush

namespace send_flag {
inline constexpr std::uint32_t kFence = 1;
inline constexpr std::uint32_t kSignaled = 1u << 1;
inline constexpr std::uint32_t kSolicited = 1u << 2;
inline constexpr std::uint32_t kInline = 1u << 3;
}  // namespace send_flag

// Completion statuses [IBA1 11.6.2]; numbers of ibv_wc_status.
enum class WcStatus : std::uint32_t {
  Success = 0,
  LocLenErr = 1,
  LocQpOpErr = 2,
  LocEecOpErr = 3,
  LocProtErr = 4,
  WrFlushErr = 5,
  MwBindErr = 6,
  BadRespErr = 7,
  LocAccessErr = 8,
  RemInvReqErr = 9,
  RemAccessErr = 10,
  RemOpErr = 11,
  RetryExcErr = 12,
  RnrRetryExcErr = 13,
  LocRddViolErr = 14,
  RemInvRdReqErr = 15,
  RemAbortErr = 16,
  InvEecnErr = 17,
  InvEecStateErr = 18,
  FatalErr = 19,
  RespTimeoutErr = 20,
  GeneralErr = 21,
};

// Inline data is taken when a request is posted, so READ and atomics have none [man ibv_post_send:
// inline is for send and write]. Requests without data ignore the flag, as adapters do; all ignore
// fences and solicited events that mean nothing for them.
constexpr bool may_be_inline(WrOpcode opcode) {
  return opcode != WrOpcode::RdmaRead && opcode != WrOpcode::AtomicCmpSwap &&
         opcode != WrOpcode::AtomicFetchAdd;
}

// Completion opcodes; numbers of ibv_wc_opcode.
enum class WcOpcode : std::uint32_t {
  Send = 0,
  RdmaWrite = 1,
  RdmaRead = 2,
  CompSwap = 3,
  FetchAdd = 4,
  BindMw = 5,
  LocalInv = 6,
  Flush = 8,
  AtomicWrite = 9,
  Recv = 128,
  RecvRdmaWithImm = 129,
};

namespace wc_flag {
inline constexpr std::uint32_t kGrh = 1;
inline constexpr std::uint32_t kWithImm = 1u << 1;
inline constexpr std::uint32_t kWithInv = 1u << 3;
}  // namespace wc_flag

// Asynchronous events; numbers of ibv_event_type.
enum class EventType : std::uint32_t {
  CqErr = 0,
  QpFatal = 1,
  QpReqErr = 2,
  QpAccessErr = 3,
  CommEst = 4,
  SqDrained = 5,
  PathMig = 6,
  PathMigErr = 7,
  DeviceFatal = 8,
  PortActive = 9,
  PortErr = 10,
  LidChange = 11,
  PkeyChange = 12,
  SmChange = 13,
  SrqErr = 14,
  SrqLimitReached = 15,
  QpLastWqeReached = 16,
  ClientReregister = 17,
  GidChange = 18,
  Completion = 19,  // of a completion queue with control::kKernelChannel that was armed
  // Of the node, to clients that subscribed when they attached; the cookie is the node GUID.
  CaAdded = 20,
  CaRemoved = 21,
  EventsLost = 22,  // `index` events were lost here, as the queue was full
  // Of a process that subscribed when it attached: its doorbell was rung (hca/layout/doorbell.h).
  Attention = 23,
};

// The attributes that a modify-QP carries; numbers of ibv_qp_attr_mask.
namespace qp_attr {
inline constexpr std::uint32_t kState = 1;
inline constexpr std::uint32_t kCurState = 1u << 1;
inline constexpr std::uint32_t kEnSqdAsyncNotify = 1u << 2;
inline constexpr std::uint32_t kAccessFlags = 1u << 3;
inline constexpr std::uint32_t kPkeyIndex = 1u << 4;
inline constexpr std::uint32_t kPort = 1u << 5;
inline constexpr std::uint32_t kQkey = 1u << 6;
inline constexpr std::uint32_t kAv = 1u << 7;
inline constexpr std::uint32_t kPathMtu = 1u << 8;
inline constexpr std::uint32_t kTimeout = 1u << 9;
inline constexpr std::uint32_t kRetryCnt = 1u << 10;
inline constexpr std::uint32_t kRnrRetry = 1u << 11;
inline constexpr std::uint32_t kRqPsn = 1u << 12;
inline constexpr std::uint32_t kMaxQpRdAtomic = 1u << 13;
inline constexpr std::uint32_t kAltPath = 1u << 14;
inline constexpr std::uint32_t kMinRnrTimer = 1u << 15;
inline constexpr std::uint32_t kSqPsn = 1u << 16;
inline constexpr std::uint32_t kMaxDestRdAtomic = 1u << 17;
inline constexpr std::uint32_t kPathMigState = 1u << 18;
inline constexpr std::uint32_t kCap = 1u << 19;
inline constexpr std::uint32_t kDestQpn = 1u << 20;
inline constexpr std::uint32_t kRateLimit = 1u << 25;
}  // namespace qp_attr

// Address vector [IBA1 11.2.2.1]. 32 bytes, fixed layout (it crosses the control socket).
struct AddressVector {
  Gid dgid{};
  std::uint32_t flow_label = 0;
  std::uint16_t dlid = 0;
  std::uint8_t sgid_index = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t is_global = 0;
  std::uint8_t sl = 0;
  std::uint8_t src_path_bits = 0;
  std::uint8_t static_rate = 0;
  std::uint8_t port = 0;
  std::array<std::uint8_t, 2> reserved{};
};
static_assert(sizeof(AddressVector) == 32);

}  // namespace ib::verbs
