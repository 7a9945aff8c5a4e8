// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a failed work request to a sentence that a person can act on: the program, its peer, the
// request, the cause, the remedy. Pure: all its facts are in its arguments.
#pragma once

#include "verbs/control.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ib::drivers {

// One end of a connection.
struct Party {
  std::string node;
  std::string hca;
  std::string program;  // may be empty
  std::uint32_t pid = 0;
  std::uint32_t qpn = 0;
  verbs::QpType type = verbs::QpType::Rc;
  bool is_srq = false;  // then `qpn` is its index
};

// The place where the peer should be, as far as softibd has it.
struct PeerPlace {
  bool is_ethernet = false;  // ports have GIDs there, no LIDs
  std::string gid;           // of Ethernet: that which the queue pair is connected to; may be empty
  std::string others;        // if no port is there: the LIDs or GIDs of the fabric
  std::string
      unreached{};        // the port that is there, if no way leads to it: "node1, softib0, port 1"
  std::string target{};   // the port of the GID that an interface of IP cannot reach
  std::string way_end{};  // where the way there ends: "switch leaf1, port 3"
};

// "REMOTE_READ, REMOTE_WRITE"; "none"
std::string access_names(std::uint64_t flags);

// "ib_write_bw (pid 12, node0, softib0, QP 0x11)"
std::string name_of(const Party& party);

// The range of the key that the request names, as far as the key exists.
struct KeyRange {
  std::uint64_t first = 0;
  std::uint64_t length = 0;
};

// One line. `peer` is there as far as softibd has it (its process may be gone); `place` is for
// PeerUnknown and causes of the way, `range` for LocalKeyRange and RemoteKeyRange.
std::string explain_error(const verbs::control::TraceErrorIn& error, const Party& self,
                          const std::optional<Party>& peer, const PeerPlace& place = {},
                          const std::optional<KeyRange>& range = {});

// Why a way through switches ends; `end`: where, as PeerPlace::way_end.
std::string explain_way(const verbs::control::TraceErrorIn& error, const std::string& end);

// A request that ibv_post_* or ibv_wr_complete did not take; empty: `error` is about another thing.
std::string explain_refusal(const verbs::control::TraceErrorIn& error);

// An interface of IP over InfiniBand that cannot reach a GID, or nothing (verbs/ip_trouble.h);
// empty: `error` is about another thing. `port`: that which has the GID; may be empty.
std::string explain_ip_trouble(const verbs::control::TraceErrorIn& error, const std::string& port);
// Zero unless `error` is one that has a GID.
verbs::Gid ip_trouble_gid(const verbs::control::TraceErrorIn& error);

}  // namespace ib::drivers
