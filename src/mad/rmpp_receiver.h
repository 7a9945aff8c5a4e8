// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RmppReceiver: puts one message together from its packets [IBA1 13.6.3, 13.6.6], in whatever order
// they come. It acknowledges the end of each window, the last packet, and packets that it has
// already. A complete one lingers, without its data, to acknowledge what is sent again.
//
// Pure; one transfer. The bytes of the peer are checked here.
#pragma once

#include "base/time.h"
#include "mad/rmpp_header.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
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
  std::size_t bytes() const { return data_.size(); }  // that it occupies
  // When poll() has an ABORT, or a complete one may be forgotten.
  Instant next_deadline() const;
  // [13.6.3.4] An ACK of segment 0 allows the answer to begin with a window.
  std::uint32_t reply_window() const { return reply_window_; }
  void set_reply_window(std::uint32_t window) { reply_window_ = window; }

 private:
  // The last segment of a message, and its payload length.
  struct End {
    std::uint32_t segment = 0;
    std::uint32_t length = 0;
    bool operator==(const End&) const = default;
  };

  RmppStatus check(const RmppHeader& header) const;
  bool take_end(const RmppHeader& header);
  bool take_last(std::uint32_t segment, std::uint32_t length);
  bool take_total(std::uint32_t length);
  // Of a packet without data: the header of the class.
  std::uint32_t least_length() const {
    return static_cast<std::uint32_t>(header_size_ - kRmppDataOffset);
  }
  std::uint32_t highest() const { return ahead_.empty() ? in_order_ : *ahead_.rbegin(); }
  bool store(const Mad& mad, std::uint32_t segment, std::size_t room);
  void advance(Instant now);
  void end(RmppType type, RmppStatus status);
  Mad control(RmppType type) const;

  std::size_t header_size_;
  std::size_t data_size_;
  Options options_;
  Mad headers_;  // of the first packet
  std::vector<std::byte> data_;
  std::uint32_t in_order_ = 0;     // the last segment of those without a gap
  std::set<std::uint32_t> ahead_;  // segments behind a gap; within the window
  std::uint32_t window_last_;
  std::optional<End> total_;  // as the first packet says
  std::optional<End> last_;   // as the last one says
  State state_ = State::Receiving;
  RmppStatus status_ = RmppStatus::Normal;
  RmppType due_ = RmppType::None;  // to be sent
  bool by_peer_ = false;
  Instant started_;
  Instant heard_;  // of something new
  std::uint32_t reply_window_ = 1;
};

}  // namespace ib::mad
