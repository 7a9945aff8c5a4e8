// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PathMigration: alternate paths of an established connection: LAP of the active side, APR of the
// passive side [IBA1 12.8].
#pragma once

#include "cm/connection_states_internal.h"
#include "cm/messages/lap.h"
#include "cm/ports_internal.h"

#include <optional>

namespace ib::cm {

class PathMigration {
 public:
  PathMigration(const Config& config, Outbox& outbox, const Ports& ports, ConnectionStates& states)
      : config_(config),
        outbox_(outbox),
        ports_(ports),
        states_(states),
        connections_(states.table()) {}

  // As of the engine.
  Status load_alternate_path(ConnectionId id, const Path& path, ByteSpan private_data, Instant now);
  Status answer_alternate_path(ConnectionId id, const AlternatePathAnswer& answer);
  Status path_has_migrated(ConnectionId id);
  void on_lap(const mad::Mad& mad, const MadAddress& from);
  void on_apr(const mad::Mad& mad);

 private:
  std::optional<AlternatePathStatus> fault_of(const Connection& connection, const Lap& lap,
                                              const Path& path) const;
  void refuse_lap(const Lap& lap, const MadAddress& to, AlternatePathStatus status);

  const Config& config_;
  Outbox& outbox_;
  const Ports& ports_;
  ConnectionStates& states_;
  ConnectionTable& connections_;
};

}  // namespace ib::cm
