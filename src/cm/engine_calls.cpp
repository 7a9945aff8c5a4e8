// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The public face of the engine.
#include "cm/engine.h"
#include "cm/engine_internal.h"
#include "cm/timeouts.h"

namespace ib::cm {

Engine::Engine(const Config& config) : impl_(std::make_unique<Impl>(config)) {}
Engine::~Engine() = default;

void Engine::set_port(const PortFacts& facts) {
  impl_->ports.set(facts);
}
Result<ListenerId> Engine::listen(const Listen& listen) {
  return impl_->admission.listeners().add(listen);
}
void Engine::destroy(ListenerId id) {
  impl_->admission.listeners().remove(id);
}

Result<ConnectionId> Engine::connect(const ConnectRequest& request, Instant now) {
  return impl_->active.connect(request, now);
}
Status Engine::establish(ConnectionId id, ByteSpan private_data, Instant) {
  return impl_->active.establish(id, private_data);
}
Status Engine::accept(ConnectionId id, const Reply& reply, Instant now) {
  return impl_->passive.accept(id, reply, now);
}
Status Engine::data_has_arrived(ConnectionId id, Instant) {
  return impl_->passive.data_has_arrived(id);
}
Status Engine::reject(ConnectionId id, const Reject& reject, Instant now) {
  return impl_->refusals.reject(id, reject, now);
}
Status Engine::delay(ConnectionId id, std::uint8_t service_timeout, ByteSpan private_data, Instant,
                     bool for_copies) {
  return impl_->refusals.delay(id, service_timeout, private_data, for_copies);
}
Status Engine::disconnect(ConnectionId id, ByteSpan private_data, Instant now) {
  return impl_->disconnection.disconnect(id, private_data, now);
}
Status Engine::confirm_disconnect(ConnectionId id, ByteSpan private_data, Instant now) {
  return impl_->disconnection.confirm_disconnect(id, private_data, now);
}
Status Engine::load_alternate_path(ConnectionId id, const Path& path, ByteSpan private_data,
                                   Instant now) {
  return impl_->migration.load_alternate_path(id, path, private_data, now);
}
Status Engine::answer_alternate_path(ConnectionId id, const AlternatePathAnswer& answer, Instant) {
  return impl_->migration.answer_alternate_path(id, answer);
}
Status Engine::path_has_migrated(ConnectionId id) {
  return impl_->migration.path_has_migrated(id);
}
void Engine::destroy(ConnectionId id, Instant now) {
  impl_->disconnection.destroy(id, now);
}
Result<ConnectionInfo> Engine::query(ConnectionId id) const {
  Connection* const connection = impl_->states.owned(id);
  if (connection == nullptr) return Status::NotFound;
  ConnectionInfo info = connection->info;
  info.state = connection->public_state();
  info.waiting = connection->waiting();
  const bool is_active = info.role == Role::Active;
  const auto timeout = [&](const Path& path) {
    return is_active ? ack_timeout(info.target_ack_delay, path.packet_lifetime) : path.ack_timeout;
  };
  info.ack_timeout = timeout(info.primary);
  if (info.alternate) info.alternate_ack_timeout = timeout(*info.alternate);
  info.awaits_path_answer =
      connection->lap_sent() != nullptr || connection->lap_received() != nullptr;
  return info;
}
bool Engine::is_connected(std::uint32_t local_qpn) const {
  return impl_->states.table().has_local_qpn(local_qpn);
}

Result<SidrId> Engine::resolve_sidr(const SidrRequest& request, Instant now) {
  return impl_->sidr.resolve(request, now);
}
Status Engine::answer_sidr(SidrId id, const SidrReply& reply, Instant now) {
  return impl_->sidr.answer(id, reply, now);
}
void Engine::destroy(SidrId id, Instant now) {
  impl_->sidr.destroy(id, now);
}
Waiting Engine::waiting(SidrId id) const {
  return impl_->sidr.waiting(id);
}

void Engine::receive(const mad::Mad& mad, const MadAddress& from, Instant now) {
  impl_->receive(mad, from, now);
}
void Engine::on_time(Instant now) {
  impl_->on_time(now);
}
std::optional<OutgoingMad> Engine::poll_mad() {
  return impl_->outbox.poll_mad();
}
std::optional<Event> Engine::poll_event() {
  return impl_->poll_event();
}
std::optional<Instant> Engine::deadline() const {
  return impl_->deadline();
}

std::vector<ConnectionId> Engine::connections() const {
  return impl_->states.table().ids();
}
std::size_t Engine::connection_count() const {
  return impl_->states.table().size();
}
std::size_t Engine::sidr_count() const {
  return impl_->sidr.size();
}
const Counters& Engine::counters() const {
  return impl_->outbox.counters();
}

}  // namespace ib::cm
