// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/memory_plane.h"

#include "hca/layout/shm_lock.h"
#include "hca/memory/copy.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <span>

namespace ib::hca {

namespace access = verbs::access;

namespace {

Access failed(Cause cause, std::uint64_t detail = 0) {
  return {cause, false, detail};
}

// The bytes [skip, skip + n) of the pieces: move(pointer, doubtful, done, bytes) for each piece
// that has some of them, until it is not ok.
template <class Move>
Access over_pieces(const LocalPieces& pieces, std::uint64_t skip, std::uint64_t n, Move&& move) {
  std::uint32_t i = 0;
  while (i < pieces.count && skip >= pieces.piece[i].length) skip -= pieces.piece[i++].length;
  for (std::uint64_t done = 0; done < n && i < pieces.count; ++i) {
    const std::uint64_t bytes = std::min(n - done, pieces.piece[i].length - skip);
    const Access moved =
        move(pieces.piece[i].pointer + skip, pieces.piece[i].doubtful, done, bytes);
    if (!moved.ok()) return moved;
    done += bytes;
    skip = 0;
  }
  return {};
}

}  // namespace

MemoryPlane::MemoryPlane(const Arena& arena, PosterHost& host, std::uint32_t slot, Path path)
    : arena_(arena),
      host_(host),
      slot_(slot),
      path_(path),
      thread_words_(*arena.slot(slot)),
      mappings_(static_cast<Mapping*>(std::calloc(kMaxBackings, sizeof(Mapping)))),
      vm_pids_(new std::atomic<std::uint64_t>[kMaxSlots]()) {}

MemoryPlane::~MemoryPlane() {
  std::free(mappings_);
}

bool MemoryPlane::quiesce_from_inside() {
  constexpr std::uint32_t kRounds = 1'000'000;
  ThreadWord& self = thread_word();
  Quiescence quiet(arena_, host_.barriers(), slot_, &self);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    // Still odd, but changed: two threads that wait for each other both make progress.
    self.sequence.fetch_add(2, std::memory_order_release);
    if (quiet.done()) return true;
    host_.relax(round);
  }
  return false;
}

// Reads of a null region give zeros and writes vanish: in a scratch page of the thread's.
Access MemoryPlane::local_null(const Sge& sge, std::uint32_t access, LocalPieces& out) {
  constexpr std::size_t kChunk = std::size_t{64} * 1024;
  static std::byte zeros[kChunk];
  // Not itself thread-local: there is little room for what is found without a call
  // (thread_words.h).
  thread_local std::unique_ptr<std::byte[]> sink;
  if (sge.length > kChunk) return failed(Cause::LocalKeyRange, kChunk);
  const bool written = (access & access::kLocalWrite) != 0;
  if (written && !sink) sink.reset(new std::byte[kChunk]);
  out.add(written ? sink.get() : zeros, sge.length);
  return {};
}

template <class Move>
Access MemoryPlane::in_parts(const Stretch& all, std::uint64_t offset, std::uint64_t n,
                             Move&& move) const {
  for (std::uint64_t done = 0; done < n;) {
    Stretch part;
    const Access found = part_of(all, offset + done, part);
    if (!found.ok()) return found;
    const std::uint64_t bytes = std::min(n - done, part.length);
    const Access moved = move(part, done, bytes);
    if (!moved.ok()) return moved;
    done += bytes;
  }
  return {};
}

Access MemoryPlane::local_special(const LocalKey& key, const Sge& sge, std::uint32_t access,
                                  LocalPieces& out) const {
  if (key.kind == KeyKind::Null) return local_null(sge, access, out);
  Stretch all;
  all.kind = Stretch::Kind::Ranges;
  all.slot = slot_;
  all.address = sge.address - key.iova;
  all.length = sge.length;
  all.ranges = key.ranges;
  return in_parts(all, 0, all.length,
                  [&out](const Stretch& part, std::uint64_t, std::uint64_t bytes) {
                    if (out.count == LocalPieces::kMost) {
                      return failed(Cause::LocalPieces, LocalPieces::kMost);
                    }
                    out.add(part.pointer, bytes);
                    return Access{};
                  });
}

// `all.ranges` is of shared memory if it is a peer's: each field is loaded once, then checked.
Access MemoryPlane::part_of(const Stretch& all, std::uint64_t offset, Stretch& part) const {
  const RangeList& list = *all.ranges;
  const std::uint64_t at = all.address + offset;
  const auto used = std::span(list.range).first(std::min(list.count, verbs::limits::kMaxRanges));
  const auto after = std::upper_bound(
      used.begin(), used.end(), at,
      [](std::uint64_t wanted, const Range& range) { return wanted < range.start; });
  if (after == used.begin()) return failed(Cause::RemoteKeyRange, at);
  const Range range = *(after - 1);
  const std::uint64_t into = at - range.start;
  if (into >= range.length) return failed(Cause::RemoteKeyRange, at);
  part = all;
  part.ranges = nullptr;
  part.address = range.address + into;
  part.length = std::min(all.length - offset, range.length - into);
  part.cpu_atomic = list.kind == KeyKind::DeviceMemory;
  if (list.kind == KeyKind::DeviceMemory) {
    part.kind = Stretch::Kind::Direct;
    part.pointer = arena_.heap(part.address, part.length);
    return part.pointer != nullptr ? Access{} : failed(Cause::RemoteKeyRange, at);
  }
  part.kind = all.slot == slot_ ? Stretch::Kind::Direct : Stretch::Kind::Remote;
  if (all.slot == slot_) part.pointer = std::bit_cast<std::byte*>(part.address);
  return {};
}

// A key of this very process: private memory decides.
Access MemoryPlane::own(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                        std::uint32_t access, std::uint32_t pd, Stretch& out) {
  const LocalKey* entry = local_keys_.find(key);
  if (entry == nullptr) return failed(Cause::RemoteKeyUnknown);
  if (pd != Responder::kAnyPd && entry->pd != pd) return failed(Cause::RemoteKeyOtherPd);
  if ((entry->access & access) != access) return failed(Cause::RemoteKeyAccess, entry->access);
  if (!in_range(address, length, entry->iova, entry->length)) {
    return failed(Cause::RemoteKeyRange, entry->length);
  }
  out.length = length;
  if (entry->kind == KeyKind::Null) {
    out.kind = Stretch::Kind::Zero;
    return {};
  }
  out.slot = slot_;
  if (entry->kind == KeyKind::Ranges) {
    out.kind = Stretch::Kind::Ranges;
    out.address = address - entry->iova;
    out.ranges = entry->ranges;
    return {};
  }
  out.kind = Stretch::Kind::Direct;
  out.doubtful = entry->is_doubtful();
  out.pointer = entry->address + (address - entry->iova);
  out.address = std::bit_cast<std::uint64_t>(out.pointer);
  const KeyEntry* shared = arena_.key(key_index(key));
  out.cpu_atomic = entry->kind == KeyKind::DeviceMemory ||
                   in_range(out.address, length, shared->adopted.address, shared->adopted.length);
  return {};
}

// The rules of memory windows [IBA1 10.6.7.2]: type 1 belongs to its PD, type 2 to its QP.
Access MemoryPlane::check_window(const KeyEntry& window, const Responder& responder,
                                 const KeyEntry*& region) const {
  if (window.id.kind == KeyKind::Window2 && window.id.window_qpn != responder.qpn) {
    return failed(Cause::RemoteKeyOtherPd);
  }
  region = arena_.key(window.id.window_region);
  if (region == nullptr) return failed(Cause::RemoteKeyUnknown);
  const auto state = region->id.state.load(std::memory_order_acquire);
  if (state == KeyState::Moving) return {Cause::None, true, 0};
  if (state != KeyState::Valid) return failed(Cause::RemoteKeyUnknown);
  return {};
}

Access MemoryPlane::remote(const Responder& responder, std::uint32_t key, std::uint64_t address,
                           std::uint64_t length, std::uint32_t access, Stretch& out) {
  const KeyEntry* entry = arena_.key(key_index(key));
  if (entry == nullptr || key == 0) return failed(Cause::RemoteKeyUnknown);
  const auto state = entry->id.state.load(std::memory_order_acquire);
  if (entry->id.key.load(std::memory_order_acquire) != key || state == KeyState::Invalid ||
      entry->id.owner_slot != responder.owner_slot) {
    return failed(Cause::RemoteKeyUnknown);
  }
  if (state == KeyState::Moving) return {Cause::None, true, 0};
  if (responder.pd != Responder::kAnyPd && entry->id.pd != responder.pd) {
    return failed(Cause::RemoteKeyOtherPd);
  }
  if ((entry->id.access & access) != access) {
    return failed(Cause::RemoteKeyAccess, entry->id.access);
  }
  if (!in_range(address, length, entry->id.iova, entry->id.length)) {
    return failed(Cause::RemoteKeyRange, entry->id.length);
  }
  const std::uint64_t in_owner = entry->id.address + (address - entry->id.iova);
  const bool window = entry->id.kind == KeyKind::Window1 || entry->id.kind == KeyKind::Window2;
  const KeyEntry* region = entry;
  if (window) {
    const Access bound = check_window(*entry, responder, region);
    if (!bound.ok()) return bound;
  }
  if (entry->id.owner_slot == slot_) {
    const std::uint32_t region_key = region->id.key.load(std::memory_order_relaxed);
    if (!window) return own(key, address, length, access, responder.pd, out);
    const LocalKey* local = local_keys_.find(region_key);
    if (local == nullptr) return failed(Cause::RemoteKeyUnknown);
    // The window names memory as the region's entry does, its region by iova: translate before
    // checking.
    return own(region_key, in_owner - region->id.address + local->iova, length, 0, local->pd, out);
  }
  return place(*arena_.key(key_index(region->id.key.load(std::memory_order_relaxed))), in_owner,
               length, out);
}

Access MemoryPlane::receive(const Responder& responder, const Sge& sge, Stretch& out) {
  if (responder.owner_slot == slot_) {
    return own(sge.lkey, sge.address, sge.length, access::kLocalWrite, responder.pd, out);
  }
  const KeyEntry* entry = arena_.key(key_index(sge.lkey));
  if (entry == nullptr || sge.lkey == 0) return failed(Cause::RemoteReceiveKey);
  const auto state = entry->id.state.load(std::memory_order_acquire);
  if (entry->id.key.load(std::memory_order_acquire) != sge.lkey || state == KeyState::Invalid ||
      entry->id.owner_slot != responder.owner_slot || entry->id.pd != responder.pd ||
      (entry->id.access & access::kLocalWrite) == 0 ||
      !in_range(sge.address, sge.length, entry->id.iova, entry->id.length)) {
    return failed(Cause::RemoteReceiveKey);
  }
  if (state == KeyState::Moving) return {Cause::None, true, 0};
  return place(*entry, entry->id.address + (sge.address - entry->id.iova), sge.length, out);
}

// Chooses the path to a checked stretch of a peer's region.
Access MemoryPlane::place(const KeyEntry& region, std::uint64_t address, std::uint64_t length,
                          Stretch& out) {
  out.length = length;
  switch (region.id.kind) {
    case KeyKind::Null: out.kind = Stretch::Kind::Zero; return {};
    case KeyKind::DeviceMemory:
      out.kind = Stretch::Kind::Direct;
      out.pointer = arena_.heap(address, length);
      return out.pointer != nullptr ? Access{} : failed(Cause::RemoteKeyRange);
    case KeyKind::Ranges:
      out.kind = Stretch::Kind::Ranges;
      out.slot = region.id.owner_slot;
      out.address = address;
      out.key = region.id.key.load(std::memory_order_relaxed);
      out.ranges =
          reinterpret_cast<const RangeList*>(arena_.heap(region.id.ranges, sizeof(RangeList)));
      return out.ranges != nullptr ? Access{} : failed(Cause::RemoteKeyRange);
    case KeyKind::Region:
    case KeyKind::Window1:
    case KeyKind::Window2: break;
  }
  out.slot = region.id.owner_slot;
  out.address = address;
  out.key = region.id.key.load(std::memory_order_relaxed);
  out.pointer = mapped(region, address, length);
  out.cpu_atomic = out.pointer != nullptr;
  out.kind = out.pointer != nullptr ? Stretch::Kind::Direct : Stretch::Kind::Remote;
  return {};
}

// The peer's adopted pages in this process's address space, if the stretch lies in them.
std::byte* MemoryPlane::mapped(const KeyEntry& region, std::uint64_t address,
                               std::uint64_t length) {
  const auto& adopted = region.adopted;
  if (!in_range(address, length, adopted.address, adopted.length)) return nullptr;
  const std::uint32_t index = adopted.backing;
  const std::uint32_t generation = adopted.backing_generation;
  if (index >= kMaxBackings) return nullptr;
  Mapping& mapping = mappings_[index];
  std::byte* base = mapping.base.load(std::memory_order_acquire);
  if (base == nullptr || mapping.generation.load(std::memory_order_relaxed) != generation) {
    base = map_slow(mapping, index, generation);
    if (base == nullptr) return nullptr;
  }
  const std::uint64_t offset = adopted.offset + (address - adopted.address);
  return in_range(offset, length, 0, mapping.size) ? base + offset : nullptr;
}

std::byte* MemoryPlane::map_slow(Mapping& mapping, std::uint32_t index, std::uint32_t generation) {
  std::uint64_t size = 0;
  std::byte* base = host_.map_backing(index, generation, size);
  if (base == nullptr) return nullptr;
  // The host serialises map_backing per backing and returns the same mapping to every caller.
  mapping.size = size;
  mapping.generation.store(generation, std::memory_order_relaxed);
  mapping.base.store(base, std::memory_order_release);
  return base;
}

std::byte* MemoryPlane::forget_backing(std::uint32_t index, std::uint64_t& size) {
  if (index >= kMaxBackings) return nullptr;
  size = mappings_[index].size;
  return mappings_[index].base.exchange(nullptr, std::memory_order_acq_rel);
}

Access MemoryPlane::write(const LocalPieces& from, std::uint64_t skip, const Stretch& to,
                          std::uint64_t offset, std::uint64_t n) {
  if (to.kind != Stretch::Kind::Ranges) return write_one(from, skip, to, offset, n);
  return in_parts(to, offset, n, [&](const Stretch& part, std::uint64_t done, std::uint64_t bytes) {
    return write_one(from, skip + done, part, 0, bytes);
  });
}

Access MemoryPlane::write_one(const LocalPieces& from, std::uint64_t skip, const Stretch& to,
                              std::uint64_t offset, std::uint64_t n) {
  return over_pieces(
      from, skip, n,
      [&](std::byte* source, bool doubtful, std::uint64_t done, std::uint64_t bytes) {
        const std::uint64_t at = offset + done;
        if (doubtful || to.doubtful) return write_doubtful(source, to, at, bytes);
        if (to.kind == Stretch::Kind::Remote) {
          return remote_copy(to, at, source, bytes, BounceOp::Write);
        }
        if (to.kind == Stretch::Kind::Direct) {
          copy_tail_last(to.pointer + at, source, bytes);
        }
        return Access{};
      });
}

Access MemoryPlane::read(const LocalPieces& to, std::uint64_t skip, const Stretch& from,
                         std::uint64_t offset, std::uint64_t n) {
  if (from.kind != Stretch::Kind::Ranges) return read_one(to, skip, from, offset, n);
  return in_parts(from, offset, n,
                  [&](const Stretch& part, std::uint64_t done, std::uint64_t bytes) {
                    return read_one(to, skip + done, part, 0, bytes);
                  });
}

Access MemoryPlane::read_one(const LocalPieces& to, std::uint64_t skip, const Stretch& from,
                             std::uint64_t offset, std::uint64_t n) {
  return over_pieces(
      to, skip, n, [&](std::byte* target, bool doubtful, std::uint64_t done, std::uint64_t bytes) {
        const std::uint64_t at = offset + done;
        if (doubtful || from.doubtful) return read_doubtful(target, from, at, bytes);
        if (from.kind == Stretch::Kind::Direct) {
          copy_tail_last(target, from.pointer + at, bytes);
        } else if (from.kind == Stretch::Kind::Zero) {
          std::memset(target, 0, bytes);
        } else {
          return remote_copy(from, at, target, bytes, BounceOp::Read);
        }
        return Access{};
      });
}

Access MemoryPlane::atomic(const Stretch& at, const std::uint64_t* compare, std::uint64_t operand,
                           std::uint64_t& old) {
  if (at.kind == Stretch::Kind::Zero) {
    old = 0;
    return {};
  }
  if (at.kind == Stretch::Kind::Ranges) {
    Stretch part;
    const Access found = part_of(at, 0, part);
    if (!found.ok()) return found;
    return part.length < sizeof old ? failed(Cause::RemoteKeyRange)
                                    : atomic(part, compare, operand, old);
  }
  // An aligned address has an aligned place here, unless device memory tells lies.
  const bool is_aligned = std::bit_cast<std::uintptr_t>(at.pointer) % sizeof old == 0;
  if (at.kind != Stretch::Kind::Direct || !at.cpu_atomic || at.doubtful || !is_aligned) {
    return locked_atomic(at, compare, operand, old);
  }
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at.pointer));
  if (compare == nullptr) {
    old = word.fetch_add(operand, std::memory_order_seq_cst);
  } else {
    old = *compare;
    word.compare_exchange_strong(old, operand, std::memory_order_seq_cst);
  }
  return {};
}

// Memory that is not mapped by every process that could touch it: all take the same lock.
Access MemoryPlane::locked_atomic(const Stretch& at, const std::uint64_t* compare,
                                  std::uint64_t operand, std::uint64_t& old) {
  Shared32& word = arena_.atomic_lock(at.slot, at.address);
  if (!lock(word, lock_owner(slot_), [this](std::uint32_t round) { host_.relax(round); })) {
    return {Cause::None, true, 0};
  }
  Stretch one = at;
  one.length = sizeof old;
  LocalPieces piece;
  piece.add(reinterpret_cast<std::byte*>(&old), sizeof old);
  Access done = read(piece, 0, one, 0, sizeof old);
  if (done.ok() && (compare == nullptr || old == *compare)) {
    std::uint64_t value = compare == nullptr ? old + operand : operand;
    LocalPieces source;
    source.add(reinterpret_cast<std::byte*>(&value), sizeof value);
    done = write(source, 0, one, 0, sizeof value);
  }
  unlock(word);
  return done;
}

}  // namespace ib::hca
