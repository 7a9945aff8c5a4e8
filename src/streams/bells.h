// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bells: packets in the queues of links, which make the kernel's readiness of a link that of its
// stream (end.h).
//
// A word of each end says how many packets are in the queue of its link, or about to be: one if it
// is *rung*, because there is something to read, and *extra* ones. A thread that adds to the word
// sends the packets, one that subtracts from it takes them. Extra packets are added only while it
// is rung, so they make no link readable that has nothing to read.
//
// A sender announces its message before that can be seen, and rings afterwards: a quick reader
// would have read it before the packet comes, which would then stand for nothing. So while a
// message is *coming* no reader settles.
//
// A reader that finds nothing left takes all, sets the word to 0 and looks once more whether
// something has come, before it takes the packets: a sender that came in between has seen the bell
// rung and sent nothing, or has seen 0 and sent another packet.
#pragma once

#include "hca/memory/poster_host.h"
#include "streams/link.h"
#include "streams/shared_end.h"

#include <chrono>
#include <cstdint>
#include <utility>

namespace ib::streams {

namespace bell {
inline constexpr std::uint32_t kRung = 1;
inline constexpr std::uint32_t kComing = 2;  // by the holder of the peer's lock
inline constexpr std::uint32_t kExtra = 4;   // one of them
constexpr std::uint32_t packets(std::uint32_t word) {
  return (word & kRung) + word / kExtra;
}
}  // namespace bell

inline bool is_rung(const SharedEnd& end) {
  return (end.bell.load(std::memory_order_relaxed) & bell::kRung) != 0;
}
inline bool has_extra(const SharedEnd& end) {
  return end.bell.load(std::memory_order_relaxed) >= bell::kExtra;
}

// Adds an extra packet to the word of an end that is rung; then the caller sends it.
inline bool add_extra(SharedEnd& end) {
  std::uint32_t word = end.bell.load(std::memory_order_relaxed);
  while ((word & bell::kRung) != 0) {
    if (end.bell.compare_exchange_weak(word, word + bell::kExtra, std::memory_order_seq_cst)) {
      return true;
    }
  }
  return false;
}

// The bell of the peer, as a sender has it, who holds the lock of its own end.
class Bell {
 public:
  explicit Bell(SharedEnd& peer) : peer_(peer) {}
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // A message will be there.
  void announce() {
    if (std::exchange(is_announced_, true)) return;
    peer_.bell.fetch_or(bell::kComing, std::memory_order_seq_cst);
  }
  // It is.
  void has_come() { has_news_ = true; }
  // By the link of the end that sends, after all messages. Returns false if the peer's takes no
  // packet: it is probably closed.
  bool ring(Link& link) {
    if (!std::exchange(is_announced_, false)) return true;
    const bool news = std::exchange(has_news_, false);
    std::uint32_t word = peer_.bell.load(std::memory_order_relaxed);
    while (!peer_.bell.compare_exchange_weak(
        word, (word & ~bell::kComing) | (news ? bell::kRung : 0), std::memory_order_seq_cst)) {
      continue;
    }
    if (!news) return true;
    if ((word & bell::kRung) == 0) return link.ring();
    // An edge for each part that comes after a read, as the kernel's sockets have them.
    if (peer_.wants_edges.load(std::memory_order_relaxed) == 0) return true;
    if (peer_.edge_due.exchange(0, std::memory_order_relaxed) == 0) return true;
    return !add_extra(peer_) || link.ring();
  }

 private:
  SharedEnd& peer_;
  bool is_announced_ = false;
  bool has_news_ = false;
};

// Waits for a sender that has the next step to make. On a busy machine it may have lost its core;
// one that is stopped is not waited for.
class Patience {
 public:
  explicit Patience(hca::PosterHost& host) : host_(host) {}

  // Lets others run. Returns false once that has taken too long.
  bool wait() {
    host_.relax(++round_);
    if (round_ % kRoundsBetweenClocks != 0) return true;
    if (begin_ == Instant{}) begin_ = host_.now();
    return host_.now() - begin_ <= kMost;
  }

 private:
  static constexpr Duration kMost = std::chrono::milliseconds(100);
  static constexpr std::uint32_t kRoundsBetweenClocks = 64;

  hca::PosterHost& host_;
  std::uint32_t round_ = 0;
  Instant begin_{};
};

// Waits until no message is coming to `own`. Returns false if one has come.
template <class HasArrival>
bool is_nothing_coming(SharedEnd& own, hca::PosterHost& host, HasArrival&& has_arrival) {
  Patience patience(host);
  while ((own.bell.load(std::memory_order_acquire) & bell::kComing) != 0) {
    if (has_arrival()) return false;
    if (!patience.wait()) break;
  }
  return true;
}

// Takes packets that are there, or about to be.
inline void take_packets(SharedEnd& own, Link& link, std::uint32_t count, hca::PosterHost& host) {
  Patience patience(host);
  while (count > 0) {
    const Link::Taken taken = link.take(count);
    if (taken.foreign) own.broken.store(1, std::memory_order_release);
    count -= taken.count < count ? taken.count : count;
    if (count > 0 && link.has_hung_up()) return;
    if (count > 0 && !patience.wait()) break;
  }
  own.owed += count;
}

// Nothing is left to read, as far as the caller has seen. Under the lock of `own`. Returns false if
// something has come meanwhile: `has_arrival` looks. `keeps_one`: a packet, if there is one.
template <class HasArrival>
bool become_quiet(SharedEnd& own, Link& link, hca::PosterHost& host, HasArrival&& has_arrival,
                  bool keeps_one) {
  if (!is_nothing_coming(own, host, has_arrival)) return false;
  const std::uint32_t word = own.bell.fetch_and(bell::kComing, std::memory_order_seq_cst);
  const std::uint32_t count = bell::packets(word) + own.owed;
  if (has_arrival()) {
    // The packets stay, as those of a bell that is rung.
    if (bell::packets(word) == 0) return false;
    const std::uint32_t extra = bell::packets(word) - 1;
    const std::uint32_t before = own.bell.fetch_or(bell::kRung, std::memory_order_seq_cst);
    const std::uint32_t more = extra + (before & bell::kRung);
    if (more > 0) own.bell.fetch_add(more * bell::kExtra, std::memory_order_seq_cst);
    return false;
  }
  own.owed = 0;
  if (count == 0) return true;
  if (keeps_one) own.bell.fetch_add(bell::kExtra, std::memory_order_seq_cst);
  take_packets(own, link, count - (keeps_one ? 1 : 0), host);
  return true;
}

// One of the packets that only make the peer wait becomes the one for news. Returns false if
// there is none.
inline bool use_extra_packet(SharedEnd& own) {
  std::uint32_t word = own.bell.load(std::memory_order_relaxed);
  while (word >= bell::kExtra && (word & bell::kRung) == 0) {
    if (own.bell.compare_exchange_weak(word, word - bell::kExtra + bell::kRung,
                                       std::memory_order_seq_cst)) {
      return true;
    }
  }
  return (word & bell::kRung) != 0;
}

// The writer has found no room: packets that nobody needs make its link not writable. Returns
// false if the peer has read everything meanwhile, so there is room. `anyway`: a port is down, so
// that the peer cannot give its receives back.
inline bool become_full(SharedEnd& peer, Link& link, bool anyway) {
  constexpr int kMost = 8;
  for (int i = 0; i < kMost && link.is_writable(); ++i) {
    if (anyway) {
      peer.bell.fetch_add(bell::kExtra, std::memory_order_seq_cst);
    } else if (!add_extra(peer)) {
      return false;
    }
    if (link.ring()) continue;
    peer.bell.fetch_sub(bell::kExtra, std::memory_order_seq_cst);
    return true;  // the peer is gone
  }
  return true;
}

// The writer at the other side has room again. Under the lock of `own`, the reader's end.
inline void let_peer_write(SharedEnd& own, Link& link, hca::PosterHost& host) {
  const std::uint32_t word =
      own.bell.fetch_and(bell::kRung | bell::kComing, std::memory_order_seq_cst);
  if (word >= bell::kExtra) take_packets(own, link, word / bell::kExtra, host);
}

}  // namespace ib::streams
