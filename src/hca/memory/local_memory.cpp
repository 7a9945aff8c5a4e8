// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/local_memory.h"

#include "base/address.h"
#include "hca/memory/ranges.h"
#include "hca/memory/responder.h"

#include <memory>

namespace ib::hca {

namespace access = verbs::access;

namespace {

// Reads of a null region give zeros and writes vanish: in a scratch page of the thread's.
Access resolve_null(const Sge& sge, std::uint32_t access, LocalPieces& out) {
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

}  // namespace

Access LocalMemory::resolve_special(const LocalKey& key, const Sge& sge, std::uint32_t access,
                                    LocalPieces& out) const {
  if (key.kind == KeyKind::Null) return resolve_null(sge, access, out);
  Stretch all;
  all.kind = Stretch::Kind::Ranges;
  all.slot = slot_;
  all.address = sge.address - key.iova;
  all.length = sge.length;
  all.ranges = key.ranges;
  return in_parts(arena_, slot_, all, 0, all.length,
                  [&out](const Stretch& part, std::uint64_t, std::uint64_t bytes) {
                    if (out.is_full()) return failed(Cause::LocalPieces, out.room);
                    out.add(part.pointer, static_cast<std::uint32_t>(bytes));
                    return Access{};
                  });
}

Access LocalMemory::resolve_as_remote(std::uint32_t key, std::uint64_t address,
                                      std::uint64_t length, std::uint32_t access, std::uint32_t pd,
                                      Stretch& out) const {
  const LocalKey* entry = keys_.find(key);
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
  out.address = address_of(out.pointer);
  const KeyEntry* shared = arena_.key(key_index(key));
  out.cpu_atomic = entry->kind == KeyKind::DeviceMemory ||
                   in_range(out.address, length, shared->adopted.address, shared->adopted.length);
  return {};
}

CachedLocal LocalMemory::cache(std::uint32_t key, std::uint32_t pd) const {
  const std::uint64_t as_of = keys_.hidden();  // before the look
  const LocalKey* local = keys_.find(key);
  if (local == nullptr || local->pd != pd || local->kind > KeyKind::DeviceMemory ||
      local->is_doubtful() || wraps_around(local->iova, local->length)) {
    return {};
  }
  return {{{key, local->access, local->iova, local->length}, local->address}, as_of};
}

}  // namespace ib::hca
