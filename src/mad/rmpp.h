// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rmpp: all messages of several packets that are under way, in both directions [IBA1 13.6]. A
// transfer is told from others by its transaction id, class, version and method, and by its peer;
// what is about it comes back with the other response bit. A request of several packets may have an
// answer of several packets (double-sided, [13.6.3.4]): an ACK of segment 0 says with which window
// that may begin.
//
// Peers cannot make it grow without end: receptions have a limit in number and memory, for each
// peer and in all; beyond it the sender is told to stop.
//
// Pure. After each call here, and at next_deadline(), poll() is to be called until it returns
// nothing.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "mad/peer.h"
#include "mad/rmpp_quota.h"
#include "mad/rmpp_receiver.h"
#include "mad/rmpp_sender.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace ib::mad {

class Rmpp {
 public:
  using Id = std::uint64_t;  // of a transfer; 0: of none

  struct Options {
    RmppSender::Options send{};
    RmppReceiver::Options receive{};
    std::size_t max_bytes = 64u << 20;  // of receptions
    std::size_t max_bytes_per_peer = 17u << 20;
    std::size_t max_receptions = 1024;
    std::size_t max_receptions_per_peer = 64;
    std::size_t max_sends = 4096;
    std::size_t max_sent_bytes = 256u << 20;  // of all messages that are being sent
    std::size_t max_lingering = 4096;
  };

  struct Output {
    enum class Kind : std::uint8_t {
      Packet,         // `packet` is to be sent
      Sent,           // the receiver has all of it
      SendFailed,     // `status`
      Received,       // `message` is whole
      ReceiveFailed,  // `status`
      Over,           // the id is not used any more
    };
    Kind kind = Kind::Packet;
    Id id = 0;  // 0: the packet answers the one that has just come
    Mad packet{};
    std::vector<std::byte> message{};
    RmppStatus status = RmppStatus::Normal;
    bool by_peer = false;  // which has ended the transfer
  };

  explicit Rmpp(const Options& options)
      : options_(options),
        quota_({options.max_bytes, options.max_bytes_per_peer, options.max_receptions,
                options.max_receptions_per_peer}) {}

  // Headers and data, with the Active flag or not. `is_answered`: a response is expected, which may
  // be long. InvalidParameter: no class with RMPP, or shorter than its headers; LimitExceeded.
  Result<Id> send(const Peer& to, std::vector<std::byte> message, bool is_answered, Instant now);
  // Nothing is reported but Over; the peer gets an ABORT.
  void cancel(Id id);
  // A packet with the Active flag. `may_start`: it may begin a message (somebody wants it). Returns
  // the transfer that it belongs to.
  Id on_packet(const Peer& from, const Mad& mad, bool may_start, Instant now);
  std::optional<Output> poll(Instant now);
  std::optional<Instant> next_deadline() const;

  std::size_t sends() const { return sending_.count; }
  std::size_t sent_bytes() const { return sending_.bytes; }
  std::size_t receptions() const { return quota_.receptions(); }  // without those that linger
  std::size_t bytes() const { return quota_.bytes(); }

 private:
  struct Key {
    std::uint64_t tid = 0;
    std::uint8_t mgmt_class = 0;
    std::uint8_t class_version = 0;
    std::uint8_t method = 0;                       // of its DATA packets
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14
  };
  struct Transfer {
    Key key;
    Peer peer;
    bool is_answered = false;
    bool is_silent = false;  // cancelled
    bool is_counted = true;  // as a send or reception: not over, and not lingering
    std::size_t bytes = 0;   // that are counted for it: of a send, the whole message
    std::optional<RmppSender> sender{};
    std::optional<RmppReceiver> receiver{};
    std::optional<Instant> due{};  // in due_
  };
  using Index = std::multimap<Key, Id>;

  static Key key_of(const MadHeader& header, bool other_direction);
  Id find(const Index& index, const Key& key, const Peer& peer) const;
  Id start_reception(const Peer& from, const Mad& mad, const Key& key, Instant now);
  Id on_data(const Peer& from, const Mad& mad, const Key& key, bool may_start, Instant now);
  Id on_control(const Peer& from, const Mad& mad, const MadHeader& header, Instant now);
  void answer_statelessly(const Mad& mad, RmppType type, RmppStatus status);
  void count(Transfer& transfer);
  void uncount(Transfer& transfer);
  void wake(Id id) { active_.push_back(id); }
  bool run(Id id, Instant now);
  void report(const Transfer& transfer, Output output);
  void end_send(Id id, Transfer& transfer);
  void settle_reception(Id id, Transfer& transfer, Instant now);
  void schedule(Id id, Transfer& transfer);
  void forget(Id id);

  Options options_;
  Id last_ = 0;
  std::map<Id, Transfer> transfers_;
  Index senders_;
  Index receivers_;
  RmppQuota quota_;
  std::deque<Id> lingering_;  // receptions that are complete, oldest first
  std::deque<Id> active_;     // poll() has to look at them
  std::set<std::pair<Instant, Id>> due_;
  std::deque<Output> outputs_;
  struct {
    std::size_t count = 0;
    std::size_t bytes = 0;
  } sending_;
};

}  // namespace ib::mad
