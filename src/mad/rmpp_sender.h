// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RmppSender: sends one message in packets [IBA1 13.6.3, 13.6.6]: as many as the receiver's window
// allows, and again from the first that was not acknowledged when the time is up. The first window
// is one packet.
//
// Pure; one transfer.
#pragma once

#include "base/time.h"
#include "mad/rmpp_header.h"
#include "mad/rmpp_packets.h"
#include "mad/rmpp_window.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace ib::mad {

class RmppSender {
 public:
  struct Options {
    Duration timeout = std::chrono::seconds(2);  // until packets are sent again
    std::uint32_t retries = 5;                   // without an acknowledgement that is new
    std::uint32_t window = 1;                    // the first one
  };
  enum class State : std::uint8_t { Sending, Done, Failed };

  // Headers (header_size() bytes of the class) and data. At least the headers.
  RmppSender(std::vector<std::byte> message, const Options& options, Instant now);

  // The next packet to be sent: data, or the ABORT after which it has failed. To be called until
  // there is none, after each call here and when next_deadline() is reached.
  std::optional<Mad> poll(Instant now);
  // An ACK, STOP or ABORT for this transfer.
  void on_control(const Mad& mad, Instant now);
  // Gives up: poll() has an ABORT.
  void abort(RmppStatus status);

  State state() const { return state_; }
  RmppStatus status() const { return status_; }  // Failed: why
  bool was_ended_by_peer() const { return by_peer_; }
  // The ACK of segment 0 by which the answer may begin with this window [13.6.3.4].
  Mad reply_permission(std::uint32_t window) const;
  std::optional<Instant> next_deadline() const;
  std::uint32_t segments() const { return packets_.segments(); }

 private:
  void on_ack(const RmppHeader& header, Instant now);
  void fail(RmppStatus status, bool tell_peer);
  void time_out(Instant now);

  RmppPackets packets_;
  RmppWindow window_;
  Options options_;
  Duration timeout_;  // as the receiver wants it
  State state_ = State::Sending;
  RmppStatus status_ = RmppStatus::Normal;
  bool by_peer_ = false;
  bool abort_due_ = false;
  std::uint32_t retries_left_;
  Instant deadline_;
};

}  // namespace ib::mad
