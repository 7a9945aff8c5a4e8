// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory: the HCAs of a fabric as one shared mapping (docs/design/0002).
//
// softibd creates it (one sparse memfd that can grow and never shrink) and every client of the
// fabric maps it. There are no pointers in it, only offsets and table indexes, and the layout is
// the same for 32 and 64 bit. Fields are grouped by cache line *by who writes them*, since the
// time of an 8-byte message is the time of its cache lines.
//
// Writers. control: softibd, which calls quiesce() (quiescence.h) before it changes or reuses what
// a poster may be reading. owner: the process that created the object. poster: whoever executes a
// work request against the object, under the lock or the exclusivity that the comment names.
//
// Trust. Every process that maps this has the same uid, but bugs and hostile writers exist: readers
// load a field once, check it, then use it. Nothing here may be an index or length that is used
// unchecked; what decides about a process's own memory is kept there (docs/design/0002).
#pragma once

#include "hca/layout/shared_field.h"
#include "verbs/cause.h"
#include "verbs/limits.h"
#include "verbs/types.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ib::hca {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
using Shared32 = std::atomic<std::uint32_t>;
using Shared64 = std::atomic<std::uint64_t>;
// May hold a value that is no enumerator, since any process may have written it.
template <class E>
using SharedEnum = std::atomic<E>;

inline constexpr std::uint64_t kArenaMagic = 0x31626974666f7373ull;
inline constexpr std::uint32_t kLayoutVersion = 15;
inline constexpr std::uint32_t kNone = 0xffffffffu;
inline constexpr std::size_t kLine = 64;

struct ArenaHeader {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t reserved = 0;
  Shared64 size;    // bytes that exist now; only grows (control)
  Shared32 closed;  // 1: softibd has gone down in order (control)
  std::uint32_t daemon_pid = 0;
  Shared32 slots_used;  // slots at and above this were never used (control)
  // 1: some process cannot make others pass a barrier (platform/barriers.h), so entering an OpScope
  // takes one (control, owner; never back to 0)
  Shared32 fenced_entries;
};

// One executing thread of a client. `sequence` is odd while the thread executes a work request:
// quiesce() waits for it to change. Its upper bits name what the request may touch (executing).
// Written by that thread only.
struct alignas(kLine) ThreadWord {
  Shared64 sequence;
};
// The objects that an executing thread may touch besides those of its own process.
namespace executing {
inline constexpr unsigned kShift = 45;  // a count of scopes below it wraps around after years
inline constexpr std::uint64_t kCount = (std::uint64_t{1} << kShift) - 1;
inline constexpr std::uint64_t kAnything = 0;
inline constexpr std::uint64_t kOwn = std::uint64_t{1} << kShift;  // nothing else
// What a request of this queue pair may touch: see may_touch() in quiescence.h.
constexpr std::uint64_t queue_pair(std::uint32_t index) {
  return (std::uint64_t{index} + 2) << kShift;
}
// The index of the queue pair; kNone if the word names none.
constexpr std::uint32_t queue_pair_of(std::uint64_t sequence) {
  const std::uint64_t what = sequence >> kShift;
  return what < 2 ? kNone : static_cast<std::uint32_t>(what - 2);
}
}  // namespace executing
inline constexpr std::uint32_t kThreadsPerSlot = 64;

// A process. (control), but for the lines with another mark.
struct alignas(kLine) ProcessSlot {
  Shared32 generation;  // changes whenever the slot gets a new process or loses it
  Shared32 live;        // 1: attached; 0: free or dead
  std::uint32_t pid = 0;
  Shared32 words_used;  // of `threads`, from the first one on: no thread has had one behind (owner)
  std::array<char, 48> program{};
  // Doorbell: a process adds 1 and wakes (shared futex); the service thread of the owner waits on
  // it.
  alignas(kLine) Shared32 doorbell;
  // Slot::kSleeps: its service thread sleeps, so that a kick needs the wake call; kListens: it has
  // no such thread, but needs an Attention event (doorbell.h). Else 0. (owner; a poster takes
  // kListens)
  Shared32 waiting;
  // A process that has changed states of the owner's queue pairs, regions or bounce requests adds
  // 1.
  alignas(kLine) Shared32 attention;
  Shared32 late_events;  // 1: the owner looks for some after its next read (late_events.h)
  // How the process calls itself (platform/process_name.h); `pid` above is what softibd sees, which
  // may be in another pid namespace. (owner, once it has attached)
  alignas(kLine) Shared32 own_pid;
  // Events that calls which destroy an object wait for, until the program acknowledges them: for
  // `softib resources`. (owner)
  Shared32 unacknowledged;
  Shared64 plate_address;  // 0: peers cannot name it
  Shared64 plate_number;
  // Rises whenever what posters may have cached about objects of this process, or about the ports
  // that they use, may have become untrue (epoch.h). Never falls, whoever gets the slot. (control,
  // owner)
  alignas(kLine) Shared64 epoch;
  alignas(kLine) std::array<ThreadWord, kThreadsPerSlot> threads;
};

inline constexpr auto kPortAsleep = static_cast<verbs::PortState>(0x100);  // no enumerator
// Detail of Cause::HcaRemoved of a queue pair: it was not its own HCA, but that of its peer.
inline constexpr std::uint64_t kPeersHca = 1;

// A port. Data stops when `state` is not Active. (control)
struct alignas(kLine) PortEntry {
  // Or kPortAsleep: requests to and from it wait, and no retry clock runs.
  SharedEnum<verbs::PortState> state;
  SharedEnum<verbs::LinkLayer> link_layer;
  Relaxed<std::uint16_t> lid;  // 0: none, as of an Ethernet port
  SharedEnum<verbs::Mtu> mtu;
  // Two ports reach each other if theirs are equal: fabric::Graph::segment_of().
  Shared32 segment;
  // 1: switches are behind its cable, so datagrams need an entry of way_table.h.
  Shared32 has_switches;
  // Its queue pairs 0 and 1: names of entries like any QPN; 0: none.
  std::array<Shared32, 2> special;
  std::array<std::atomic<std::uint16_t>, verbs::limits::kMaxPkeys> pkeys;  // 0: no entry
  std::array<SharedGid, verbs::limits::kGidTableLength> gids;              // zero: no entry
  // The next entry after each of them in the chain of its gid_chain(): see gid_entry().
  std::array<Shared32, verbs::limits::kGidTableLength> next_by_gid;
  // Arrivals that no queue pair counts: packets to groups, dropped datagrams. (poster)
  struct alignas(kLine) {
    Shared64 unicast_packets;
    Shared64 unicast_bytes;
    Shared64 multicast_packets;
    Shared64 multicast_bytes;
  } arrivals;
};

// Chains of the GIDs of all ports. Their words are 1 + gid_entry() of a GID, or 0: the end.
inline constexpr std::uint32_t kGidChains = 1u << 16;
inline std::uint32_t gid_chain(const verbs::Gid& gid) {
  std::uint64_t words[2];
  std::memcpy(words, gid.data(), sizeof words);
  std::uint64_t mix = words[0] * 0x9e3779b97f4a7c15ull ^ words[1];
  mix = (mix ^ mix >> 32) * 0xd6e8feb86659fd93ull;
  return static_cast<std::uint32_t>(mix >> 48);
}
constexpr std::uint32_t gid_entry(std::uint32_t port, std::uint32_t index) {
  return port * verbs::limits::kGidTableLength + index;
}

// A queue pair. Entry index = qpn & (kMaxQps - 1); the other bits of the QPN are a generation, so a
// stale QPN finds an entry with another number.
struct QpEntry {
  // Line 0 (control): all fields of the peer that a poster needs.
  struct alignas(kLine) {
    Shared32 qpn;                      // 0: free; of Smi and Gsi a name that is on no wire
    SharedEnum<verbs::QpState> state;  // a poster may also move it to Error
    Relaxed<verbs::QpType> type;
    std::uint32_t pd = 0;
    std::uint32_t owner_slot = 0;
    Relaxed<std::uint32_t> access;
    Relaxed<std::uint32_t> port;  // index into the port table
    Relaxed<std::uint32_t> qkey;
    std::uint32_t recv_cq = kNone;
    std::uint32_t srq = kNone;
    std::uint32_t xrcd = kNone;
    Relaxed<std::uint16_t> lid;
    Relaxed<std::uint16_t> pkey;
    Relaxed<std::uint8_t> min_rnr_timer;
    Relaxed<std::uint8_t> max_dest_rd_atomic;
    Relaxed<std::uint8_t> takes_large;  // 1: UD with control::qp_flag::kTakesLarge
    std::uint32_t generation = 0;
  } id;
  // Line 1 (poster): the responder's progress. RC/UC/XRC: only the connected requester writes it
  // (whoever holds that requester's queue lock); UD: under `rq_lock`.
  struct alignas(kLine) {
    Shared64 rq_head;    // receives consumed
    Shared64 cq_intent;  // 1 + CQ position of the completion being delivered; 0: none
    Shared64 srq_taken;  // 1 + id of the SRQ receive held for the message in progress; 0: none
    // Of datagrams that it got; those to it alone also as packets and their bytes on the wire. What
    // others get follows from what their peers send (hca/requester/message_count.h).
    Shared64 messages;
    Shared64 bytes;
    Shared64 unicast_packets;
    Shared64 unicast_bytes;
  } responder;
  // Line 2 (control): geometry of the receive queue, and what the owner's async events need.
  struct alignas(kLine) {
    std::uint64_t rq_ring = 0;  // offset; 0: none
    std::uint32_t rq_slots = 0;
    std::uint32_t rq_stride = 0;
    std::uint64_t cookie = 0;
    std::uint32_t ca = 0;
    std::uint32_t send_cq = kNone;
    SharedEnum<verbs::control::Cause> error_cause;  // why a poster or softibd moved it to Error
    Shared64 error_detail;                          // e.g. the pid of the process that went
  } geometry;
  // Line 3 (owner): receives posted.
  struct alignas(kLine) {
    Shared64 rq_tail;
  } owner;
  // Line 4: RNR waiter. The blocked requester stores 1 (poster); post_recv clears it and kicks
  // (owner).
  struct alignas(kLine) {
    Shared32 rnr_waiter;
    Shared32 has_begun;  // 1: somebody has begun to work with it (poster, owner; first_use.h)
  } waiter;
  // Line 5: lock of a UD receive queue (shm_lock.h) (poster). Others need none: what they have got
  // as answers (owner).
  struct alignas(kLine) {
    Shared32 rq_lock;
    std::uint32_t reserved = 0;
    struct {
      Shared64 reads;         // answers to READ,
      Shared64 bytes;         // their payload,
      Shared64 more_packets;  // their packets after the first of each,
      Shared64 more_bytes;    // padding, and what headers have beyond those of every answer
      Shared64 atomics;
    } answers;
  } lock;
  // Line 6 (owner): what it has sent, as requests.
  struct alignas(kLine) {
    Shared64 messages;
    Shared64 bytes;         // payload
    Shared64 sends;         // of the messages; others are writes, or have answers
    Shared64 more_packets;  // after the first of each message
    // Padding and immediate data; of a datagram all that is not payload.
    Shared64 more_bytes;
    Shared64 multicast;                         // of the messages
    SharedEnum<verbs::control::Cause> blocked;  // while the head request waits; for `softib status`
  } requester;
  // Line 7 (control): the connection, as its owner has set it [IBA1 11.2.5.2] and as softibd has
  // resolved it in the fabric. Posters cache it until an epoch rises (epoch.h).
  struct alignas(kLine) {
    Shared32 flow;                   // flow.h
    Relaxed<std::uint32_t> way_end;  // where its way ends before the peer: a port of the graph
    Relaxed<std::uint32_t> dest_qpn;
    // Index into the port table of the port that has the peer's address; kNone: none has it. A peer
    // is known by its port: a port may have several LIDs, or none, and its LID may change.
    Relaxed<std::uint32_t> dest_port{kNone};
    Relaxed<std::uint32_t> sq_psn;  // 24 bits: of the first packet it sends
    Relaxed<std::uint32_t> rq_psn;  // 24 bits: of the first packet it expects
    Relaxed<verbs::Mtu> mtu;        // of the path
    SharedAddress address;          // RC, UC, XRC: of the peer
  } connection;
};
static_assert(sizeof(QpEntry) == 512);

// A posted receive in a ring: header, then `num_sge` elements. (owner)
struct Sge {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};
struct ReceiveWqe {
  std::uint32_t id = 0;  // the owner's name for it; comes back in the completion
  std::uint32_t num_sge = 0;
  std::uint64_t reserved = 0;
  // Sge sge[num_sge] follow
};
static_assert(sizeof(Sge) == 16 && sizeof(ReceiveWqe) == 16);
inline constexpr std::uint32_t kMaxSge = 32;
constexpr std::uint32_t receive_stride(std::uint32_t max_sge) {
  return static_cast<std::uint32_t>(sizeof(ReceiveWqe) +
                                    sizeof(Sge) * (max_sge == 0 ? 1 : max_sge));
}

// A completion in a ring. Valid for position p iff seq == p / slots + 1 (mod 2^32).
// Written by the producer, seq last (release).
inline constexpr std::uint32_t kInlineScatter = 64;
struct alignas(kLine) Cqe {
  // The first 48 bytes are those of ibv_wc but for its wr_id, which stays with the owner, and two
  // that it does not use: what is written in three pieces there is read in three here.
  std::uint32_t wqe = 0;         // send: position in the send queue; receive: ReceiveWqe::id
  std::uint32_t srq = kNone;     // index of the SRQ that the receive came from
  std::uint32_t status = 0;      // verbs::WcStatus
  std::uint32_t opcode = 0;      // verbs::WcOpcode
  std::uint32_t vendor_err = 0;  // verbs::control::Cause
  std::uint32_t byte_len = 0;
  std::uint32_t imm = 0;  // big endian as on the wire, or the invalidated rkey
  std::uint32_t qpn = 0;
  std::uint32_t src_qp = 0;
  std::uint32_t flags = 0;  // verbs::wc_flag
  std::uint16_t pkey_index = 0;
  std::uint16_t slid = 0;
  std::uint8_t sl = 0;
  std::uint8_t path_bits = 0;
  std::uint8_t bits = 0;           // cqe_bit
  std::uint8_t inline_length = 0;  // bytes in `payload` to scatter at poll
  std::uint64_t timestamp = 0;     // ns, if the CQ was created with cq_flag::kTimestamp
  std::uint32_t reserved = 0;
  Shared32 seq;
  std::array<std::byte, kInlineScatter> payload;  // as it comes: clearing it costs
};
static_assert(sizeof(Cqe) == 128 && offsetof(Cqe, seq) == 60 && offsetof(Cqe, payload) == 64);
namespace cqe_bit {
inline constexpr std::uint8_t kReceive = 1;
inline constexpr std::uint8_t kSolicited = 2;
}  // namespace cqe_bit

// The bytes of a completion before `timestamp`, to be written in one go where many have nearly the
// same.
struct CompletionHead {
  static constexpr std::size_t kPart = 16;
  alignas(kPart) std::array<std::byte, 3 * kPart> bytes{};

  CompletionHead() = default;
  explicit CompletionHead(const Cqe& of) { std::memcpy(bytes.data(), &of, sizeof bytes); }
  // In parts, of which each is one store. Of the whole gcc makes a string instruction, which is
  // slow.
  void write(Cqe& to) const { copy(reinterpret_cast<std::byte*>(&to), bytes.data()); }
  // These bytes of a completion, somewhere else.
  static void copy(const Cqe& from, std::byte* to) {
    copy(to, reinterpret_cast<const std::byte*>(&from));
  }

 private:
  static void copy(std::byte* to, const std::byte* from) {
    std::memcpy(to, from, kPart);
    std::memcpy(to + kPart, from + kPart, kPart);
    std::memcpy(to + 2 * kPart, from + 2 * kPart, kPart);
  }
};
static_assert(offsetof(Cqe, timestamp) == sizeof(CompletionHead));

struct CqEntry {
  // Line 0 (control)
  struct alignas(kLine) {
    Shared32 generation;  // 0: free
    std::uint32_t owner_slot = 0;
    std::uint64_t ring = 0;   // offset
    std::uint32_t slots = 0;  // power of two
    std::uint32_t cqe = 0;    // completions it may hold, < slots
    std::uint32_t flags = 0;  // verbs::control::cq_flag
    std::uint32_t channel = kNone;
    std::uint32_t channel_generation = 0;
    Shared32 ring_epoch;        // changes with ring/slots/cqe (resize)
    Shared32 shared_producers;  // 1: producers take `lock`; 0: there is only one (cq_producer.h)
    std::uint32_t ca = 0;
    std::uint64_t cookie = 0;
  } id;
  // Line 1 (poster): under `lock` or by the only producer
  struct alignas(kLine) {
    Shared32 lock;
    Shared32 overflowed;     // 1: a completion did not fit, the CQ is in error; 2: reported
    Shared64 producer;       // completions ever written
    Shared64 consumer_seen;  // last value of `consumer` that a producer looked at
  } producer;
  // Line 2 (owner)
  struct alignas(kLine) {
    Shared64 consumer;  // completions ever polled
  } consumer;
  // Line 3: 0 not armed, 1 any completion, 2 solicited or error; owner arms, poster fires.
  // kFiring: a poster is sending the event; if it dies before that, softibd sends it.
  static constexpr std::uint32_t kFiring = 3;
  struct alignas(kLine) {
    Shared32 armed;
    Shared32 used;  // 1: it has been armed; before that producers need not look (CqConsumer::arm)
    Shared64 reported;  // completions ever written when the last event was fired
    Shared32 late;      // events that have been fired, but are not in the channel's pipe yet
  } arm;
};
static_assert(sizeof(CqEntry) == 256);

struct SrqEntry {
  // Line 0 (control)
  struct alignas(kLine) {
    Shared32 generation;  // 0: free
    std::uint32_t owner_slot = 0;
    std::uint32_t type = 0;  // verbs::SrqType
    std::uint32_t pd = 0;
    std::uint64_t ring = 0;
    std::uint32_t slots = 0;
    std::uint32_t stride = 0;
    std::uint32_t xrcd = kNone;
    std::uint32_t cq = kNone;  // XRC
    std::uint32_t srqn = 0;    // its index is srqn & (kMaxSrqs - 1)
    std::uint32_t ca = 0;
    std::uint64_t cookie = 0;
  } id;
  // Line 1 (poster): under `lock`
  struct alignas(kLine) {
    Shared32 lock;
    std::uint32_t reserved = 0;
    Shared64 head;  // receives consumed
  } consumer;
  // Line 2 (owner)
  struct alignas(kLine) {
    Shared64 tail;  // receives posted
  } producer;
  // Line 3: limit event; owner/control arms, the poster that takes it below the limit clears it
  struct alignas(kLine) {
    Shared32 limit;       // 0: not armed
    Shared32 rnr_waiter;  // 1: some requester waits for a receive
  } event;
};
static_assert(sizeof(SrqEntry) == 256);

// A memory region or window. Index = key >> 8; the low byte changes with each use.
// A key is usable iff `key` equals it and `state` is Valid. Fields are stable while a poster is
// inside an OpScope that saw Valid: whoever changes them stores Moving or Invalid first and then
// calls quiesce().
enum class KeyState : std::uint32_t { Invalid = 0, Valid = 1, Moving = 2 };
enum class KeyKind : std::uint32_t {
  Region = 0,
  DeviceMemory = 1,
  Null = 2,
  Window1 = 3,
  Window2 = 4,
  Ranges = 5
};

// A piece of a region of KeyKind::Ranges, in ascending order of `start`; the first starts at 0 and
// each ends where the next starts.
struct Range {
  std::uint64_t start = 0;    // in the region
  std::uint64_t address = 0;  // in the owner's memory; DeviceMemory: arena offset
  std::uint64_t length = 0;
};
struct RangeList {
  std::uint32_t count = 0;
  KeyKind kind = KeyKind::Region;  // of the memory: or DeviceMemory
  std::array<Range, verbs::limits::kMaxRanges> range{};

  // For who makes one; there is room.
  void append(std::uint64_t address, std::uint64_t length) {
    const Range* last = count != 0 ? &range[count - 1] : nullptr;
    range[count++] = {last != nullptr ? last->start + last->length : 0, address, length};
  }
};
struct KeyEntry {
  // Line 0 (control; windows and adoption: owner)
  struct alignas(kLine) {
    Shared32 key;
    SharedEnum<KeyState> state;
    std::uint32_t pd = 0;
    std::uint32_t access = 0;  // windows: the bound access
    std::uint64_t iova = 0;    // first address of the key's address space
    std::uint64_t length = 0;
    // Where that is in the owner's memory; DeviceMemory: arena offset; Ranges: 0.
    std::uint64_t address = 0;
    std::uint32_t owner_slot = 0;
    KeyKind kind = KeyKind::Region;
    std::uint32_t window_qpn = 0;         // Window2: the only QP that may use it
    std::uint32_t window_region = kNone;  // windows: index of the region they are bound to
    std::uint64_t ranges = 0;             // Ranges: arena offset of their RangeList
  } id;
  // Line 1 (owner): pages that peers can map. Bytes [address, address + length) of the owner are
  // at `offset` in the backing. Written before the owner gives the key away; softibd clears it when
  // the region gets another range.
  struct alignas(kLine) {
    std::uint64_t address = 0;
    std::uint64_t length = 0;  // 0: nothing adopted
    std::uint64_t offset = 0;
    std::uint32_t backing = kNone;
    std::uint32_t backing_generation = 0;
    Shared32 windows;         // owner: windows bound to this region
    std::uint32_t flags = 0;  // verbs::control::region_flag
  } adopted;
};
static_assert(sizeof(KeyEntry) == 128);

// A multicast attachment [IBA1 10.5.2], in chains by GID and by LID of 1 + index, 0: end. (control)
struct McastEntry {
  verbs::Gid mgid{};
  Shared32 qpn;  // 0: free
  std::uint32_t mlid = 0;
  Shared32 next_by_gid;
  Shared32 next_by_lid;
};
static_assert(sizeof(McastEntry) == 32);
inline constexpr std::uint32_t kMcastChains = 4096;
constexpr std::uint32_t mcast_chain(const verbs::Gid& mgid) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const std::uint8_t byte : mgid) hash = (hash ^ byte) * 16777619u;
  return (hash ^ hash >> 16) % kMcastChains;
}
constexpr std::uint32_t mcast_chain(std::uint32_t mlid) {
  return mlid % kMcastChains;
}

}  // namespace ib::hca
