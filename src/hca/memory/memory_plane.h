// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MemoryPlane: how one process reaches registered memory, its own and that of its peers, by the
// three paths of docs/design/0001 (mapped adopted pages, process_vm, bounce).
//
// Everything here runs inside an OpScope. Keys are resolved again for every attempt of a work
// request, so nothing is remembered across a deregistration.
#pragma once

#include "hca/layout/arena.h"
#include "hca/layout/quiescence.h"
#include "hca/layout/thread_words.h"
#include "hca/memory/local_keys.h"
#include "hca/requester/poster_host.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace ib::hca {

using verbs::control::Cause;

// Which ways into other processes may be used (`softib run --path`).
enum class Path : std::uint32_t { Auto, Adopted, ProcessVm, Bounce };

// A stretch of registered memory, resolved.
struct Stretch {
  enum class Kind : std::uint32_t { Direct, Remote, Zero, Ranges };
  Kind kind = Kind::Direct;
  std::uint32_t key = 0;         // Remote: the region's own key, for bounces
  std::byte* pointer = nullptr;  // Direct
  std::uint64_t address = 0;     // Remote: in the owner's memory; Ranges: in the region
  std::uint64_t length = 0;
  std::uint32_t slot = 0;  // the owner, unless it is Zero
  bool cpu_atomic = true;  // atomics may use the CPU's on `pointer`
  bool doubtful = false;   // Direct: LocalKey::is_doubtful()
  const RangeList* ranges = nullptr;
};

// On whose behalf remote memory is looked up: the queue pair that answers, or, with XRC, the shared
// receive queue that the request names [IBA1 annex A14].
struct Responder {
  static constexpr std::uint32_t kAnyPd = kNone;
  std::uint32_t owner_slot = 0;
  std::uint32_t pd = kAnyPd;
  std::uint32_t qpn = 0;
};

// The result of resolving or copying. Blocked: try again later (pages are moving, peer stopped).
struct Access {
  Cause cause = Cause::None;
  bool blocked = false;
  std::uint64_t detail = 0;
  bool ok() const { return cause == Cause::None && !blocked; }
};

// A key that was found to be good for [first, first + length). It is forgotten when the epoch of
// its owner has risen, if it is a peer's.
struct CachedKey {
  std::uint32_t key = 0;  // 0: none
  std::uint32_t access = 0;
  std::uint64_t first = 0;  // first + length does not wrap around
  std::uint64_t length = 0;

  [[gnu::always_inline]] bool grants(std::uint32_t wanted_key, std::uint64_t address,
                                     std::uint64_t n, std::uint32_t wanted_access) const {
    return wanted_key == key && (access & wanted_access) == wanted_access &&
           in_span(address, n, first, length);
  }
};
struct CachedHere : CachedKey {  // of memory that is mapped here
  std::byte* bytes = nullptr;    // of `first`
  std::byte* at(std::uint64_t address) const { return bytes + (address - first); }
};
struct CachedRemote : CachedHere {
  // While *mapping is `base` the pages are there, whatever device memory contains.
  const std::atomic<std::byte*>* mapping = nullptr;
  std::byte* base = nullptr;
};
struct CachedLocal : CachedHere {  // one of this process's own
  std::uint64_t as_of = 0;         // LocalKeys::hidden()
};
// Of a peer's memory that is not adopted.
struct CachedFar : CachedKey {
  std::uint32_t slot = kNone;  // the owner
  std::uint64_t address = 0;   // of `first`, in the owner's memory
};

// Pieces of this process's memory, in order; the local side of a transfer. An SGE is one piece, or
// one for each range of a physical region that it touches.
struct LocalPieces {
  static constexpr std::uint32_t kMost = kMaxSge + 1 + verbs::limits::kMaxRanges;
  struct Piece {
    std::byte* pointer;
    std::uint64_t length;
    bool doubtful;  // LocalKey::is_doubtful()
  };
  std::array<Piece, kMost> piece;
  std::uint32_t count = 0;
  std::uint64_t total = 0;
  void add(std::byte* pointer, std::uint64_t length, bool doubtful = false) {
    piece[count++] = {pointer, length, doubtful};
    total += length;
  }
};

class MemoryPlane {
 public:
  MemoryPlane(const Arena& arena, PosterHost& host, std::uint32_t slot, Path path);
  MemoryPlane(const MemoryPlane&) = delete;
  MemoryPlane& operator=(const MemoryPlane&) = delete;
  ~MemoryPlane();

  // Returns false if there was no room for the tables; then no other call is allowed.
  bool valid() const { return local_keys_.valid() && mappings_ != nullptr; }
  static constexpr std::size_t kTableBytes =
      LocalKeys::kBytes + kMaxBackings * (sizeof(std::byte*) + 2 * sizeof(std::uint64_t));

  const Arena& arena() const { return arena_; }
  PosterHost& host() const { return host_; }
  LocalKeys& local_keys() { return local_keys_; }
  const LocalKeys& local_keys() const { return local_keys_; }
  std::uint32_t slot() const { return slot_; }
  Path path() const { return path_; }

  // The word in device memory that marks this thread as executing (op_scope.h).
  ThreadWord& thread_word() { return thread_words_.mine(); }
  ThreadWord* own_thread_word() const { return thread_words_.own(); }
  bool shares(const ThreadWord& word) const { return thread_words_.is_shared(word); }
  std::atomic<std::uint32_t>& shared_word_lock() { return thread_words_.shared_lock(); }
  bool fenced_entries() const {
    return arena_.header().fenced_entries.load(std::memory_order_acquire) != 0;
  }
  // Quiescence for a caller that itself holds an OpScope and no reference to anything of a peer.
  // Returns false if some thread did not move on for a long time.
  bool quiesce_from_inside();

  // Resolves one local SGE. `access` 0 or access::kLocalWrite.
  Access local(const Sge& sge, std::uint32_t pd, std::uint32_t access, LocalPieces& out) const {
    if (sge.length == 0) return {};
    const LocalKey* key = local_keys_.find(sge.lkey);
    if (key == nullptr) return {Cause::LocalKeyUnknown, false, 0};
    if (key->pd != pd) return {Cause::LocalKeyOtherPd, false, 0};
    if ((key->access & access) != access) return {Cause::LocalKeyAccess, false, key->access};
    if (!in_range(sge.address, sge.length, key->iova, key->length)) {
      return {Cause::LocalKeyRange, false, key->length};
    }
    if (key->kind > KeyKind::DeviceMemory) return local_special(*key, sge, access, out);
    out.add(key->address + (sge.address - key->iova), sge.length, key->is_doubtful());
    return {};
  }

  // The fast paths of local(), remote() and receive(): memory that this process can touch at once,
  // of an ordinary region or device memory and, with map_remote(), of another process. Returns
  // nullptr if it is refused or not so simple; the slow path decides which.
  [[gnu::always_inline]] std::byte* map_local(const CachedLocal& known, const Sge& sge,
                                              std::uint32_t access) const {
    const bool good = known.grants(sge.lkey, sge.address, sge.length, access) &&
                      local_keys_.hidden() == known.as_of;
    return good ? known.at(sge.address) : nullptr;
  }
  // Returns the cacheable facts about a key of that protection domain; nothing, if its kind is not
  // worth it.
  CachedLocal cache_local(std::uint32_t key, std::uint32_t pd) const;
  std::byte* map_remote(const Responder& responder, std::uint32_t key, std::uint64_t address,
                        std::uint64_t length, std::uint32_t access) const;
  // The same from the cache; returns nullptr if the cache does not have it.
  [[gnu::always_inline]] static std::byte* map_cached(const CachedRemote& known, std::uint32_t key,
                                                      std::uint64_t address, std::uint64_t length,
                                                      std::uint32_t access) {
    const bool good = known.grants(key, address, length, access) &&
                      known.mapping->load(std::memory_order_acquire) == known.base;
    return good ? known.at(address) : nullptr;
  }
  // Returns the cacheable facts about a key that map_remote() has just reached; nothing, if its
  // kind is not worth it.
  CachedRemote cache_remote(std::uint32_t key) const;
  // That `length` bytes at `address` are `bytes`, which map_remote() has just found, and no more.
  static CachedRemote cache_once(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                                 std::uint32_t access, std::byte* bytes);

  // Returns the cacheable facts about a key no page of which is adopted; nothing, if one is, or if
  // the key does not grant this.
  CachedFar cache_far(const Responder& responder, std::uint32_t key, std::uint64_t address,
                      std::uint64_t length, std::uint32_t access) const;
  // Copies `n` bytes at `address` that `known` grants from or to `local`. Returns false if it
  // fails; remote() and write() or read() then give the cause.
  bool copy_far(const CachedFar& known, std::uint64_t address, std::byte* local, std::uint64_t n,
                BounceOp op);

  // Resolves [address, address + length) of a key as the responder grants it.
  // `access`: all of these flags are needed.
  Access remote(const Responder& responder, std::uint32_t key, std::uint64_t address,
                std::uint64_t length, std::uint32_t access, Stretch& out);
  // The same for an SGE of a receive that the responder posted.
  Access receive(const Responder& responder, const Sge& sge, Stretch& out);

  // Copies between local pieces (skipping `skip` bytes) and a stretch of `n` bytes. The last
  // bytes of a write become visible last: programs poll them.
  Access write(const LocalPieces& from, std::uint64_t skip, const Stretch& to, std::uint64_t offset,
               std::uint64_t n);
  Access read(const LocalPieces& to, std::uint64_t skip, const Stretch& from, std::uint64_t offset,
              std::uint64_t n);
  // One 8-byte atomic; the old value goes to `old`. compare: nullptr for fetch-and-add.
  Access atomic(const Stretch& at, const std::uint64_t* compare, std::uint64_t operand,
                std::uint64_t& old);

  // All that peers want now.
  void serve_bounces();
  // A peer's request against this process's memory (path 3); key and range are checked.
  void serve_bounce(BounceEntry& entry);

  // Tells peers how this process calls itself; before it has anything that they could reach.
  void introduce(const platform::ProcessName& self);
  // Moves a queue pair of this process to Error; the service thread flushes it.
  void break_own(std::uint32_t qpn, Cause cause);

  // Forgets how a backing is mapped (its owner is gone or took it back).
  std::byte* forget_backing(std::uint32_t index, std::uint64_t& size);

 private:
  struct Mapping {
    std::atomic<std::byte*> base;
    std::uint64_t size;
    std::atomic<std::uint32_t> generation;
  };

  // How process_vm reaches the process of a slot: its id as this process sees it, or kNone if it
  // does not. Found out once for each process.
  std::uint32_t vm_pid(std::uint32_t slot) const;
  std::uint32_t find_vm_pid(std::uint32_t slot, std::uint32_t generation) const;
  void give_up_vm(std::uint32_t slot, std::uint32_t generation) const;
  // Of memory that may not be there: pieces of this process's own at one end or both.
  Access write_doubtful(std::byte* from, const Stretch& to, std::uint64_t offset, std::uint64_t n);
  Access read_doubtful(std::byte* to, const Stretch& from, std::uint64_t offset, std::uint64_t n);
  const KeyEntry* granted(const Responder& responder, std::uint32_t key, std::uint64_t address,
                          std::uint64_t length, std::uint32_t access) const;
  // Of null and physical regions.
  Access local_special(const LocalKey& key, const Sge& sge, std::uint32_t access,
                       LocalPieces& out) const;
  static Access local_null(const Sge& sge, std::uint32_t access, LocalPieces& out);
  // Sets `part` to the piece of a stretch of ranges that lies in the range of its byte `offset`.
  Access part_of(const Stretch& all, std::uint64_t offset, Stretch& part) const;
  Access own(std::uint32_t key, std::uint64_t address, std::uint64_t length, std::uint32_t access,
             std::uint32_t pd, Stretch& out);
  Access check_window(const KeyEntry& window, const Responder& responder,
                      const KeyEntry*& region) const;
  Access place(const KeyEntry& region, std::uint64_t address, std::uint64_t length, Stretch& out);
  std::byte* mapped(const KeyEntry& region, std::uint64_t address, std::uint64_t length);
  std::byte* map_slow(Mapping& mapping, std::uint32_t index, std::uint32_t generation);
  // move(part, done, bytes) for each part of `n` bytes from `offset` on, until it is not ok.
  template <class Move>
  Access in_parts(const Stretch& all, std::uint64_t offset, std::uint64_t n, Move&& move) const;
  Access write_one(const LocalPieces& from, std::uint64_t skip, const Stretch& to,
                   std::uint64_t offset, std::uint64_t n);
  Access read_one(const LocalPieces& to, std::uint64_t skip, const Stretch& from,
                  std::uint64_t offset, std::uint64_t n);
  Access remote_copy(const Stretch& at, std::uint64_t offset, std::byte* local, std::uint64_t n,
                     BounceOp op);
  Access bounce_copy(const Stretch& at, std::uint64_t offset, std::byte* local, std::uint64_t n,
                     BounceOp op);
  Access bounce(const Stretch& at, BounceEntry*& entry, BounceOp op, std::uint64_t address,
                std::uint32_t length, const std::byte* data);
  Access locked_atomic(const Stretch& at, const std::uint64_t* compare, std::uint64_t operand,
                       std::uint64_t& old);

  Arena arena_;
  PosterHost& host_;
  std::uint32_t slot_;
  Path path_;
  ThreadWords thread_words_;
  LocalKeys local_keys_;
  Mapping* mappings_;  // kMaxBackings, sparse
  // By slot: its generation << 32 | vm_pid().
  std::unique_ptr<std::atomic<std::uint64_t>[]> vm_pids_;
};

}  // namespace ib::hca
