// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/memory_mover.h"

#include "base/address.h"
#include "hca/layout/shm_lock.h"
#include "hca/memory/copy.h"
#include "hca/memory/ranges.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ib::hca {

namespace {

// The bytes [skip, skip + n) of the pieces: move(pointer, doubtful, done, bytes) for each piece
// that has some of them, until it is not ok.
template <class Move>
Access over_pieces(const LocalPieces& pieces, std::uint64_t skip, std::uint64_t n, Move&& move) {
  std::uint32_t i = 0;
  while (i < pieces.count && skip >= pieces.piece[i].length) skip -= pieces.piece[i++].length;
  for (std::uint64_t done = 0; done < n && i < pieces.count; ++i) {
    const std::uint64_t bytes = std::min(n - done, std::uint64_t{pieces.piece[i].length} - skip);
    const Access moved =
        move(pieces.piece[i].pointer + skip, pieces.piece[i].doubtful, done, bytes);
    if (!moved.ok()) return moved;
    done += bytes;
    skip = 0;
  }
  return {};
}

}  // namespace

Access MemoryMover::write(const LocalPieces& from, std::uint64_t skip, const Stretch& to,
                          std::uint64_t offset, std::uint64_t n) {
  if (to.kind != Stretch::Kind::Ranges) return write_one(from, skip, to, offset, n);
  return in_parts(arena_, slot_, to, offset, n,
                  [&](const Stretch& part, std::uint64_t done, std::uint64_t bytes) {
                    return write_one(from, skip + done, part, 0, bytes);
                  });
}

Access MemoryMover::write_one(const LocalPieces& from, std::uint64_t skip, const Stretch& to,
                              std::uint64_t offset, std::uint64_t n) {
  return over_pieces(
      from, skip, n,
      [&](std::byte* source, bool doubtful, std::uint64_t done, std::uint64_t bytes) {
        const std::uint64_t at = offset + done;
        if (doubtful || to.doubtful) return write_doubtful(source, to, at, bytes);
        if (to.kind == Stretch::Kind::Remote) {
          return far_.copy(to, at, source, bytes, BounceOp::Write);
        }
        if (to.kind == Stretch::Kind::Direct) {
          copy_tail_last(to.pointer + at, source, bytes);
        }
        return Access{};
      });
}

Access MemoryMover::read(const LocalPieces& to, std::uint64_t skip, const Stretch& from,
                         std::uint64_t offset, std::uint64_t n) {
  if (from.kind != Stretch::Kind::Ranges) return read_one(to, skip, from, offset, n);
  return in_parts(arena_, slot_, from, offset, n,
                  [&](const Stretch& part, std::uint64_t done, std::uint64_t bytes) {
                    return read_one(to, skip + done, part, 0, bytes);
                  });
}

Access MemoryMover::read_one(const LocalPieces& to, std::uint64_t skip, const Stretch& from,
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
          return far_.copy(from, at, target, bytes, BounceOp::Read);
        }
        return Access{};
      });
}

Access MemoryMover::atomic(const Stretch& at, const std::uint64_t* compare, std::uint64_t operand,
                           std::uint64_t& old) {
  if (at.kind == Stretch::Kind::Zero) {
    old = 0;
    return {};
  }
  if (at.kind == Stretch::Kind::Ranges) {
    Stretch part;
    const Access found = part_of(arena_, slot_, at, 0, part);
    if (!found.ok()) return found;
    return part.length < sizeof old ? failed(Cause::RemoteKeyRange)
                                    : atomic(part, compare, operand, old);
  }
  // An aligned address has an aligned place here, unless device memory tells lies.
  const bool has_place = aligned<std::uint64_t>(at.pointer);
  if (at.kind != Stretch::Kind::Direct || !at.cpu_atomic || at.doubtful || !has_place) {
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
Access MemoryMover::locked_atomic(const Stretch& at, const std::uint64_t* compare,
                                  std::uint64_t operand, std::uint64_t& old) {
  Shared32& word = arena_.atomic_lock(at.slot, at.address);
  if (!lock(word, lock_owner(slot_), [this](std::uint32_t round) { host_.relax(round); })) {
    return {Cause::None, true, 0};
  }
  Stretch one = at;
  one.length = sizeof old;
  LocalPiecesOf<1> piece;
  piece.add(reinterpret_cast<std::byte*>(&old), sizeof old);
  Access done = read(piece, 0, one, 0, sizeof old);
  if (done.ok() && (compare == nullptr || old == *compare)) {
    std::uint64_t value = compare == nullptr ? old + operand : operand;
    LocalPiecesOf<1> source;
    source.add(reinterpret_cast<std::byte*>(&value), sizeof value);
    done = write(source, 0, one, 0, sizeof value);
  }
  unlock(word);
  return done;
}

Access MemoryMover::write_doubtful(std::byte* from, const Stretch& to, std::uint64_t offset,
                                   std::uint64_t n) {
  if (to.kind == Stretch::Kind::Zero) return {};
  if (to.kind == Stretch::Kind::Remote) return far_.copy(to, offset, from, n, BounceOp::Write);
  std::byte* const target = to.pointer + offset;
  switch (host_.copy_own(target, from, n)) {
    case platform::OwnCopy::Done: return {};
    case platform::OwnCopy::NoSource: return failed(Cause::LocalMemoryGone, address_of(from));
    case platform::OwnCopy::NoTarget: return failed(Cause::MemoryGone, address_of(target));
    case platform::OwnCopy::NotNow: break;
  }
  return {Cause::None, true, 0};
}

Access MemoryMover::read_doubtful(std::byte* to, const Stretch& from, std::uint64_t offset,
                                  std::uint64_t n) {
  static const std::byte zeros[kBounceBytes]{};
  if (from.kind == Stretch::Kind::Remote) return far_.copy(from, offset, to, n, BounceOp::Read);
  const bool zero = from.kind == Stretch::Kind::Zero;
  while (n > 0) {
    const std::uint64_t step = zero ? std::min<std::uint64_t>(n, sizeof zeros) : n;
    const std::byte* source = zero ? zeros : from.pointer + offset;
    switch (host_.copy_own(to, source, step)) {
      case platform::OwnCopy::Done: break;
      case platform::OwnCopy::NoSource: return failed(Cause::MemoryGone, address_of(source));
      case platform::OwnCopy::NoTarget: return failed(Cause::LocalMemoryGone, address_of(to));
      case platform::OwnCopy::NotNow: return {Cause::None, true, 0};
    }
    to += step;
    offset += step;
    n -= step;
  }
  return {};
}

}  // namespace ib::hca
