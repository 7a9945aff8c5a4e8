// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/control_connection.h"

#include <utility>

namespace ib::user {

namespace {

thread_local std::string reason_of_thread;

}  // namespace

const std::string& last_reason() {
  return reason_of_thread;
}

Status failed(Status status, std::string reason) {
  reason_of_thread = std::move(reason);
  return status;
}

ControlConnection::~ControlConnection() {
  if (channel_) channel_->shut_down();
}

Status ControlConnection::connect(std::string& reason) {
  process_number_ = host_.process_number();
  auto channel = host_.connect(reason);
  if (!channel) return channel.error();
  channel_ = *std::move(channel);
  return Status::Ok;
}

Result<std::uint64_t> ControlConnection::call_bytes(control::Code code, std::uint32_t file,
                                                    std::span<const std::byte> in,
                                                    std::span<std::byte> out,
                                                    std::span<const int> handles) {
  platform::ControlReply reply = exchange(code, file, in, out, handles);
  if (reply.status != Status::Ok) return failed(reply.status, std::move(reply.reason));
  if (reply.out_size < out.size()) {
    return failed(Status::Malformed, "softibd's answer is too short");
  }
  return reply.information;
}

void ControlConnection::wait_for_submitted() {
  std::uint64_t number = submitted_.load(std::memory_order_acquire);
  channel_->settle();
  submitted_.compare_exchange_strong(number, 0, std::memory_order_acq_rel);
}

}  // namespace ib::user
