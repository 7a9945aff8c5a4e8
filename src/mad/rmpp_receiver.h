// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RmppReceiver: puts one message together from its packets [IBA1 13.6.3, 13.6.6], in whatever order
// they come. It acknowledges the end of each window, the last packet, and packets that it has
// already. A complete one lingers, without its data, to acknowledge what is sent again.
//
// Pure; one transfer. The bytes of the peer are checked here.
#pragma once

#include "base/time.h"
#include "mad/rmpp_header.h"
#include "mad/rmpp_segments.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ib::mad {

class RmppReceiver {
 public:
  struct Options {
    std::uint32_t window = 16;                   // packets
    std::size_t max_bytes = 16u << 20;           // of a message
    Duration gap = std::chrono::seconds(20);     // between two packets that are new
    Duration total = std::chrono::seconds(120);  // for all of it
    Duration linger = std::chrono::seconds(30);  // of a complete one
  };
  enum class State : std::uint8_t { Receiving, Complete, Failed };

  // `first` is its packet with segment number 1.
  RmppReceiver(const Mad& first, const Options& options, Instant now);

  // A DATA packet of this transfer; the first one, too. `room`: by how many bytes the message may
  // grow at most; STOP is sent if that is too little.
  void on_data(const Mad& mad, std::size_t room, Instant now);
  // The sender gives up. No answer.
  void on_abort(const Mad& mad);
  void abort(RmppStatus status);
  // The next packet to be sent: ACK, STOP or ABORT.
  std::optional<Mad> poll(Instant now);

  State state() const { return state_; }
  RmppStatus status() const { return status_; }
  bool was_ended_by_peer() const { return by_peer_; }
  // Complete: headers and data; once.
  std::vector<std::byte> take_message();
  std::size_t bytes() const { return segments_.bytes(); }  // that it occupies
  // When poll() has an ABORT, or a complete one may be forgotten.
  Instant next_deadline() const;
  // [13.6.3.4] An ACK of segment 0 allows the answer to begin with a window.
  std::uint32_t reply_window() const { return reply_window_; }
  void set_reply_window(std::uint32_t window) { reply_window_ = window; }

 private:
  RmppStatus check(const RmppHeader& header) const;
  // `before`: the segments without a gap until then.
  void advance(std::uint32_t before);
  void end(RmppType type, RmppStatus status);
  Mad control(RmppType type) const;

  RmppSegments segments_;
  Options options_;
  Mad headers_;  // of the first packet
  std::uint32_t window_last_;
  State state_ = State::Receiving;
  RmppStatus status_ = RmppStatus::Normal;
  RmppType due_ = RmppType::None;  // to be sent
  bool by_peer_ = false;
  Instant started_;
  Instant heard_;  // of something new
  std::uint32_t reply_window_ = 1;
};

}  // namespace ib::mad
