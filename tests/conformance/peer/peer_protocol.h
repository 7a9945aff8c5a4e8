// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The commands of a test to one side of a conversation. An Engine (engine.h) executes them against
// the user HCA, in this process or in conformance_peer at the other end of a socket pair.
//
// A message is a sequence of plain structs, as they are in memory: both ends are the same build.
#pragma once

#include "base/assert.h"
#include "user/hca.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace ib::conformance {

namespace control = verbs::control;

inline constexpr std::uint32_t kNoHandle = 0xffffffffu;

enum class Command : std::uint32_t {
  Info,
  AllocPd,
  AllocMemory,
  FreeMemory,
  Poke,
  Peek,
  Fill,
  CountMismatches,
  RegisterMemory,
  Reregister,
  AllocWindow,
  AllocDeviceMemory,
  CreateChannel,
  WaitChannel,
  CreateCq,
  ResizeCq,
  ArmCq,
  PollCq,
  CreateSrq,
  ModifySrq,
  QuerySrq,
  PostSrqReceive,
  CreateQp,
  OpenQp,
  ModifyQp,
  QueryQp,
  QpState,
  PostSend,
  PostReceive,
  MaySendLarge,
  AttachGroup,
  DetachGroup,
  OpenXrcd,
  CreateAddress,
  QueryPort,
  QueryGid,
  NextEvent,
  Destroy,
  DestroyAll,
};

enum class Kind : std::uint32_t {
  Pd,
  Region,
  Window,
  DeviceMemory,
  Channel,
  Cq,
  Srq,
  Qp,
  Xrcd,
  Address
};
inline constexpr std::size_t kKinds = 10;

// A message being written or read.
class Message {
 public:
  Message() = default;
  explicit Message(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  template <class T>
  Message& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return put_bytes(&value, sizeof value);
  }
  Message& put_bytes(const void* from, std::size_t n) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + n);
    return *this;
  }
  template <class T>
  Message& put_all(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    return put_bytes(values.data(), values.size() * sizeof(T));
  }
  template <class T>
  T take() {
    T value;
    take_bytes(&value, sizeof value);
    return value;
  }
  template <class T>
  std::vector<T> take_all() {
    std::vector<T> values(take<std::uint64_t>());
    take_bytes(values.data(), values.size() * sizeof(T));
    return values;
  }
  void take_bytes(void* to, std::size_t n) {
    IB_ASSERT(n <= bytes_.size() - taken_);
    if (n != 0) std::memcpy(to, bytes_.data() + taken_, n);
    taken_ += n;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t taken_ = 0;
};

struct Reply {
  Status status = Status::Ok;
  Message out;
  std::string reason;
};

// The numbers that the two sides exchange in order to connect.
// Where the GID table of an Ethernet port has the address of its node.
inline constexpr std::uint8_t kIpGid = 1;

struct SideInfo {
  std::uint32_t pid = 0;
  std::uint32_t slot = 0;
  std::uint32_t file = 0;
  std::uint32_t ports = 0;
  std::uint64_t node_guid = 0;
  control::PortAttr port;
  verbs::Gid gid{};  // of port 1; of an Ethernet port the one at kIpGid
};

struct RegionSpec {
  std::uint32_t pd = 0;  // handle
  std::uint32_t dm = kNoHandle;
  std::uint32_t access = 0;
  std::uint32_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;
};
struct RegionOut {
  std::uint32_t handle = kNoHandle;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint32_t reserved = 0;
};

struct CqSpec {
  std::uint32_t cqe = 256;
  std::uint32_t channel = kNoHandle;
  std::uint32_t flags = 0;
  std::uint32_t reserved = 0;
  std::uint64_t cookie = 0;
};

struct SrqSpec {
  verbs::SrqType type = verbs::SrqType::Basic;
  std::uint32_t pd = 0;
  std::uint32_t xrcd = kNoHandle;
  std::uint32_t cq = kNoHandle;
  std::uint32_t max_wr = 64;
  std::uint32_t max_sge = 4;
  std::uint32_t limit = 0;
  std::uint32_t reserved = 0;
  std::uint64_t cookie = 0;
};

struct QpSpec {
  verbs::QpType type = verbs::QpType::Rc;
  std::uint32_t pd = kNoHandle;
  std::uint32_t send_cq = kNoHandle;
  std::uint32_t recv_cq = kNoHandle;
  std::uint32_t srq = kNoHandle;
  std::uint32_t xrcd = kNoHandle;
  control::QpCaps caps{64, 64, 4, 4, 128, 0};
  std::uint32_t signal_all = 0;
  std::uint32_t flags = 0;
  std::uint64_t cookie = 0;
};

// A send request; handles instead of pointers. The SGEs follow it in the message.
struct SendSpec {
  std::uint64_t wr_id = 0;
  verbs::WrOpcode opcode = verbs::WrOpcode::Send;
  std::uint32_t flags = verbs::send_flag::kSignaled;
  std::uint32_t imm = 0;
  std::uint32_t rkey = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint32_t address = kNoHandle;  // UD
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t remote_srqn = 0;
  std::uint32_t window = kNoHandle;
  std::uint32_t bind_region = kNoHandle;
  std::uint64_t bind_address = 0;
  std::uint64_t bind_length = 0;
  std::uint32_t bind_access = 0;
  std::uint32_t bind_rkey = 0;
};

// Byte `i` of a pattern; neighbours and patterns of different seeds differ.
constexpr std::uint8_t pattern(std::uint64_t seed, std::uint64_t i) {
  const std::uint64_t mixed = (i + seed * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  return static_cast<std::uint8_t>((mixed >> 56) ^ (mixed >> 23) ^ i);
}

}  // namespace ib::conformance
