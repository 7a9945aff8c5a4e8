// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PortInterface: making it, its turns of the loop, and the port. The calls of the engine and
// the answers to them are in interface_host.cpp.
#include "ipoib/port_interface.h"

#include "ipoib/announcement.h"
#include "user/services/service_channel.h"
#include "user/take.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

namespace ib::ipoib::driver {

namespace {

constexpr std::uint32_t kFramesPerTurn = 64;
constexpr std::uint32_t kCompletionsPerTurn = 128;
constexpr std::uint32_t kBatch = 16;
constexpr Duration kLogAgainAfter = std::chrono::seconds(60);
constexpr std::uint32_t kDatagramMtu = 2044;
constexpr std::uint32_t kSendCompletions = Transmitter::kRequests + 64;
// Of both kinds of receives, and those that the flush of queue pairs brings.
constexpr std::uint32_t kReceiveCompletions = 2 * (DatagramEnd::kReceives + Connections::kReceives);

std::string words(Status status) {
  return user::last_reason().empty() ? status_text(status) : user::last_reason();
}

Result<std::unique_ptr<user::CompletionQueue>> new_queue(const Station& station,
                                                         std::uint32_t entries) {
  user::control::CreateCqIn in;
  in.cqe = entries;
  in.channel = station.completions.handle();
  return station.hca.create_cq(in);
}

using Batch = std::array<user::Completion, kBatch>;

std::span<const user::Completion> take_some(user::CompletionQueue& queue, Batch& batch) {
  std::size_t count = 0;
  queue.lock();
  while (count < batch.size() && queue.take(batch[count])) ++count;
  queue.unlock();
  return std::span(batch).first(count);
}

}  // namespace

Result<std::unique_ptr<PortInterface>> PortInterface::create(os::net::NodeNetwork& network,
                                                             const Station& station,
                                                             const InterfaceOptions& options,
                                                             std::string& reason) {
  std::unique_ptr<PortInterface> made(new PortInterface(network, station, options));
  IB_CHECK(made->make_objects(reason));
  Settings settings;
  settings.port_guid = options.port_guid;
  settings.pkey = station.pkey;
  settings.qpn = made->datagrams_->qpn();
  settings.connected_mode = options.connected_mode;
  settings.seed = options.port_guid ^ static_cast<std::uint64_t>(station.pkey);
  made->engine_ = std::make_unique<Interface>(settings, static_cast<Host&>(*made));
  IB_CHECK(made->make_kernel_interface(reason));
  made->open_services();
  return made;
}

Status PortInterface::make_objects(std::string& reason) {
  const auto fail = [&reason](Status status) {
    reason = words(status);
    return status;
  };
  auto pd = station_.hca.alloc_pd();
  if (!pd) return fail(pd.error());
  objects_.pd = *std::move(pd);
  auto sends = new_queue(station_, kSendCompletions);
  if (!sends) return fail(sends.error());
  objects_.sends = *std::move(sends);
  auto receives = new_queue(station_, kReceiveCompletions);
  if (!receives) return fail(receives.error());
  objects_.receives = *std::move(receives);
  auto transmitter = Transmitter::create(station_.hca, *objects_.pd);
  if (!transmitter) return fail(transmitter.error());
  transmitter_ = *std::move(transmitter);
  auto datagrams = DatagramEnd::create(station_, objects_);
  if (!datagrams) return fail(datagrams.error());
  datagrams_ = *std::move(datagrams);
  if (!options_.connected_mode) return Status::Ok;
  auto connections = Connections::create(station_, objects_, *transmitter_,
                                         static_cast<Connections::Sink&>(*this));
  if (!connections) return fail(connections.error());
  connections_ = *std::move(connections);
  return Status::Ok;
}

Status PortInterface::make_kernel_interface(std::string& reason) {
  os::net::InterfaceSpec spec;
  spec.port = options_.number;
  spec.pkey = options_.is_child ? static_cast<std::uint16_t>(station_.pkey) : std::uint16_t{0};
  spec.mac = engine_->mac().bytes;
  mtu_ = options_.connected_mode ? kConnectedMtu : kDatagramMtu;
  spec.mtu = {mtu_};
  spec.port_guid = options_.port_guid;
  auto made = network_.add(spec, reason);
  if (!made) return made.error();
  kernel_ = *made;
  if (options_.capture.empty()) return Status::Ok;
  auto capture = Capture::create(
      fmt::format("{}.{}.{}.pcap", options_.capture, network_.place().node, name()));
  if (capture) {
    capture_ = *std::move(capture);
  } else {
    log("no capture: the file cannot be written");
  }
  return Status::Ok;
}

PortInterface::~PortInterface() {
  if (kernel_ != nullptr) engine_->stop(now_);
  connections_.reset();
  subnet_.reset();
  engine_.reset();
  datagrams_.reset();
  transmitter_.reset();
  if (objects_.receives != nullptr) (void)objects_.receives->destroy();
  if (objects_.sends != nullptr) (void)objects_.sends->destroy();
  if (objects_.pd != nullptr) (void)objects_.pd->destroy();
  if (kernel_ != nullptr) {
    (void)kernel_->set_carrier(false);
    if (!stays_) network_.remove(*kernel_);
  }
}

void PortInterface::open_services() {
  reopen_.reset();
  subnet_ = std::make_unique<SubnetClient>(station_, static_cast<SubnetClient::Sink&>(*this));
  if (subnet_->open() != Status::Ok) reopen_later();
  if (connections_ == nullptr) return;
  if (connections_->open(datagrams_->qpn()) != Status::Ok) {
    log("connected mode: " + user::last_reason());
  }
}

bool PortInterface::is_settled() const {
  return kernel_->has_carrier() || !port_.state.active || !port_.state.has_pkey;
}

void PortInterface::on_port(const PortReading& port) {
  const bool moved = port.pkey_index != port_.pkey_index;
  const bool slept = port_.is_asleep;
  if (port.is_asleep) {
    port_.is_asleep = true;
    return show_link();
  }
  port_ = port;
  if (slept) show_link();
  if (port.state.has_pkey && (!started_ || moved)) {
    started_ = datagrams_->start(port.pkey_index, *transmitter_) == Status::Ok;
    if (!started_) log("datagrams: " + user::last_reason());
  }
  if (connections_ != nullptr) connections_->set_port(port.state, port.pkey_index);
  give_port();
  if (!port.state.has_pkey && started_) stop_datagrams();
}

// The engine has ended memberships and connections; the queue pair would still be in the partition.
void PortInterface::stop_datagrams() {
  started_ = false;
  broken_ = false;
  if (datagrams_->stop(*transmitter_) != Status::Ok) log("datagrams: " + user::last_reason());
}

// The engine sends requests at once, so it gets the port when the services are there.
void PortInterface::give_port() {
  if (started_ && subnet_->is_open()) engine_->on_port(port_.state, now_);
}

void PortInterface::read_frames() {
  if (!std::exchange(frames_wait_, false)) return;
  for (std::uint32_t n = 0; n < kFramesPerTurn; ++n) {
    const auto buffer = transmitter_->take();
    if (!buffer) return;
    const std::span<std::byte> bytes = transmitter_->bytes(*buffer);
    const ssize_t got = ::read(tap(), bytes.data(), os::net::kMaxFrameBytes);
    const bool whole =
        got >= static_cast<ssize_t>(os::net::kVnetHeaderBytes + os::net::kEthernetHeaderBytes);
    if (whole) {
      Frame frame;
      std::memcpy(&frame.header, bytes.data(), sizeof frame.header);
      frame.bytes = bytes.subspan(os::net::kVnetHeaderBytes,
                                  static_cast<std::size_t>(got) - os::net::kVnetHeaderBytes);
      engine_->on_frame(frame, now_);
    }
    transmitter_->let_go(*buffer);
    reap_sends();
    if (!whole) return;  // the kernel has no more, or the interface is down
  }
}

void PortInterface::reap_sends() {
  user::CompletionQueue& queue = *objects_.sends;
  while (!queue.is_idle()) {
    Batch batch;
    const auto taken = take_some(queue, batch);
    if (taken.empty()) return;
    for (const user::Completion& each : taken) {
      transmitter_->complete(each.wr_id);
      if (each.status != verbs::WcStatus::Success) on_failed_completion(each);
    }
  }
}

bool PortInterface::poll_completions() {
  drained_ = !take_receives();
  reap_sends();
  return !drained_;
}

bool PortInterface::take_receives() {
  user::CompletionQueue& queue = *objects_.receives;
  for (std::uint32_t taken = 0; taken < kCompletionsPerTurn;) {
    if (queue.is_idle()) return false;
    Batch batch;
    const auto some = take_some(queue, batch);
    if (some.empty()) return false;
    for (const user::Completion& each : some) {
      if (each.status != verbs::WcStatus::Success) on_failed_completion(each);
      if ((each.wr_id & Connections::kReceiveBit) != 0) {
        on_connection_message(each);
      } else {
        on_datagram(each);
      }
    }
    taken += static_cast<std::uint32_t>(some.size());
  }
  return true;
}

void PortInterface::on_datagram(const user::Completion& completion) {
  if (completion.status == verbs::WcStatus::Success) {
    if (const auto received = datagrams_->read(completion)) {
      if (capture_ != nullptr) capture_datagram(*received, completion);
      engine_->on_datagram(received->source, received->message, now_);
    }
  }
  // One that is broken or stopped gets all its receives when it is started again.
  if (started_ && !broken_) datagrams_->post_receive(completion.wr_id);
}

void PortInterface::on_connection_message(const user::Completion& completion) {
  if (connections_ == nullptr) return;
  if (completion.status == verbs::WcStatus::Success) {
    if (const auto received = connections_->read(completion)) {
      if (capture_ != nullptr) capture_connection(received->id, received->message.bytes);
      engine_->on_connection_message(received->id, received->message, now_);
    }
  }
  connections_->post_receive(completion.wr_id);
}

void PortInterface::on_failed_completion(const user::Completion& completion) {
  if (Qpn{completion.qpn} != datagrams_->qpn()) {
    if (connections_ != nullptr) connections_->on_error(completion.qpn);
    return;
  }
  // A request alone may fail (the queue pair is in Rts then).
  if (datagrams_->is_broken()) broken_ = true;
}

void PortInterface::recover() {
  broken_ = false;
  started_ = datagrams_->start(port_.pkey_index, *transmitter_) == Status::Ok;
  if (!started_) return log("the datagram queue pair is in error: " + user::last_reason());
  ++recoveries_;
  if (recovery_logged_ && now_ < *recovery_logged_ + kLogAgainAfter) return;
  recovery_logged_ = now_;
  log(fmt::format("the datagram queue pair was in error and was started again ({} in all)",
                  recoveries_));
}

void PortInterface::announce() {
  for (const Ipv4Address& address : addresses_of(name())) {
    Announcement frame = announcement_of(engine_->mac(), address);
    engine_->on_frame({VirtioHeader{}, frame}, now_);
  }
}

void PortInterface::on_time() {
  const auto deadline = engine_->next_deadline();
  if (deadline && *deadline <= now_) engine_->on_time(now_);
  if (reopen_ && *reopen_ <= now_) open_services();
}

bool PortInterface::finish_turn() {
  if (broken_) recover();
  if (std::exchange(announce_, false)) announce();
  if (subnet_->has_answers()) subnet_->deliver();
  if (connections_ != nullptr) {
    if (connections_->has_losses()) connections_->deliver();
    if (drained_) connections_->tidy();
  }
  return subnet_->has_answers() || (connections_ != nullptr && connections_->has_losses());
}

void PortInterface::arm() {
  if (!receives_armed_) objects_.receives->arm(false);
  receives_armed_ = true;
  if (!sends_armed_ && transmitter_->under_way() != 0) {
    objects_.sends->arm(false);
    sends_armed_ = true;
  }
}

void PortInterface::on_completion_event(std::uint64_t queue) {
  if (queue == objects_.receives->index()) receives_armed_ = false;
  if (queue == objects_.sends->index()) sends_armed_ = false;
}

}  // namespace ib::ipoib::driver
