// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// End: one end of a stream as a process works with it. The calls of a program go to the
// engine (ulp/sdp/stream.h), whose messages are executed against the peer's end; arrivals are taken
// from the receive buffers.
//
// No call waits. A caller that has to wait does so at the link, whose readiness is the stream's:
//   readable      iff there are bytes, the end of the stream, or an error to be read;
//   not writable  after a write that found no room, until there is some again;
//   hung up       once the peer has closed its link everywhere, or both halves were shut.
// Between a process that brings news and the packet that says so, these are late by moments.
//
// **Both ends.** A reader gives the peer receives, so it has the peer's end go on sending what
// waits there, if nobody else is working with it: a writer that computes, is stopped or has died
// holds up nobody. When the peer has closed its link everywhere, this end *buries* it: it makes the
// call close() at the peer's end, which nobody else will make.
//
// Thread rule: any thread of any process. A call takes the lock of the end (SharedEnd::lock), so
// it must not be interrupted by a signal handler that calls again: the caller blocks signals.
#pragma once

#include "hca/memory/memory_plane.h"
#include "streams/link.h"
#include "streams/section.h"
#include "streams/shared_end.h"
#include "streams/work.h"
#include "verbs/control_streams.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace ib::streams {

enum class Verdict : std::uint8_t {
  Done,
  WouldBlock,  // a write: the link is not writable until there is room; a read: nothing is there
  WantsRing,   // a write found no room, and a larger ring would have some: use_ring(), then again
  EndOfStream,
  Reset,       // ECONNRESET, once; afterwards EndOfStream or BrokenPipe
  BrokenPipe,  // EPIPE
  NoUrgent,    // EINVAL: there is no urgent byte to read
  Gone,        // the end is no more (its link was closed meanwhile, or softibd has ended it)
};
struct Moved {
  Verdict verdict = Verdict::Done;
  std::size_t bytes = 0;  // Done, WantsRing; may be fewer than wanted
  bool left_rung = false;
};

// classes: allow(methods) the calls of a socket
class End {
 public:
  // InvalidParameter: device memory has no such end there, or nonsense.
  static Result<std::unique_ptr<End>> open(hca::MemoryPlane& plane,
                                           const verbs::control::StreamOut& out);
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End();

  // --- data ---

  struct ReadHow {
    bool peek = false;
    bool urgent = false;       // MSG_OOB: the urgent byte, and nothing else
    bool with_urgent = false;  // SO_OOBINLINE: it is part of the stream
    // With nothing left the link may stay readable, so that the peer need not ring for the next
    // message. The caller looks for that in memory, and calls settle_link() before anybody sleeps
    // at the link.
    bool leaves_rung = false;
  };
  Moved read(Link& link, std::span<const Part> parts, ReadHow how);
  // `urgent`: the last byte is.
  Moved write(Link& link, std::span<const ConstPart> parts, bool urgent = false);
  // The end of one half, or of both (SHUT_RD, SHUT_WR, SHUT_RDWR as 0, 1, 2). The caller shuts the
  // link down afterwards in the same way. Returns false if the connection is over
  // (ENOTCONN).
  bool shut_down(Link& link, int how);
  // Lets what waits go on: retries what a port that was down has held up.
  void go_on(Link& link);
  // The link becomes readable if and only if there is something to read. Returns that.
  bool settle_link(Link& link);
  // After has_news(): whether a read would find something, which messages for the engine are not.
  bool is_readable(Link& link);
  // The same, for who is not sure of the link; nothing: work is to be done that needs it.
  std::optional<bool> is_readable();
  // A ring that softibd has given; or nothing, if there is none: then writes block sooner.
  void use_ring(const std::optional<verbs::control::StreamRingOut>& ring);

  // --- looks; without the lock, so for hints ---

  // Something has come, or the stream has ended: read() will probably not find nothing.
  bool has_news() const;
  // A write would find room, and the link is writable; else it may be all the same.
  bool has_room() const;
  // A message waits for a port or an HCA: somebody has to call go_on() now and then.
  bool is_stuck() const;
  const verbs::control::StreamAddress& local() const { return local_; }
  const verbs::control::StreamAddress& remote() const { return remote_; }
  std::uint64_t stream() const { return access_.stream; }
  std::uint32_t end() const { return end_; }
  SharedEnd& shared() const { return shared_; }

  // --- state ---

  std::uint64_t readable_bytes(Link& link);  // FIONREAD
  std::uint64_t unsent_bytes();              // SIOCOUTQ
  bool is_at_mark(Link& link);               // SIOCATMARK: the next byte is the urgent one
  bool take_reset(Link& link);               // SO_ERROR: it is ECONNRESET, once
  // For TCP_INFO, as the kernel numbers them: 1 established, 4 fin-wait-1, 5 fin-wait-2, 7 closed,
  // 8 close-wait, 9 last-ack.
  std::uint8_t tcp_state(Link& link);
  void set_corked(Link& link, bool corked);
  void set_linger_zero(bool on);
  // Options that only have to be remembered. Returns false if there are too many.
  bool set_option(int level, int name, int value);
  std::optional<int> option(int level, int name);

 private:
  End(const Access& access, const verbs::control::StreamOut& out, SharedEnd& shared,
      SharedEnd& peer, std::unique_ptr<Work> own, std::unique_ptr<Work> peers);

  Moved read_locked(Link& link, std::span<const Part> parts, ReadHow how);
  Moved write_locked(Link& link, std::span<const ConstPart> parts, bool urgent);
  void answer(Link& link);
  bool is_over_for_reads() const;
  Verdict ended();
  std::size_t read_through(Link& link, std::span<const Part> parts, ReadHow how);
  std::size_t look_ahead(Link& link, std::span<const Part> parts, ReadHow how);
  std::size_t copy_ahead(std::span<const Part> parts, ReadHow how);
  std::size_t copy_out(std::span<const Part> parts, std::size_t from, ReadHow how);
  Moved read_urgent(std::span<const Part> parts, ReadHow how);
  void give_way(Link& link);
  bool settle(Link& link);
  bool stays_rung(ReadHow how) const;
  bool keeps_packet() const;
  void let_peer_go_on(Link& link);
  void have_peer_send(Link& link);
  bool bury_peer(Link& link);
  void take_in(Link& link);
  void shut_link(Link& link);
  void shut_link_for_reads(Link& link);
  void send(Link& link);
  bool may_be_alone();
  Verdict why_not_write();
  std::size_t wait_later(Link& link, std::span<const ConstPart> parts, std::size_t from,
                         std::size_t total, bool urgent);
  std::size_t write_some(Link& link, std::span<const ConstPart> parts, std::size_t from,
                         std::size_t total, bool urgent);

  Access access_;
  SharedEnd& shared_;
  SharedEnd& peer_;
  std::uint32_t end_;
  verbs::control::StreamAddress local_;
  verbs::control::StreamAddress remote_;
  std::unique_ptr<Work> own_;    // under shared_.lock
  std::unique_ptr<Work> peers_;  // under peer_.lock
  bool no_larger_ring_ = false;
  bool peer_takes_no_bell_ = false;
  std::uint32_t writes_ = 0;
};

}  // namespace ib::streams
