// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Host: what an interface of IP over InfiniBand needs from its driver, and the types of both
// directions.
//
// The interface calls it from inside its inputs. The host queues or posts, and does not call the
// interface back before the input has returned; answers come later as inputs. Spans are valid
// during the call only.
#pragma once

#include "base/time.h"
#include "ulp/ipoib/packets/addresses.h"
#include "ulp/ipoib/packets/outgoing.h"
#include "ulp/ipoib/packets/virtio_header.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ib::ipoib {

// Encodings of InfiniBand for rate and MTU, as records of the subnet administrator have them.
using RateCode = std::uint8_t;
using MtuCode = std::uint8_t;  // 1 to 5: 256 to 4096 bytes
constexpr std::uint32_t mtu_bytes(MtuCode code) {
  return code >= 1 && code <= 5 ? 128u << code : 0;
}
// In units of 100 Mb/s; 0 for a code that has no rate.
std::uint32_t rate_in_100_mbps(RateCode code);

struct AddressVector {
  Lid dlid{};
  std::uint8_t service_level = 0;
  RateCode rate = 0;     // 0: that of the port
  bool has_grh = false;  // the fields below are those of a GRH, always so for multicast
  Gid dgid;
  std::uint32_t flow_label = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  bool operator==(const AddressVector&) const = default;
};

// Answer of a path query.
struct PathRecord {
  Lid dlid{};
  std::uint8_t service_level = 0;
  RateCode rate = 0;
  MtuCode mtu = 0;
  bool is_global = false;  // the path leaves the subnet: a GRH is needed
  std::uint32_t flow_label = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
};

// The parameters of a group; also those that a new one shall have.
struct GroupParameters {
  Lid mlid{};
  Qkey qkey{};
  MtuCode mtu = 0;
  RateCode rate = 0;
  std::uint8_t service_level = 0;
  std::uint32_t flow_label = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
};

enum class Membership : std::uint8_t { Full, SendOnly };

struct JoinRequest {
  Gid mgid;
  Membership membership = Membership::Full;
  // Present: the group is created with these if it does not exist. Rate and MTU are then exact;
  // mlid is not used.
  std::optional<GroupParameters> create;
};

// Names a request to the subnet administrator; answers carry it back. Never used twice.
enum class RequestId : std::uint64_t {};
// Names a connection from its beginning to its end, on both halves. Never used twice.
enum class ConnectionId : std::uint32_t {};

// The IP MTU that connected mode gives an interface: the largest message of the neighbours is this
// and the encapsulation header.
inline constexpr std::uint32_t kConnectedMtu = 65'520;
inline constexpr std::uint32_t kEncapsulationBytes = 4;
// Receive buffers of connections have this many bytes, as private data announces.
inline constexpr std::uint32_t kConnectionBufferBytes = kConnectedMtu + kEncapsulationBytes;
// Listen at this service ID | own queue pair number.
inline constexpr std::uint64_t kServiceId = 0x1000'0000'0000'0000;

// Private data of REQ and REP [RFC 4755 6].
struct ConnectionData {
  Be32 qpn;            // of the sender's datagrams
  Be32 receive_bytes;  // largest message that the sender takes on the connection
};
static_assert(sizeof(ConnectionData) == 8 && alignof(ConnectionData) == 1);

struct ConnectRequest {
  HardwareAddress peer;
  AddressVector path;  // of the connection
  MtuCode path_mtu = 0;
  std::uint64_t service_id = 0;
  ConnectionData data;
};

struct LinkState {
  bool carrier = false;
  std::uint32_t mtu =
      0;  // IP MTU of the kernel's interface; of no meaning before the first carrier
  bool operator==(const LinkState&) const = default;
};

// Why a neighbour or a group cannot be reached, for traces and listings.
enum class Trouble : std::uint8_t {
  None,
  PortDown,
  PkeyMissing,
  BroadcastGroupMissing,  // join of the broadcast group fails; `status` says how
  BroadcastGroupUnfit,    // the group wants more than the port has (rate, MTU)
  PathRefused,            // the subnet administrator answered without a path
  PathTimeout,            // the subnet administrator does not answer
  GroupRefused,
  GroupTimeout,
  ConnectionRefused,  // datagrams are used instead
  ConnectionLost,
};
const char* trouble_text(Trouble trouble);

struct Report {
  Trouble trouble = Trouble::None;
  Status status = Status::Ok;
  Gid gid;  // of the neighbour or group, zero for the port
};

class Host {
 public:
  virtual ~Host() = default;

  // -- The kernel's interface.
  // Returns false if the kernel took no frame.
  [[nodiscard]] virtual bool deliver(const VirtioHeader& header,
                                     std::span<const std::byte> frame) = 0;
  // The carrier or the MTU have changed.
  virtual void set_link(const LinkState& link) = 0;

  // -- Sending. Returns false if the message was not taken, as the send queue is full.
  [[nodiscard]] virtual bool send_datagram(const AddressVector& to, Qpn qpn, Qkey qkey,
                                           const Outgoing& message) = 0;
  [[nodiscard]] virtual bool send_on_connection(ConnectionId connection,
                                                const Outgoing& message) = 0;
  // True if a message to this queue pair may be posted with an Offload: larger than the MTU, its
  // checksum not complete. The poster decides, as it sees the receiver: it carries the Offload
  // beside the bytes (as LSO and GRO do together), and the receiving driver passes it to
  // Interface::on_datagram or on_connection_message. False for queue pairs that are not those of
  // softib's IP over InfiniBand; then frames are segmented here. Not called for groups.
  [[nodiscard]] virtual bool takes_large(const HardwareAddress& to) = 0;

  // -- The subnet administrator. Each request has one answer (Interface::on_path_answer,
  // on_join_answer); one that comes after the interface has given up is ignored.
  virtual void query_path(RequestId id, const Gid& destination) = 0;
  // Also as a member: joining again makes sure of the membership, or changes it.
  virtual void join(RequestId id, const JoinRequest& request) = 0;
  // Ends the membership and any join under way; no answer follows.
  virtual void leave(const Gid& mgid) = 0;
  // The own queue pair, only as full member. Detach comes before leave, and before attach with
  // another LID.
  virtual void attach(const Gid& mgid, Lid mlid) = 0;
  virtual void detach(const Gid& mgid, Lid mlid) = 0;

  // -- Connections. Answers: Interface::on_connected or on_connection_lost.
  virtual void connect(ConnectionId id, const ConnectRequest& request) = 0;
  // Also ends one that is not established. No event follows for this id.
  virtual void disconnect(ConnectionId id) = 0;

  // Something cannot be reached from now on; Trouble::None: it can be again.
  virtual void report(const Report& report) { static_cast<void>(report); }
};

}  // namespace ib::ipoib
