// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The nouns of the communication manager's interface: identifiers, paths, addresses of MADs,
// private data.
//
// Times in messages are exponents n of 4.096 us * 2^n, 0 to 31 (cm/timeouts.h).
#pragma once

#include "verbs/gid.h"
#include "verbs/types.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ib::cm {

using verbs::Gid;

// One connection or half of one. Equal to its local communication ID [IBA1 12.9.4], which is not
// given to another connection before its time-wait is over.
enum class ConnectionId : std::uint32_t {};
enum class ListenerId : std::uint32_t {};
// One exchange of SIDR_REQ and SIDR_REP, at either end. Not the request ID on the wire.
enum class SidrId : std::uint32_t {};

inline constexpr std::uint16_t kPermissiveLid = 0xffff;
inline constexpr std::uint16_t kDefaultPkey = 0xffff;
inline constexpr std::uint32_t kGsiQpn = 1;

// A path between two ports, as its local end has it: "s" is the port of this channel adapter, "d"
// the other one, also for a path that came in a message of the other side.
//
// RoCE [IBA1 annex A17]: GIDs alone say where the ends are, the LIDs are permissive, and the path
// is not local to the subnet.
struct Path {
  Gid sgid{};
  Gid dgid{};
  std::uint16_t slid = kPermissiveLid;
  std::uint16_t dlid = kPermissiveLid;
  std::uint16_t pkey = kDefaultPkey;  // the value, not its index
  std::uint8_t port = 1;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 1;
  std::uint8_t sl = 0;               // 4 bits
  std::uint8_t rate = 0;             // 6 bits, as of PathRecord
  std::uint8_t packet_lifetime = 0;  // exponent. Received: estimated from `ack_timeout`.
  std::uint8_t ack_timeout = 0;      // exponent; the engine computes it for what it sends
  bool subnet_local = true;          // no global route header is needed

  bool has_lids() const { return dlid != kPermissiveLid && dlid != 0; }
  // MADs and packets on it have a global route header.
  bool is_global() const { return !subnet_local || !has_lids(); }
  friend bool operator==(const Path&, const Path&) = default;
};

// Where a MAD came from, or goes to: queue pair 1 of a port unless `remote_qpn` says otherwise.
struct MadAddress {
  Gid local_gid{};  // the GIDs are meaningful if is_global
  Gid remote_gid{};
  std::uint16_t local_lid = 0;
  std::uint16_t remote_lid = 0;
  std::uint16_t pkey = kDefaultPkey;
  std::uint8_t port = 1;  // of this channel adapter
  std::uint8_t sl = 0;
  bool is_global = false;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint32_t flow_label = 0;
  std::uint32_t remote_qpn = kGsiQpn;

  friend bool operator==(const MadAddress&, const MadAddress&) = default;
};

// A few bytes of a consumer. On the wire their field has a fixed size and is filled with zeros: a
// receiver always gets the whole field.
template <std::size_t Capacity>
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::span<const std::uint8_t> bytes)
      : size_(static_cast<std::uint8_t>(std::min(bytes.size(), Capacity))) {
    std::copy_n(bytes.begin(), size_, bytes_.begin());
  }
  std::span<const std::uint8_t> view() const { return std::span(bytes_).first(size_); }
  std::size_t size() const { return size_; }

 private:
  static_assert(Capacity <= 255);
  std::uint8_t size_ = 0;
  std::array<std::uint8_t, Capacity> bytes_{};
};

// Sizes of the private data of each message [IBA1 12.6].
inline constexpr std::size_t kReqPrivateBytes = 92;
inline constexpr std::size_t kMraPrivateBytes = 222;
inline constexpr std::size_t kRejPrivateBytes = 148;
inline constexpr std::size_t kRepPrivateBytes = 196;
inline constexpr std::size_t kRtuPrivateBytes = 224;
inline constexpr std::size_t kDreqPrivateBytes = 220;
inline constexpr std::size_t kDrepPrivateBytes = 224;
inline constexpr std::size_t kLapPrivateBytes = 168;
inline constexpr std::size_t kAprPrivateBytes = 148;
inline constexpr std::size_t kSidrReqPrivateBytes = 216;
inline constexpr std::size_t kSidrRepPrivateBytes = 136;
inline constexpr std::size_t kAdditionalInfoBytes = 72;  // of REJ (ARI), APR and SIDR_REP

using PrivateData = Bytes<kRtuPrivateBytes>;
using AdditionalInfo = Bytes<kAdditionalInfoBytes>;

// Transport services of REQ, XRC being an extended one [IBA1 annex A14].
enum class Transport : std::uint8_t { Rc = 0, Uc = 1, Xrc = 2 };

// Of the alternate path in REQ [IBA1 12.6.8].
enum class Failover : std::uint8_t { Accepted = 0, NotSupported = 1, Refused = 2 };

// Vendor options that both ends offer each other in REQ, REP and SIDR_REP, in fields that Linux
// uses so (ECE): the vendor's ID of 24 bits and the header's attribute modifier.
struct VendorOptions {
  std::uint32_t vendor_id = 0;
  std::uint32_t options = 0;
  friend bool operator==(const VendorOptions&, const VendorOptions&) = default;
};

// States of a connection [IBA1 12.9.7.1]. Those with "Mra" differ in the message that was sent or
// received meanwhile.
enum class State : std::uint8_t {
  ReqSent,
  ReqSentMraReceived,
  ReqReceived,  // the consumer has to accept or reject
  ReqReceivedMraSent,
  RepSent,
  RepSentMraReceived,
  RepReceived,  // the consumer has to establish or reject
  RepReceivedMraSent,
  Established,
  DreqSent,
  DreqReceived,  // the consumer has to confirm
  TimeWait,
  Closed,  // over: rejected, timed out, or after time-wait; to be destroyed
};
inline constexpr std::size_t kStateCount = 13;
const char* state_text(State state);

}  // namespace ib::cm
