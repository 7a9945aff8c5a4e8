// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection as the engine has it: what was agreed, and the state with the data that is valid in
// it only.
//
// A message that is answered once may come again, since its answer may be lost: each state
// keeps the answer that led to it.
#pragma once

#include "base/time.h"
#include "cm/engine.h"
#include "cm/waiting_room.h"
#include "mad/header.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

namespace ib::cm {

// A MAD that is kept to be sent again.
using KeptMad = std::unique_ptr<const mad::Mad>;
KeptMad keep(const mad::Mad& mad);

// A message that is sent until it is answered.
struct Resend {
  KeptMad mad;
  Duration interval{};
  std::uint8_t retries_left = 0;
  unsigned times_sent = 1;
  bool mra_received = false;  // the answer comes later; the next time-out sends again
  bool was_delayed = false;   // by any MRA so far
  Waiting waiting() const { return {times_sent, retries_left, was_delayed}; }
};

namespace state {

struct ReqSent {
  Resend req;
};
struct ReqReceived {
  std::uint64_t transaction_id = 0;
  KeptMad mra;  // null: none was sent
};
struct RepSent {
  Resend rep;
};
struct RepReceived {
  std::uint64_t transaction_id = 0;
  KeptMad mra;
};

// Alternate paths of an established connection.
struct LapSent {
  Resend lap;
  std::uint64_t transaction_id = 0;
  Path path;
};
// Transaction IDs of the last LAPs, the newest first: a copy of an older one may still arrive.
using LapHistory = std::array<std::uint64_t, 4>;
struct LapReceived {
  LapHistory transactions{};
  Path path;
  KeptMad mra;
};
struct LapAnswered {
  LapHistory transactions{};
  KeptMad apr;
};
using PathChange = std::variant<LapSent, LapReceived, LapAnswered>;

struct Established {
  KeptMad rtu;                              // active side
  std::unique_ptr<PathChange> path_change;  // null if none was ever requested
};
struct DreqSent {
  Resend dreq;
  bool peer_lost_it = false;  // a REQ has shown that the other side has no such connection
};
struct DreqReceived {
  std::uint64_t transaction_id = 0;
};
// The queue pair must not be used again: its packets may still be under way.
struct TimeWait {
  KeptMad drep;  // null: a DREQ is answered without private data
};
// This side has rejected a REQ or REP, and rejects it again if it comes again. The consumer sees
// this as closed.
struct Refused {
  KeptMad rej;
};
struct Closed {};

}  // namespace state

using StateData = std::variant<state::ReqSent, state::ReqReceived, state::RepSent,
                               state::RepReceived, state::Established, state::DreqSent,
                               state::DreqReceived, state::TimeWait, state::Refused, state::Closed>;

struct Connection {
  ConnectionId id{};
  bool is_owned = true;  // the consumer has not destroyed it
  bool peer_to_peer = false;
  // The listener that counts it as pending, from its request until it is over.
  std::optional<ListenerId> listener;
  bool is_pending = false;
  std::optional<Peer> counted_peer;

  ConnectionInfo info;  // but for `state`
  std::optional<Instant> deadline;
  StateData state;  // changed by ConnectionStates::enter() only

  template <class S>
  S* in() {
    return std::get_if<S>(&state);
  }
  State public_state() const;
  Waiting waiting() const;
  state::LapSent* lap_sent();
  state::LapReceived* lap_received();
  state::LapAnswered* lap_answered();
};

}  // namespace ib::cm
