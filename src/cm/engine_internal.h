// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The engine itself, by phases of a connection: connect.cpp (active side), accept.cpp (passive
// side), peer_to_peer.cpp, refuse.cpp (REJ, MRA), disconnect.cpp, migrate.cpp (LAP, APR), sidr.cpp;
// engine.cpp has what they share. `on_*` takes a message, the other functions are the consumer's.
#pragma once

#include "cm/connection_table_internal.h"
#include "cm/engine.h"
#include "cm/listeners_internal.h"
#include "cm/messages/dreq.h"
#include "cm/messages/lap.h"
#include "cm/messages/rej.h"
#include "cm/messages/rep.h"
#include "cm/messages/req.h"
#include "cm/messages/sidr.h"
#include "cm/quotas_internal.h"
#include "cm/sidr_table_internal.h"
#include "cm/timeouts.h"

#include <deque>
#include <optional>
#include <utility>

namespace ib::cm {

MadAddress address_of(const Path& path);
// The path as its other end has it. Its port is not changed.
Path mirrored(const Path& path);
// Each value fits its field.
bool fits(const Path& path);

// Why a REQ cannot be taken.
struct Fault {
  RejectReason reason{};
  AdditionalInfo info;
};

class Engine::Impl {
 public:
  explicit Impl(const Config& config);

  // connect.cpp
  Result<ConnectionId> connect(const ConnectRequest& request, Instant now);
  Status establish(ConnectionId id, ByteSpan private_data);
  void on_rep(const mad::Mad& mad, const MadAddress& from);
  // accept.cpp
  Status accept(ConnectionId id, const Reply& reply, Instant now);
  Status data_has_arrived(ConnectionId id);
  void on_req(const mad::Mad& mad, const MadAddress& from, Instant now);
  void on_rtu(const mad::Mad& mad, const MadAddress& from);
  // refuse.cpp
  Status reject(ConnectionId id, const Reject& reject, Instant now);
  Status delay(ConnectionId id, std::uint8_t service_timeout, ByteSpan private_data,
               bool for_copies);
  void on_rej(const mad::Mad& mad, const MadAddress& from, Instant now);
  void on_mra(const mad::Mad& mad, Instant now);
  // disconnect.cpp
  Status disconnect(ConnectionId id, ByteSpan private_data, Instant now);
  Status confirm_disconnect(ConnectionId id, ByteSpan private_data, Instant now);
  void destroy(ConnectionId id, Instant now);
  void on_dreq(const mad::Mad& mad, const MadAddress& from, Instant now);
  void on_drep(const mad::Mad& mad, Instant now);
  // migrate.cpp
  Status load_alternate_path(ConnectionId id, const Path& path, ByteSpan private_data, Instant now);
  Status answer_alternate_path(ConnectionId id, const AlternatePathAnswer& answer);
  Status path_has_migrated(ConnectionId id);
  void on_lap(const mad::Mad& mad, const MadAddress& from);
  void on_apr(const mad::Mad& mad);
  // sidr.cpp
  Result<SidrId> resolve_sidr(const SidrRequest& request, Instant now);
  Status answer_sidr(SidrId id, const SidrReply& reply, Instant now);
  void destroy(SidrId id, Instant now);
  Waiting waiting(SidrId id) const;
  void on_sidr_req(const mad::Mad& mad, const MadAddress& from);
  void on_sidr_rep(const mad::Mad& mad, const MadAddress& from);

  // engine.cpp
  void set_port(const PortFacts& facts);
  Result<ConnectionInfo> query(ConnectionId id) const;
  void receive(const mad::Mad& mad, const MadAddress& from, Instant now);
  void on_time(Instant now);
  std::optional<OutgoingMad> poll_mad();
  std::optional<Event> poll_event();
  std::optional<Instant> deadline() const;

  Listeners listeners;
  ConnectionTable connections;
  SidrTable sidr;
  Counters counters;

 private:
  // engine.cpp: output.
  void send(const MadAddress& to, const mad::Mad& mad);
  void send(const Connection& connection, const mad::Mad& mad) { send(connection.info.peer, mad); }
  template <class E>
  void emit(const Connection& connection, E event) {
    if (!connection.is_owned) return;
    event.id = connection.id;
    events_.push_back(event);
  }
  // Null unless the consumer has it.
  Connection* owned(ConnectionId id) const;
  // Both ends' numbers are those of the message. Null and counted: no such connection.
  Connection* find(const Ids& ids);
  std::uint64_t next_transaction() { return transactions_++; }
  Ids ids_of(const Connection& connection, std::uint64_t transaction_id) const;

  // engine.cpp: states. enter() is the only place where one changes.
  void enter(Connection& connection, StateData state, std::optional<Instant> deadline);
  void close(Connection& connection);   // and forgets it if the consumer has
  void forget(Connection& connection);  // `connection` is gone
  void enter_time_wait(Connection& connection, KeptMad drep, Instant now);
  Duration wait_of(Duration wanted) const;
  // How long the answer to a message of this side may take, and to one of the other side.
  Duration response_time(const Connection& connection) const;
  Duration peer_response_time(const Connection& connection) const;
  Resend send_first(const Connection& connection, const mad::Mad& mad);
  void stop_pending(Connection& connection);
  // Returns false if no retry is left; sends again otherwise.
  bool send_again(Connection& connection, Resend& resend, Instant now);
  void on_deadline(Connection& connection, Instant now);
  void give_up(Connection& connection, Message message, const Resend& resend);
  void answer_get(const mad::Mad& mad, const MadAddress& from);
  void answer_version(Attribute attribute, const mad::Mad& mad, const MadAddress& from);

  // accept.cpp
  bool answered_as_duplicate(const Req& req, const MadAddress& from);
  bool is_stale(const Req& req, const MadAddress& from, Instant now);
  std::optional<Fault> fault_of(const Req& req, const MadAddress& from) const;
  std::optional<Fault> address_fault(const Path& path, bool is_primary, std::uint8_t port) const;
  void reject_req(const Req& req, const MadAddress& from, const Fault& fault);
  void peer_lost(Connection& connection, const MadAddress& from, Instant now);
  void take_request(Connection& connection, const Req& req, const MadAddress& from);
  void announce(Connection& connection, const Req& req, const MadAddress& from,
                std::optional<ListenerId> listener);
  Path received_path(const Path& path, const MadAddress& from) const;
  const PortFacts* port_with(const Gid& gid) const;
  const PortFacts* port_of(std::uint8_t number) const;
  // connect.cpp
  void take_reply(Connection& connection, const Rep& rep, const MadAddress& from);
  void reject_rep(const Rep& rep, const MadAddress& from, RejectReason reason);
  bool repeat_answer(Connection& connection);
  // peer_to_peer.cpp: returns true if the REQ met one of this side's own REQs.
  bool met_peer(const Req& req, const MadAddress& from);
  // refuse.cpp
  void refuse(Connection& connection, const Rej& rej, Instant now);
  Connection* rejected_one(const Rej& rej);
  // disconnect.cpp
  void finish(Connection& connection, Instant now);
  void send_dreq(Connection& connection, ByteSpan private_data, bool peer_lost_it, Instant now);
  // migrate.cpp
  std::optional<AlternatePathStatus> fault_of(const Connection& connection, const Lap& lap,
                                              const Path& path) const;
  void refuse_lap(const Lap& lap, const MadAddress& to, AlternatePathStatus status);
  // sidr.cpp
  void end_sidr(SidrExchange& exchange);
  void on_sidr_deadline(SidrExchange& exchange, Instant now);

  Config config_;
  Quotas quotas_;
  std::vector<PortFacts> ports_;
  std::uint64_t transactions_;
  // Connections that were Refused and exchanges that were Answered, the oldest first.
  std::deque<std::uint32_t> refusals_;
  std::deque<std::uint32_t> sidr_answers_;
  std::deque<OutgoingMad> mads_;
  std::deque<Event> events_;
};

}  // namespace ib::cm
