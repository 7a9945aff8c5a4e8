// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The calls for a connection besides reading and writing: half close, options, and the
// looks that ioctl() and getsockopt() allow.
#include "streams/bells.h"
#include "streams/end.h"
#include "streams/section.h"
#include "streams/shut.h"
#include "ulp/sdp/stream.h"

#include <algorithm>

namespace ib::streams {

bool End::shut_down(Link& link, int how) {
  {
    Section section(access_, shared_);
    if (!section) return false;
    own_->receive();
    const sdp::State state = shared_.state.state;
    if (sdp::is_over(shared_.state) && state != sdp::State::Closed) return false;
    if (how != 1) shared_.shut |= kShutRead;
    if (how != 0 && (shared_.shut & kShutWrite) == 0) {
      shared_.shut |= kShutWrite;
      sdp::shutdown_send(shared_.state);
      send(link);
      shut_link(link);
    }
  }
  answer(link);
  return true;
}

void End::go_on(Link& link) {
  {
    Section section(access_, shared_);
    if (!section) return;
    own_->receive();
    send(link);
    have_peer_send(link);
    take_in(link);
    settle(link);
    // A message has waited for too long: the peer is told, too.
    if (shared_.state.state == sdp::State::Lost && shared_.broken.load() == 0) {
      shared_.broken.store(1, std::memory_order_release);
      peer_.broken.store(1, std::memory_order_release);
      Bell bell(peer_);
      bell.announce();
      bell.has_come();
      static_cast<void>(bell.ring(link));
    }
  }
  answer(link);
}

bool End::settle_link(Link& link) {
  bool is_quiet = false;
  {
    Section section(access_, shared_);
    if (!section) return true;
    take_in(link);
    is_quiet = settle(link);
  }
  answer(link);
  return !is_quiet;
}

bool End::is_readable(Link& link) {
  bool is_there = false;
  {
    Section section(access_, shared_);
    if (!section) return true;
    take_in(link);
    is_there = shared_.state.receiving.readable != 0 || is_over_for_reads();
  }
  answer(link);
  return is_there;
}

std::optional<bool> End::is_readable() {
  bool is_there = false;
  {
    Section section(access_, shared_);
    if (!section) return true;
    own_->receive();
    if (own_->has_backlog()) return std::nullopt;
    is_there = shared_.state.receiving.readable != 0 || is_over_for_reads();
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // as in answer()
  if (shared_.wanted.load(std::memory_order_relaxed) != 0) return std::nullopt;
  return is_there;
}

bool End::is_stuck() const {
  return shared_.pending.header_length != 0 ||
         (shared_.peer_is_buried != 0 && peer_.pending.header_length != 0);
}

std::uint64_t End::readable_bytes(Link& link) {
  Section section(access_, shared_);
  if (!section) return 0;
  take_in(link);
  return sdp::readable_bytes(shared_.state);
}

std::uint64_t End::unsent_bytes() {
  Section section(access_, shared_);
  if (!section) return 0;
  const auto& sending = shared_.state.sending;
  return sdp::is_over(shared_.state) ? 0 : sending.ring_written - sending.ring_freed;
}

bool End::is_at_mark(Link& link) {
  Section section(access_, shared_);
  if (!section) return false;
  take_in(link);
  return sdp::front(shared_.state).urgent || shared_.has_urgent_byte != 0;
}

// SO_ERROR takes the error away that a read would get.
bool End::take_reset(Link& link) {
  Section section(access_, shared_);
  if (!section) return false;
  take_in(link);
  return ended() == Verdict::Reset;
}

std::uint8_t End::tcp_state(Link& link) {
  // As linux/tcp_states.h numbers them.
  constexpr std::uint8_t kEstablished = 1, kFinWait1 = 4, kFinWait2 = 5, kClose = 7, kCloseWait = 8,
                         kLastAck = 9;
  Section section(access_, shared_);
  if (!section) return kClose;
  take_in(link);
  switch (shared_.state.state) {
    case sdp::State::Idle:
    case sdp::State::Connecting:
    case sdp::State::Accepting:
    case sdp::State::Established:
      return (shared_.shut & kShutWrite) != 0 ? kFinWait1 : kEstablished;
    case sdp::State::DisConnSent: return kFinWait2;
    case sdp::State::DisConnReceived:
      return (shared_.shut & kShutWrite) != 0 ? kLastAck : kCloseWait;
    case sdp::State::Closing: return kLastAck;
    case sdp::State::Aborting:
    case sdp::State::Closed:
    case sdp::State::Aborted:
    case sdp::State::Reset:
    case sdp::State::Lost: return kClose;
  }
  return kClose;
}

void End::set_corked(Link& link, bool corked) {
  {
    Section section(access_, shared_);
    if (!section) return;
    own_->receive();
    sdp::set_cork(shared_.state, corked);
    send(link);
  }
  answer(link);
}

void End::set_linger_zero(bool on) {
  Section section(access_, shared_);
  if (section) shared_.linger_zero = on ? 1 : 0;
}

bool End::set_option(int level, int name, int value) {
  Section section(access_, shared_);
  if (!section) return false;
  const auto known = std::min<std::size_t>(shared_.option_count, shared_.options.size());
  for (std::size_t i = 0; i < known; ++i) {
    SharedOption& option = shared_.options[i];
    if (option.level != level || option.name != name) continue;
    option.value = value;
    return true;
  }
  if (known == shared_.options.size()) return false;
  shared_.options[known] = {static_cast<std::int16_t>(level), static_cast<std::int16_t>(name),
                            value};
  shared_.option_count = static_cast<std::uint32_t>(known + 1);
  return true;
}

std::optional<int> End::option(int level, int name) {
  Section section(access_, shared_);
  if (!section) return std::nullopt;
  const auto known = std::min<std::size_t>(shared_.option_count, shared_.options.size());
  for (std::size_t i = 0; i < known; ++i) {
    const SharedOption& option = shared_.options[i];
    if (option.level == level && option.name == name) return option.value;
  }
  return std::nullopt;
}

}  // namespace ib::streams
