// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of an open file, checked as ib_umad checks them, and the MADs that wait for its
// reader. Sending and matching are the service's (umad_service.cpp).
#include "services/umad/umad_file.h"

#include "mad/mgmt_class.h"
#include "mad/rmpp_header.h"
#include "services/umad/umad_service.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ib::services {
namespace {

using verbs::control::kUmadAgents;
using verbs::control::kUmadHeader;
using verbs::control::kUmadHeaderWithPkey;
using verbs::control::kUmadLeastWritten;
using verbs::control::kUmadMadBytes;
using verbs::control::kUmadMostWritten;
using verbs::control::UmadDone;

std::uint8_t class_of(std::span<const std::byte> mad) {
  return std::to_integer<std::uint8_t>(mad[offsetof(mad::MadHeader, mgmt_class)]);
}

}  // namespace

UmadFile::UmadFile(UmadService& service, UmadReader& reader, std::uint32_t port, UmadOpener opener)
    : service_(service), reader_(reader), port_(port), opener_(std::move(opener)) {
  service_.files().add(*this);
}

UmadFile::~UmadFile() {
  service_.files().remove(*this);
  for (const UmadAgentNumber agent : agents_) service_.remove_agent(agent);
}

std::size_t UmadFile::agents() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(agents_, [](auto one) { return one != 0; }));
}

std::size_t UmadFile::header_size() const {
  return has_pkeys_ ? kUmadHeaderWithPkey : kUmadHeader;
}

UmadDone UmadFile::done(Status status) const {
  UmadDone out;
  out.status = static_cast<std::uint32_t>(status);
  out.header_size = static_cast<std::uint32_t>(header_size());
  for (std::uint32_t id = 0; id < kUmadAgents; ++id) {
    if (agents_[id] != 0) out.agents |= 1u << id;
  }
  return out;
}

// --- agents ---

UmadDone UmadFile::enable_pkey() {
  if (is_used_) return done(Status::InvalidParameter);
  has_pkeys_ = true;
  return done(Status::Ok);
}

UmadDone UmadFile::add_agent(const UmadRegisterIn& in) {
  UmadRegistration what;
  what.qpn = in.qpn;
  what.mgmt_class = in.mgmt_class;
  what.class_version = in.class_version;
  what.oui = std::uint32_t{in.oui[0]} << 16 | std::uint32_t{in.oui[1]} << 8 | in.oui[2];
  what.rmpp_version = in.rmpp_version;
  for (std::uint8_t method = 0; method < mad::MethodSet::kMethods; ++method) {
    if ((in.methods[method / 32] >> method % 32 & 1) != 0) what.methods.add(method);
  }
  return add(what);
}

UmadDone UmadFile::add_agent(const UmadRegister2In& in) {
  if (in.qpn <= 1 && (in.flags & ~kUmadUserRmpp) != 0) {
    UmadDone out = done(Status::InvalidParameter);
    out.flags = kUmadUserRmpp;
    return out;
  }
  UmadRegistration what;
  what.qpn = in.qpn;
  what.mgmt_class = in.mgmt_class;
  what.class_version = in.class_version;
  what.oui = in.oui;
  what.rmpp_version = in.rmpp_version;
  what.has_own_rmpp = (in.flags & kUmadUserRmpp) != 0;
  for (std::uint8_t method = 0; method < mad::MethodSet::kMethods; ++method) {
    if ((in.methods[method / 64] >> method % 64 & 1) != 0) what.methods.add(method);
  }
  if (what.mgmt_class != 0 && what.oui > 0xffffff) return done(Status::InvalidParameter);
  const bool was_used = is_used_;
  UmadDone out = add(what);
  if (is_used_ && !was_used) has_pkeys_ = true;
  out.header_size = static_cast<std::uint32_t>(header_size());
  return out;
}

UmadDone UmadFile::add(const UmadRegistration& what) {
  if (is_over_) return done(Status::DeviceRemoved);
  if (what.qpn > 1) return done(Status::InvalidParameter);
  const auto slot = std::ranges::find(agents_, UmadAgentNumber{0});
  if (slot == agents_.end()) return done(Status::LimitExceeded);
  const auto id = static_cast<std::uint32_t>(slot - agents_.begin());
  const auto added = service_.add_agent({port_, what, this, id});
  if (!added) return done(added.error());
  *slot = *added;
  is_used_ = true;
  UmadDone out = done(Status::Ok);
  out.id = id;
  return out;
}

UmadDone UmadFile::remove_agent(std::uint32_t id) {
  if (id >= kUmadAgents || agents_[id] == 0) return done(Status::InvalidParameter);
  service_.remove_agent(std::exchange(agents_[id], 0));
  return done(Status::Ok);
}

// --- what the program writes ---

UmadDone UmadFile::write(std::span<const std::byte> bytes) {
  const std::size_t before = header_size();
  if (bytes.size() < before + kUmadLeastWritten || bytes.size() > kUmadMostWritten) {
    return done(Status::InvalidParameter);
  }
  UmadHeader header;
  std::memcpy(&header, bytes.data(), before);
  return done(write_to(header, bytes.subspan(before)));
}

// In the order of ib_umad's checks, so that a write with several mistakes has the same error.
Status UmadFile::write_to(const UmadHeader& header, std::span<const std::byte> mad) {
  if (header.id >= kUmadAgents) return Status::InvalidParameter;
  const UmadAgentNumber number = agents_[header.id];
  const UmadAgent* agent = service_.find_agent(number);
  if (agent == nullptr || is_over_) return Status::NotFound;
  UmadSend send;
  send.agent = number;
  send.header = header;
  send.to = service_.address_of(*agent, header);
  if (!service_.has_source(send.to)) return Status::InvalidParameter;
  IB_CHECK(check_size(*agent, mad));
  send.message.assign(mad.begin(), mad.end());
  if (!is_umad_response(mad)) {
    const Be32 upper = number;
    std::memcpy(send.message.data() + offsetof(mad::MadHeader, transaction_id), &upper,
                sizeof upper);
  }
  return service_.send(std::move(send));
}

// A packet of RMPP is longer than a MAD only where softibd cuts it.
Status UmadFile::check_size(const UmadAgent& agent, std::span<const std::byte> mad) const {
  const std::uint8_t mgmt_class = class_of(mad);
  if (mad.size() < mad::header_size(mgmt_class)) return Status::InvalidParameter;
  if (mad.size() <= kUmadMadBytes) return Status::Ok;
  return agent.what.uses_rmpp() && mad::is_rmpp(mad) ? Status::Ok : Status::InvalidParameter;
}

// --- what it reads ---

void UmadFile::receive(const UmadAgent& agent, UmadHeader header, std::span<const std::byte> mad) {
  header.id = agent.id;
  header.length = static_cast<std::uint32_t>(header_size() + mad.size());
  put(header, mad);
}

void UmadFile::receive_timeout(const UmadAgent& agent, const UmadSend& send) {
  UmadHeader header = send.header;
  header.id = agent.id;
  header.status = kUmadTimedOut;
  put(header, std::span(send.message).first(sizeof(mad::MadHeader)));
}

void UmadFile::put(const UmadHeader& header, std::span<const std::byte> mad) {
  if (is_over_) return;
  UmadItem item;
  item.message.header_size = static_cast<std::uint32_t>(header_size());
  item.message.size = static_cast<std::uint32_t>(mad.size());
  item.message.number = ++last_number_;
  const auto* before = reinterpret_cast<const std::byte*>(&header);
  item.bytes.reserve(header_size() + mad.size());
  item.bytes.assign(before, before + header_size());
  item.bytes.insert(item.bytes.end(), mad.begin(), mad.end());
  if (items_.empty() && reader_.has_room()) return reader_.deliver(std::move(item));
  if (items_.size() >= kMostItems || bytes_ + item.bytes.size() > kMostBytes) {
    ++lost_;
    return;
  }
  bytes_ += item.bytes.size();
  items_.push_back(std::move(item));
}

void UmadFile::put_back(UmadItem item) {
  if (is_over_ || items_.size() >= kMostItems) return;
  bytes_ += item.bytes.size();
  items_.push_front(std::move(item));
  deliver();
}

void UmadFile::deliver() {
  while (!items_.empty() && !is_over_ && reader_.has_room()) {
    UmadItem item = std::move(items_.front());
    items_.pop_front();
    bytes_ -= item.bytes.size();
    reader_.deliver(std::move(item));
  }
}

void UmadFile::end() {
  if (std::exchange(is_over_, true)) return;
  for (UmadAgentNumber& agent : agents_) service_.remove_agent(std::exchange(agent, 0));
  items_.clear();
  bytes_ = 0;
  reader_.end();
}

}  // namespace ib::services
