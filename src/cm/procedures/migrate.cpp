// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Alternate paths of an established connection: LAP of the active side, APR of the passive side
// [IBA1 12.8].
#include "cm/paths_internal.h"
#include "cm/procedures/migrate_internal.h"
#include "cm/timeouts.h"

#include <algorithm>
#include <utility>

namespace ib::cm {

Status PathMigration::load_alternate_path(ConnectionId id, const Path& path, ByteSpan private_data,
                                          Instant now) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  ConnectionInfo& info = connection->info;
  if (!fits(path) || private_data.size() > kLapPrivateBytes || path.pkey != info.primary.pkey) {
    return Status::InvalidParameter;
  }
  auto* established = connection->in<state::Established>();
  if (established == nullptr || info.role != Role::Active || connection->lap_sent() != nullptr) {
    return Status::InvalidState;
  }
  Lap lap;
  lap.ids = ids_of(*connection, outbox_.next_transaction());
  lap.remote_qpn = info.remote_qpn;
  lap.remote_cm_response_timeout = info.remote_cm_response_timeout;
  lap.alternate = path;
  lap.alternate.ack_timeout = ack_timeout(config_.ack_delay, path.packet_lifetime);
  lap.private_data = Bytes<kLapPrivateBytes>(private_data);
  Resend sent = states_.send_first(*connection, encode(lap));
  connections_.set_deadline(*connection, now + sent.interval);
  established->path_change = std::make_unique<state::PathChange>(
      state::LapSent{std::move(sent), lap.ids.transaction_id, lap.alternate});
  return Status::Ok;
}

void PathMigration::refuse_lap(const Lap& lap, const MadAddress& to, AlternatePathStatus status) {
  Apr apr;
  apr.ids = {lap.ids.transaction_id, lap.ids.remote, lap.ids.local};
  apr.status = static_cast<std::uint8_t>(status);
  outbox_.send(to, encode(apr));
}

// `path` is as this side has it.
std::optional<AlternatePathStatus> PathMigration::fault_of(const Connection& connection,
                                                           const Lap& lap, const Path& path) const {
  const ConnectionInfo& info = connection.info;
  if (info.role != Role::Passive) return AlternatePathStatus::NotSupported;
  if (lap.remote_qpn != info.local_qpn) return AlternatePathStatus::InvalidQpn;
  if (const auto fault = ports_.address_fault(path, false, info.primary.port)) {
    return fault->reason == RejectReason::InvalidAltLid ? AlternatePathStatus::InvalidLid
                                                        : AlternatePathStatus::InvalidGid;
  }
  const Path& primary = info.primary;
  const bool is_primary = path.sgid == primary.sgid && path.dgid == primary.dgid &&
                          path.slid == primary.slid && path.dlid == primary.dlid;
  if (is_primary) return AlternatePathStatus::IsCurrent;
  return std::nullopt;
}

void PathMigration::on_lap(const mad::Mad& mad, const MadAddress& from) {
  const Lap lap = decode_lap(mad);
  Connection* const connection = states_.find(lap.ids);
  if (connection == nullptr) return refuse_lap(lap, from, AlternatePathStatus::InvalidCommId);
  auto* established = connection->in<state::Established>();
  if (established == nullptr) {
    ++outbox_.counters()
          .wrong_state;  // the other side sends it again when its RTU has come, or ends
    return;
  }
  if (auto* received = connection->lap_received()) {
    ++outbox_.counters().duplicates;
    if (received->mra) states_.send(*connection, *received->mra);
    return;
  }
  state::LapHistory transactions{};
  if (auto* answered = connection->lap_answered()) {
    transactions = answered->transactions;
    const auto known = std::find(transactions.begin(), transactions.end(), lap.ids.transaction_id);
    if (known != transactions.end()) {
      ++outbox_.counters().duplicates;
      if (known == transactions.begin()) states_.send(*connection, *answered->apr);
      return;
    }
    std::shift_right(transactions.begin(), transactions.end(), 1);
  }
  transactions.front() = lap.ids.transaction_id;
  Path path = ports_.received_path(lap.alternate, from);
  path.pkey = connection->info.primary.pkey;
  if (const auto fault = fault_of(*connection, lap, path)) return refuse_lap(lap, from, *fault);
  established->path_change =
      std::make_unique<state::PathChange>(state::LapReceived{transactions, path, nullptr});
  AlternatePathOffered event;
  event.path = path;
  event.private_data = PrivateData(lap.private_data.view());
  states_.emit(*connection, event);
}

Status PathMigration::answer_alternate_path(ConnectionId id, const AlternatePathAnswer& answer) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  if (answer.info.size() > kAdditionalInfoBytes || answer.private_data.size() > kAprPrivateBytes) {
    return Status::InvalidParameter;
  }
  auto* received = connection->lap_received();
  if (received == nullptr) return Status::InvalidState;
  Apr apr;
  apr.ids = ids_of(*connection, received->transactions.front());
  apr.status = static_cast<std::uint8_t>(answer.status);
  apr.info = AdditionalInfo(answer.info);
  apr.private_data = Bytes<kAprPrivateBytes>(answer.private_data);
  const mad::Mad mad = encode(apr);
  states_.send(*connection, mad);
  if (answer.status == AlternatePathStatus::Loaded) connection->info.alternate = received->path;
  connection->in<state::Established>()->path_change =
      std::make_unique<state::PathChange>(state::LapAnswered{received->transactions, keep(mad)});
  return Status::Ok;
}

void PathMigration::on_apr(const mad::Mad& mad) {
  const auto apr = decode_apr(mad);
  if (!apr) {
    ++outbox_.counters().malformed;
    return;
  }
  Connection* const connection = states_.find(apr->ids);
  if (connection == nullptr) return;
  auto* sent = connection->lap_sent();
  if (sent == nullptr || sent->transaction_id != apr->ids.transaction_id) {
    ++outbox_.counters().wrong_state;  // doubled, or the answer to an older LAP
    return;
  }
  AlternatePathAnswered event;
  event.status = static_cast<AlternatePathStatus>(apr->status);
  event.info = apr->info;
  event.private_data = PrivateData(apr->private_data.view());
  if (event.status == AlternatePathStatus::Loaded) connection->info.alternate = sent->path;
  connection->in<state::Established>()->path_change.reset();
  connections_.set_deadline(*connection, std::nullopt);
  states_.emit(*connection, event);
}

Status PathMigration::path_has_migrated(ConnectionId id) {
  Connection* const connection = states_.owned(id);
  if (connection == nullptr) return Status::NotFound;
  ConnectionInfo& info = connection->info;
  if (connection->in<state::Established>() == nullptr || !info.alternate) {
    return Status::InvalidState;
  }
  info.primary = *std::exchange(info.alternate, std::nullopt);
  info.peer = address_of(info.primary);
  return Status::Ok;
}

}  // namespace ib::cm
