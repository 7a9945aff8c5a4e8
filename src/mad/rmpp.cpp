// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "mad/rmpp.h"

#include <algorithm>
#include <cstring>

namespace ib::mad {
namespace {

constexpr std::uint32_t kLargestReplyWindow = 64;

}  // namespace

Rmpp::Key Rmpp::key_of(const MadHeader& header, bool other_direction) {
  const auto method = static_cast<std::uint8_t>(
      header.method ^ (other_direction ? method::kResponseBit : std::uint8_t{0}));
  return {header.transaction_id, header.mgmt_class, header.class_version, method};
}

Rmpp::Id Rmpp::find(const Index& index, const Key& key, const Peer& peer) const {
  for (auto [at, end] = index.equal_range(key); at != end; ++at) {
    if (transfers_.at(at->second).peer.is(peer)) return at->second;
  }
  return 0;
}

Result<Rmpp::Id> Rmpp::send(const Peer& to, std::vector<std::byte> message, bool is_answered,
                            Instant now) {
  if (message.size() < sizeof(MadHeader)) return Status::InvalidParameter;
  const MadHeader header = header_of(message);
  if (!has_rmpp(header.mgmt_class) || message.size() < header_size(header.mgmt_class)) {
    return Status::InvalidParameter;
  }
  if (sending_.count >= options_.max_sends ||
      sending_.bytes + message.size() > options_.max_sent_bytes) {
    return Status::LimitExceeded;
  }
  RmppSender::Options how = options_.send;
  if (const Id request = find(receivers_, key_of(header, true), to); request != 0) {
    how.window =
        std::clamp(transfers_.at(request).receiver->reply_window(), 1u, kLargestReplyWindow);
  }
  const Id id = ++last_;
  Transfer& transfer = transfers_[id];
  transfer.key = key_of(header, false);
  transfer.peer = to;
  transfer.is_answered = is_answered;
  transfer.bytes = message.size();
  sending_.bytes += transfer.bytes;
  transfer.sender.emplace(std::move(message), how, now);
  senders_.emplace(transfer.key, id);
  ++sending_.count;
  wake(id);
  return id;
}

void Rmpp::cancel(Id id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  Transfer& transfer = found->second;
  transfer.is_silent = true;
  if (transfer.sender) transfer.sender->abort(RmppStatus::Unspecified);
  if (transfer.receiver) transfer.receiver->abort(RmppStatus::Unspecified);
  wake(id);
}

Rmpp::Id Rmpp::on_packet(const Peer& from, const Mad& mad, bool may_start, Instant now) {
  const MadHeader header = header_of(mad);
  const RmppHeader rmpp = rmpp_header_of(mad);
  if (!has_rmpp(header.mgmt_class)) return 0;
  const auto type = static_cast<RmppType>(rmpp.type);
  if (type == RmppType::Data) return on_data(from, mad, key_of(header, false), may_start, now);
  const bool is_control =
      type == RmppType::Ack || type == RmppType::Stop || type == RmppType::Abort;
  if (is_control) {
    return rmpp.version == kRmppVersion ? on_control(from, mad, header, now) : 0;
  }
  const Id id = find(receivers_, key_of(header, false), from);
  if (id != 0) {
    transfers_.at(id).receiver->abort(RmppStatus::BadType);
    wake(id);
  }
  return id;
}

Rmpp::Id Rmpp::on_data(const Peer& from, const Mad& mad, const Key& key, bool may_start,
                       Instant now) {
  Id id = find(receivers_, key, from);
  if (id == 0 && may_start) id = start_reception(from, mad, key, now);
  if (id == 0) return 0;
  Transfer& transfer = transfers_.at(id);
  transfer.receiver->on_data(mad, quota_.room_of(transfer.peer), now);
  count(transfer);
  wake(id);
  return id;
}

Rmpp::Id Rmpp::start_reception(const Peer& from, const Mad& mad, const Key& key, Instant now) {
  const RmppHeader rmpp = rmpp_header_of(mad);
  if (rmpp.segment != 1 || rmpp.version != kRmppVersion) return 0;
  if (!quota_.start(from)) {
    answer_statelessly(mad, RmppType::Stop, RmppStatus::Resources);
    return 0;
  }
  const Id id = ++last_;
  Transfer& transfer = transfers_[id];
  transfer.key = key;
  transfer.peer = from;
  transfer.receiver.emplace(mad, options_.receive, now);
  receivers_.emplace(key, id);
  return id;
}

void Rmpp::answer_statelessly(const Mad& mad, RmppType type, RmppStatus status) {
  Output output;
  const MadHeader header = header_of(mad);
  const auto size = static_cast<std::ptrdiff_t>(header_size(header.mgmt_class));
  std::copy(mad.begin(), mad.begin() + size, output.packet.begin());
  output.packet[offsetof(MadHeader, method)] ^= std::byte{method::kResponseBit};
  RmppHeader rmpp;
  rmpp.version = kRmppVersion;
  rmpp.type = static_cast<std::uint8_t>(type);
  rmpp.time_flags = kNoResponseTime << 3 | rmpp_flag::kActive;
  rmpp.status = static_cast<std::uint8_t>(status);
  set_rmpp_header(output.packet, rmpp);
  outputs_.push_back(std::move(output));
}

// About what is sent here; or the end of what is received here, or the window of its answer.
Rmpp::Id Rmpp::on_control(const Peer& from, const Mad& mad, const MadHeader& header, Instant now) {
  if (const Id id = find(senders_, key_of(header, true), from); id != 0) {
    transfers_.at(id).sender->on_control(mad, now);
    wake(id);
    return id;
  }
  const Id id = find(receivers_, key_of(header, false), from);
  if (id == 0) return 0;
  RmppReceiver& receiver = *transfers_.at(id).receiver;
  const RmppHeader rmpp = rmpp_header_of(mad);
  const auto type = static_cast<RmppType>(rmpp.type);
  if (type == RmppType::Abort) {
    receiver.on_abort(mad);
    wake(id);
  } else if (type == RmppType::Ack && rmpp.segment == 0) {
    receiver.set_reply_window(rmpp.length_window);
  }
  return id;
}

// The bytes that a reception occupies now.
void Rmpp::count(Transfer& transfer) {
  const std::size_t now = transfer.receiver->bytes();
  if (!transfer.is_counted || now == transfer.bytes) return;
  quota_.change_bytes(transfer.peer, transfer.bytes, now);
  transfer.bytes = now;
}

void Rmpp::uncount(Transfer& transfer) {
  if (!transfer.is_counted) return;
  transfer.is_counted = false;
  if (transfer.sender) {
    --sending_.count;
    sending_.bytes -= transfer.bytes;
    return;
  }
  quota_.end(transfer.peer, transfer.bytes);
  transfer.bytes = 0;
}

std::optional<Rmpp::Output> Rmpp::poll(Instant now) {
  while (true) {
    if (!outputs_.empty()) {
      Output output = std::move(outputs_.front());
      outputs_.pop_front();
      return output;
    }
    if (active_.empty() && !due_.empty() && due_.begin()->first <= now) {
      wake(due_.begin()->second);
    }
    if (active_.empty()) return std::nullopt;
    if (!run(active_.front(), now)) active_.pop_front();
  }
}

std::optional<Instant> Rmpp::next_deadline() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

// Returns whether it may have more to send.
bool Rmpp::run(Id id, Instant now) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return false;
  Transfer& transfer = found->second;
  std::optional<Mad> packet =
      transfer.sender ? transfer.sender->poll(now) : transfer.receiver->poll(now);
  if (packet) {
    report(transfer, {Output::Kind::Packet, id, *packet});
    return true;
  }
  if (transfer.sender) {
    if (transfer.sender->state() != RmppSender::State::Sending) {
      end_send(id, transfer);
      return false;
    }
  } else {
    settle_reception(id, transfer, now);
    if (!transfers_.contains(id)) return false;
  }
  schedule(id, transfer);
  return false;
}

void Rmpp::report(const Transfer& transfer, Output output) {
  const bool is_heard = !transfer.is_silent || output.kind == Output::Kind::Packet ||
                        output.kind == Output::Kind::Over;
  if (is_heard) outputs_.push_back(std::move(output));
}

void Rmpp::end_send(Id id, Transfer& transfer) {
  const RmppSender& sender = *transfer.sender;
  Output output;
  output.id = id;
  if (sender.state() == RmppSender::State::Done) {
    if (transfer.is_answered)
      report(transfer,
             {Output::Kind::Packet, id, sender.reply_permission(options_.receive.window)});
    output.kind = Output::Kind::Sent;
  } else {
    output.kind = Output::Kind::SendFailed;
    output.status = sender.status();
    output.by_peer = sender.was_ended_by_peer();
  }
  report(transfer, std::move(output));
  forget(id);
}

void Rmpp::settle_reception(Id id, Transfer& transfer, Instant now) {
  RmppReceiver& receiver = *transfer.receiver;
  switch (receiver.state()) {
    case RmppReceiver::State::Receiving: return;
    case RmppReceiver::State::Failed: {
      Output output;
      output.kind = Output::Kind::ReceiveFailed;
      output.id = id;
      output.status = receiver.status();
      output.by_peer = receiver.was_ended_by_peer();
      report(transfer, std::move(output));
      return forget(id);
    }
    case RmppReceiver::State::Complete: break;
  }
  if (transfer.is_counted) {
    Output output;
    output.kind = Output::Kind::Received;
    output.id = id;
    output.message = receiver.take_message();
    uncount(transfer);
    report(transfer, std::move(output));
    lingering_.push_back(id);
  }
  if (now >= receiver.next_deadline()) return forget(id);
  while (lingering_.size() > options_.max_lingering) forget(lingering_.front());
}

void Rmpp::schedule(Id id, Transfer& transfer) {
  const std::optional<Instant> due =
      transfer.sender ? transfer.sender->next_deadline() : transfer.receiver->next_deadline();
  if (due == transfer.due) return;
  if (transfer.due) due_.erase({*transfer.due, id});
  transfer.due = due;
  if (due) due_.emplace(*due, id);
}

void Rmpp::forget(Id id) {
  const auto found = transfers_.find(id);
  Transfer& transfer = found->second;
  const bool lingers = !transfer.is_counted;
  uncount(transfer);
  if (transfer.due) due_.erase({*transfer.due, id});
  Index& index = transfer.sender ? senders_ : receivers_;
  for (auto [at, end] = index.equal_range(transfer.key); at != end; ++at) {
    if (at->second != id) continue;
    index.erase(at);
    break;
  }
  if (lingers) std::erase(lingering_, id);
  report(transfer, {Output::Kind::Over, id});
  transfers_.erase(found);
}

}  // namespace ib::mad
