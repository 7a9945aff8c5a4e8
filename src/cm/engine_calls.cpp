// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The public face of the engine.
#include "cm/engine.h"
#include "cm/engine_internal.h"

namespace ib::cm {

Engine::Engine(const Config& config) : impl_(std::make_unique<Impl>(config)) {}
Engine::~Engine() = default;

void Engine::set_port(const PortFacts& facts) {
  impl_->set_port(facts);
}
Result<ListenerId> Engine::listen(const Listen& listen) {
  return impl_->listeners.add(listen);
}
void Engine::destroy(ListenerId id) {
  impl_->listeners.remove(id);
}

Result<ConnectionId> Engine::connect(const ConnectRequest& request, Instant now) {
  return impl_->connect(request, now);
}
Status Engine::establish(ConnectionId id, ByteSpan private_data, Instant) {
  return impl_->establish(id, private_data);
}
Status Engine::accept(ConnectionId id, const Reply& reply, Instant now) {
  return impl_->accept(id, reply, now);
}
Status Engine::data_has_arrived(ConnectionId id, Instant) {
  return impl_->data_has_arrived(id);
}
Status Engine::reject(ConnectionId id, const Reject& reject, Instant now) {
  return impl_->reject(id, reject, now);
}
Status Engine::delay(ConnectionId id, std::uint8_t service_timeout, ByteSpan private_data, Instant,
                     bool for_copies) {
  return impl_->delay(id, service_timeout, private_data, for_copies);
}
Status Engine::disconnect(ConnectionId id, ByteSpan private_data, Instant now) {
  return impl_->disconnect(id, private_data, now);
}
Status Engine::confirm_disconnect(ConnectionId id, ByteSpan private_data, Instant now) {
  return impl_->confirm_disconnect(id, private_data, now);
}
Status Engine::load_alternate_path(ConnectionId id, const Path& path, ByteSpan private_data,
                                   Instant now) {
  return impl_->load_alternate_path(id, path, private_data, now);
}
Status Engine::answer_alternate_path(ConnectionId id, const AlternatePathAnswer& answer, Instant) {
  return impl_->answer_alternate_path(id, answer);
}
Status Engine::path_has_migrated(ConnectionId id) {
  return impl_->path_has_migrated(id);
}
void Engine::destroy(ConnectionId id, Instant now) {
  impl_->destroy(id, now);
}
Result<ConnectionInfo> Engine::query(ConnectionId id) const {
  return impl_->query(id);
}
bool Engine::is_connected(std::uint32_t local_qpn) const {
  return impl_->connections.has_local_qpn(local_qpn);
}

Result<SidrId> Engine::resolve_sidr(const SidrRequest& request, Instant now) {
  return impl_->resolve_sidr(request, now);
}
Status Engine::answer_sidr(SidrId id, const SidrReply& reply, Instant now) {
  return impl_->answer_sidr(id, reply, now);
}
void Engine::destroy(SidrId id, Instant now) {
  impl_->destroy(id, now);
}
Waiting Engine::waiting(SidrId id) const {
  return impl_->waiting(id);
}

void Engine::receive(const mad::Mad& mad, const MadAddress& from, Instant now) {
  impl_->receive(mad, from, now);
}
void Engine::on_time(Instant now) {
  impl_->on_time(now);
}
std::optional<OutgoingMad> Engine::poll_mad() {
  return impl_->poll_mad();
}
std::optional<Event> Engine::poll_event() {
  return impl_->poll_event();
}
std::optional<Instant> Engine::deadline() const {
  return impl_->deadline();
}

std::vector<ConnectionId> Engine::connections() const {
  return impl_->connections.ids();
}
std::size_t Engine::connection_count() const {
  return impl_->connections.size();
}
std::size_t Engine::sidr_count() const {
  return impl_->sidr.size();
}
const Counters& Engine::counters() const {
  return impl_->counters;
}

}  // namespace ib::cm
