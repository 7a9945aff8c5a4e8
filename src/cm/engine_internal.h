// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of the engine, each of which has a header of its own: what all share, and a part for
// each procedure of connections and for SIDR. Here: which part gets a message, and when.
#pragma once

#include "cm/admission_internal.h"
#include "cm/connection_states_internal.h"
#include "cm/engine.h"
#include "cm/outbox_internal.h"
#include "cm/ports_internal.h"
#include "cm/procedures/accept_internal.h"
#include "cm/procedures/connect_internal.h"
#include "cm/procedures/disconnect_internal.h"
#include "cm/procedures/migrate_internal.h"
#include "cm/procedures/refuse_internal.h"
#include "cm/procedures/sidr_internal.h"

#include <optional>

namespace ib::cm {

class Engine::Impl {
 public:
  explicit Impl(const Config& config);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void receive(const mad::Mad& mad, const MadAddress& from, Instant now);
  void on_time(Instant now);
  std::optional<Event> poll_event();
  std::optional<Instant> deadline() const;

  const Config config;
  Outbox outbox;
  Admission admission;
  Ports ports;
  ConnectionStates states;
  Refusals refusals;
  Disconnection disconnection;
  ActiveSide active;
  PassiveSide passive;
  PathMigration migration;
  SidrExchanges sidr;

 private:
  void answer_get(const mad::Mad& mad, const MadAddress& from);
  void answer_version(Attribute attribute, const mad::Mad& mad, const MadAddress& from);
};

}  // namespace ib::cm
