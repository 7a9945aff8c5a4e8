// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The communication manager of one channel adapter [IBA1 chapter 12]: makes and ends connections of
// queue pairs by MADs of its class on queue pair 1.
//
// Sans-IO: MADs, calls of the consumer and the time come in as arguments; MADs, events and the next
// deadline go out. It never reads a clock, locks or calls back. Thread rule: one thread at a time.
//
// After every call that takes the time: poll_mad() and poll_event() until they return nothing, then
// call on_time() at deadline().
//
// * The consumer moves its queue pairs itself; query() has what their attributes need.
// * Each connection (from connect(), or RequestReceived) is the consumer's until destroy(), also
//   when it is closed. destroy() is allowed in every state: the other side is told as the state
//   demands (REJ, DREQ, DREP), and the engine finishes alone, time-wait included.
// * Everything that a peer can make grow has a limit (Limits). Undelivered events are bounded by
//   the connections: a peer cannot add another one before the consumer has answered.
// * A call that does not fit the state returns InvalidState, has no effect, and is not wrong: the
//   other side may have been faster.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "cm/events.h"
#include "cm/requests.h"
#include "cm/types.h"
#include "mad/header.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ib::cm {

struct Limits {
  std::uint32_t connections = 131072;         // in all, with those in time-wait and closed ones
  std::uint32_t connections_of_peer = 98304;  // that one remote port has requested
  std::uint32_t listeners = 16384;
  // Requests (REQ or SIDR_REQ) that wait for the consumer's answer: in all, of one remote port, and
  // of one listener from one remote port (Listen::backlog is at most this).
  std::uint32_t pending = 16384;
  std::uint32_t pending_of_peer = 4096;
  std::uint32_t backlog = 8192;
  std::uint32_t sidr_exchanges = 16384;  // in all, with answered ones
  // Rejections and answers to SIDR_REQ that are kept to be repeated; the oldest ones go first.
  std::uint32_t kept_answers = 4096;
  // No time that a message demands is longer: a peer must not tie up this side for hours.
  Duration longest_wait = std::chrono::minutes(2);
  // No answer is waited for in less time.
  Duration shortest_response = std::chrono::milliseconds(1);
  // How long the answer to a SIDR_REQ is kept to answer duplicates.
  Duration sidr_answers = std::chrono::seconds(5);
};

struct Config {
  std::uint64_t ca_guid = 0;
  std::uint8_t ack_delay = 0;       // exponent; of the adapter (local CA ACK delay)
  std::uint8_t response_time = 18;  // exponent; for ClassPortInfo
  std::uint64_t seed = 0;           // communication IDs start anywhere
  Limits limits;
};

// A port's addresses. REQs and LAPs for other addresses are rejected with the reason.
struct PortFacts {
  std::uint8_t number = 1;
  std::uint16_t lid = 0;  // 0: it has none (Ethernet)
  std::uint8_t lmc = 0;
  std::vector<Gid> gids;
  verbs::Mtu max_mtu = verbs::Mtu::B4096;
};

// A MAD to be sent from queue pair 1 (Q_Key verbs::kGsiQkey).
struct OutgoingMad {
  MadAddress to;
  mad::Mad mad{};
};

enum class Role : std::uint8_t { Active, Passive };

// The message of this side that waits for an answer of the other one.
struct Waiting {
  unsigned times_sent = 0;  // 0: none waits
  unsigned retries_left = 0;
  bool was_delayed = false;  // an MRA has come: the other side has it, and needs longer
};

// The agreed facts about a connection so far; fields of the other side are zero before its REQ or
// REP.
struct ConnectionInfo {
  State state = State::Closed;
  Role role = Role::Active;
  std::uint64_t service_id = 0;
  std::uint32_t local_comm_id = 0;
  std::uint32_t remote_comm_id = 0;
  std::uint64_t remote_ca_guid = 0;
  Transport transport = Transport::Rc;
  std::uint32_t local_qpn = 0;   // passive side: zero before accept()
  std::uint32_t remote_qpn = 0;  // RTR: dest_qp_num
  std::uint32_t remote_qkey = 0;
  std::uint32_t send_psn = 0;            // RTS: sq_psn
  std::uint32_t receive_psn = 0;         // RTR: rq_psn
  std::uint8_t responder_resources = 0;  // RTR: max_dest_rd_atomic
  std::uint8_t initiator_depth = 0;      // RTS: max_rd_atomic
  std::uint8_t retry_count = 0;          // RTS
  std::uint8_t rnr_retry_count = 0;      // RTS; how often the other side lets this side retry
  std::uint8_t ack_timeout = 0;          // RTS: timeout
  std::uint8_t target_ack_delay = 0;     // of the other side
  std::uint8_t remote_cm_response_timeout = 0;  // as in REQ
  std::uint8_t local_cm_response_timeout = 0;
  std::uint8_t max_cm_retries = 0;
  verbs::Mtu path_mtu = verbs::Mtu::B1024;
  bool remote_srq = false;
  bool flow_control = false;
  Path primary;
  std::optional<Path> alternate;  // of the REQ, or of an accepted LAP
  std::uint8_t alternate_ack_timeout = 0;
  VendorOptions remote_vendor;
  MadAddress peer;                  // where MADs to the other side go
  bool awaits_path_answer = false;  // a LAP was sent, or was received and not answered
  Waiting waiting;                  // of REQ, REP or DREQ
};

// Counters of what was dropped or answered without a connection, for status pages and tests.
struct Counters {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t resent = 0;         // after a time-out
  std::uint64_t malformed = 0;      // no message of this class, or values out of range
  std::uint64_t wrong_comm_id = 0;  // no such connection, or not with that peer
  std::uint64_t wrong_state = 0;    // late or out of place
  std::uint64_t duplicates = 0;     // answered again from what is stored, or known already
  std::uint64_t stale = 0;          // REQ or REP of a queue pair that is still connected here
  std::uint64_t no_listener = 0;
  std::uint64_t backlog_full = 0;  // of a listener or a peer, or all
  std::uint64_t no_room = 0;       // other limits
};

class Engine {
 public:
  explicit Engine(const Config& config);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Replaces the facts of this port. Without facts of any port addresses are not checked.
  void set_port(const PortFacts& facts);

  // Listeners. AlreadyExists if another one would get some of the same requests: its service IDs
  // and ports overlap, both or none of them compare the same private data, and both or none of them
  // are fallbacks.
  Result<ListenerId> listen(const Listen& listen);
  void destroy(ListenerId id);

  // Active side. NotFound: no such connection; InvalidParameter: a value does not fit its field.
  // DeviceBusy: the queue pair has another connection, maybe in time-wait.
  Result<ConnectionId> connect(const ConnectRequest& request, Instant now);
  Status establish(ConnectionId id, ByteSpan private_data, Instant now);  // RTU
  // Passive side.
  Status accept(ConnectionId id, const Reply& reply, Instant now);  // REP
  Status data_has_arrived(ConnectionId id, Instant now);            // stands for RTU
  // Both sides.
  Status reject(ConnectionId id, const Reject& reject, Instant now);  // REJ
  // MRA. `for_copies`: sent only when the message comes again, so that a peer whose answer is lost
  // is not made to wait for it.
  Status delay(ConnectionId id, std::uint8_t service_timeout, ByteSpan private_data, Instant now,
               bool for_copies = false);
  Status disconnect(ConnectionId id, ByteSpan private_data, Instant now);          // DREQ
  Status confirm_disconnect(ConnectionId id, ByteSpan private_data, Instant now);  // DREP
  // LAP; for the active side [IBA1 12.8.1].
  Status load_alternate_path(ConnectionId id, const Path& path, ByteSpan private_data, Instant now);
  Status answer_alternate_path(ConnectionId id, const AlternatePathAnswer& answer,
                               Instant now);  // APR
  // The queue pair has migrated: the alternate path is the primary one.
  Status path_has_migrated(ConnectionId id);
  void destroy(ConnectionId id, Instant now);
  Result<ConnectionInfo> query(ConnectionId id) const;
  // Returns whether a connection has this local queue pair, time-wait included.
  bool is_connected(std::uint32_t local_qpn) const;

  // Service ID resolution for datagrams.
  Result<SidrId> resolve_sidr(const SidrRequest& request, Instant now);
  Status answer_sidr(SidrId id, const SidrReply& reply, Instant now);
  void destroy(SidrId id, Instant now);
  Waiting waiting(SidrId id) const;  // of the SIDR_REQ

  // A MAD of the class CM has arrived on queue pair 1 of a port.
  void receive(const mad::Mad& mad, const MadAddress& from, Instant now);
  void on_time(Instant now);

  std::optional<OutgoingMad> poll_mad();
  std::optional<Event> poll_event();
  std::optional<Instant> deadline() const;

  // For status pages and tests: connections that exist, for the consumer or only for the engine.
  std::vector<ConnectionId> connections() const;
  std::size_t connection_count() const;
  std::size_t sidr_count() const;
  const Counters& counters() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ib::cm
