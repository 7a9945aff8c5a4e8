// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The data of connections, and their ends; making them is in connecting.cpp.
#include "ipoib/connections.h"

#include "ipoib/offload_word.h"

#include <utility>

namespace ib::ipoib::driver {

using verbs::QpState;
namespace qp_attr = verbs::qp_attr;

namespace {

// The place for another header before the message, and the longest one (see transmitter.cpp).
constexpr std::size_t kBefore = 64;
constexpr std::size_t kStride = (64u << 10) + 192;
static_assert(kBefore >= kHeadroom && kStride - kBefore >= kConnectionBufferBytes);
constexpr std::size_t kRoom = kStride - kBefore;

}  // namespace

Result<std::unique_ptr<Connections>> Connections::create(const Station& station,
                                                         const Objects& objects,
                                                         Transmitter& transmitter, Sink& sink) {
  IB_TRY(memory, RegisteredMemory::create(station.hca, *objects.pd, kReceives * kStride));
  user::SrqOptions options;
  options.pd = objects.pd.get();
  options.max_wr = kReceives;
  options.max_sge = 1;
  IB_TRY(receives, station.hca.create_srq(options));
  std::unique_ptr<Connections> made(
      new Connections(station, objects, transmitter, sink, std::move(memory), std::move(receives)));
  for (std::uint32_t i = 0; i < kReceives; ++i) made->post_receive(kReceiveBit | i);
  return made;
}

Connections::Connections(const Station& station, const Objects& objects, Transmitter& transmitter,
                         Sink& sink, std::unique_ptr<RegisteredMemory> memory,
                         std::unique_ptr<user::SharedReceiveQueue> receives)
    : station_(station),
      objects_(objects),
      transmitter_(transmitter),
      sink_(sink),
      memory_(std::move(memory)),
      receives_(std::move(receives)),
      cm_(station.services),
      random_(std::random_device{}()) {}

Connections::~Connections() {
  for (auto& [id, connection] : connections_) dying_.push_back(std::move(connection.queue_pair));
  tidy();
  (void)receives_->destroy();
}

void Connections::set_port(const PortState& port, std::uint16_t pkey_index) {
  port_ = port;
  pkey_index_ = pkey_index;
}

Connections::Connection* Connections::find(ConnectionId id) {
  const auto found = connections_.find(static_cast<std::uint32_t>(id));
  return found == connections_.end() ? nullptr : &found->second;
}

bool Connections::send(ConnectionId id, const Outgoing& message) {
  Connection* const connection = find(id);
  if (connection == nullptr || connection->phase != Phase::Established) return false;
  if (!put_offload(message.offload, request_)) return false;
  return transmitter_.post(*connection->queue_pair, request_, message);
}

std::uint32_t Connections::peer_qpn(ConnectionId id) const {
  const auto found = connections_.find(static_cast<std::uint32_t>(id));
  return found == connections_.end() ? 0 : found->second.peer_qpn;
}

std::span<std::byte> Connections::buffer(std::uint64_t wr_id) const {
  const std::uint64_t number = (wr_id & ~kReceiveBit) % kReceives;
  return memory_->bytes().subspan(number * kStride + kBefore, kRoom);
}

void Connections::post_receive(std::uint64_t wr_id) {
  const user::Sge sge = memory_->sge(buffer(wr_id));
  (void)receives_->post_recv(wr_id, std::span(&sge, 1));
}

std::optional<Connections::Received> Connections::read(const user::Completion& completion) {
  const auto known = of_queue_pair_.find(completion.qpn);
  const std::span<std::byte> bytes = buffer(completion.wr_id);
  if (known == of_queue_pair_.end() || completion.byte_len > bytes.size()) return {};
  Received received;
  received.id = known->second;
  received.message.bytes = bytes.first(completion.byte_len);
  if (!take_offload(completion, received.message.offload)) return {};
  return received;
}

void Connections::on_error(std::uint32_t qpn) {
  const auto known = of_queue_pair_.find(qpn);
  if (known != of_queue_pair_.end()) lose(known->second, Status::Disconnected);
}

void Connections::disconnect(ConnectionId id) {
  forget(id);
}

// The interface hears of it in deliver().
void Connections::lose(ConnectionId id, Status reason) {
  if (find(id) == nullptr) return;
  forget(id);
  lost_.emplace_back(id, reason);
}

// The other side is told by the communication manager, as the state of the connection demands.
void Connections::forget(ConnectionId id) {
  const auto found = connections_.find(static_cast<std::uint32_t>(id));
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (connection.handle != 0) (void)cm_.destroy(connection.handle);
  if (connection.queue_pair != nullptr) {
    of_queue_pair_.erase(connection.queue_pair->qpn());
    user::control::QpAttr attr;
    attr.state = QpState::Error;
    (void)connection.queue_pair->modify(qp_attr::kState, attr);
    dying_.push_back(std::move(connection.queue_pair));
  }
  connections_.erase(found);
}

void Connections::deliver() {
  for (const auto& [id, reason] : std::exchange(lost_, {})) sink_.on_connection_lost(id, reason);
}

void Connections::tidy() {
  for (const auto& queue_pair : dying_) {
    const std::uint32_t qpn = queue_pair->qpn();
    (void)queue_pair->destroy();
    transmitter_.abandon(qpn);
  }
  dying_.clear();
}

}  // namespace ib::ipoib::driver
