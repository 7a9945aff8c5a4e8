// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/memory/bounce.h"

#include "base/address.h"

#include <algorithm>
#include <span>

namespace ib::hca {

namespace {

using platform::OwnCopy;

constexpr Duration kTimeLimit = std::chrono::milliseconds(200);

bool change(BounceEntry& entry, BounceState from, BounceState to) {
  return entry.request.state.compare_exchange_strong(from, to, std::memory_order_acq_rel);
}

void set(BounceEntry& entry, BounceState to) {
  entry.request.state.store(to, std::memory_order_release);
}

BounceEntry* claim(const Arena& arena, std::uint32_t owner, std::uint32_t requester) {
  for (std::uint32_t i = 0; i < kBouncesPerSlot; ++i) {
    BounceEntry* entry = arena.bounce(owner, i);
    if (entry != nullptr && change(*entry, BounceState::Free, BounceState::Claimed)) {
      entry->request.requester_slot.store(requester, std::memory_order_release);
      return entry;
    }
  }
  return nullptr;
}

Access local_memory_gone(const void* address) {
  return {Cause::LocalMemoryGone, false, address_of(address)};
}

// Whether a region contains these addresses of its owner's, which the peer has named.
bool holds(const LocalKey& region, std::uint64_t address, std::uint64_t length) {
  if (region.kind == KeyKind::Region) {
    return in_range(address, length, address_of(region.address), region.length);
  }
  if (region.kind != KeyKind::Ranges || region.ranges->kind != KeyKind::Region) return false;
  const auto used = std::span(region.ranges->range).first(region.ranges->count);
  return std::any_of(used.begin(), used.end(), [&](const Range& range) {
    return in_range(address, length, range.address, range.length);
  });
}

}  // namespace

Access BounceClient::copy(const Stretch& at, std::uint64_t offset, std::byte* local,
                          std::uint64_t n, BounceOp op) {
  while (n > 0) {
    const auto step = static_cast<std::uint32_t>(std::min<std::uint64_t>(n, kBounceBytes));
    BounceEntry* entry = nullptr;
    Access done =
        request(at, entry, op, at.address + offset, step, op == BounceOp::Write ? local : nullptr);
    if (done.ok() && op == BounceOp::Read) {
      const OwnCopy copied = host_.copy_own(local, entry->data.data(), step);
      if (copied == OwnCopy::NotNow) done.blocked = true;
      if (copied == OwnCopy::NoTarget) done = local_memory_gone(local);
    }
    if (entry != nullptr) set(*entry, BounceState::Free);
    if (!done.ok()) return done;
    local += step;
    offset += step;
    n -= step;
  }
  return {};
}

// One request, start to end. While it waits it serves this process's own entries, so two
// processes that wait for each other both make progress.
Access BounceClient::request(const Stretch& at, BounceEntry*& entry, BounceOp op,
                             std::uint64_t address, std::uint32_t length, const std::byte* data) {
  entry = claim(arena_, at.slot, slot_);
  if (entry == nullptr) return {Cause::None, true, 0};
  entry->request.op = op;
  entry->request.key = at.key;
  entry->request.address = address;
  entry->request.length = length;
  entry->request.status = 0;
  if (data != nullptr) {
    const OwnCopy copied = host_.copy_own(entry->data.data(), data, length);
    if (copied == OwnCopy::NotNow) return {Cause::None, true, 0};
    if (copied == OwnCopy::NoSource) return local_memory_gone(data);
  }
  set(*entry, BounceState::Submitted);
  ProcessSlot& owner = *arena_.slot(at.slot);
  const std::uint32_t generation = owner.generation.load(std::memory_order_acquire);
  owner.attention.fetch_add(1, std::memory_order_release);
  host_.kick(at.slot);

  const Instant give_up = host_.now() + kTimeLimit;
  const auto done = BounceState::Done;
  for (std::uint32_t round = 0;; ++round) {
    if (entry->request.state.load(std::memory_order_acquire) == done) break;
    if (owner.generation.load(std::memory_order_acquire) != generation) {
      return {Cause::PeerProcessGone, false, owner.pid};
    }
    host_.serve_bounces();
    host_.relax(round);
    if (round % 64 == 63 && host_.now() > give_up &&
        change(*entry, BounceState::Submitted, BounceState::Claimed)) {
      return {Cause::None, true, 0};
    }
  }
  const std::uint32_t status = entry->request.status;
  return {static_cast<Cause>(status), false, address};
}

void BounceServer::serve_all() {
  for (std::uint32_t i = 0; i < kBouncesPerSlot; ++i) {
    BounceEntry* entry = arena_.bounce(slot_, i);
    if (entry->request.state.load(std::memory_order_acquire) == BounceState::Submitted) {
      serve(*entry);
    }
  }
}

void BounceServer::serve(BounceEntry& entry) {
  if (!change(entry, BounceState::Submitted, BounceState::Running)) return;
  const BounceOp op = entry.request.op;
  const std::uint32_t key = entry.request.key;
  const std::uint64_t address = entry.request.address;
  const std::uint32_t length = entry.request.length;
  Cause cause = Cause::None;
  const LocalKey* region = keys_.find(key);
  if (region == nullptr || length > kBounceBytes || !holds(*region, address, length)) {
    cause = Cause::RemoteKeyUnknown;
  } else {
    auto* const here = pointer_to(address);
    const bool write = op == BounceOp::Write;
    // The program may have unmapped it or forbidden the access meanwhile, and must not die of it.
    const OwnCopy copied = write ? host_.copy_own(here, entry.data.data(), length)
                                 : host_.copy_own(entry.data.data(), here, length);
    if (copied == OwnCopy::NotNow) return set(entry, BounceState::Submitted);  // or withdrawn
    if (copied != OwnCopy::Done) cause = Cause::MemoryGone;
  }
  entry.request.status = static_cast<std::uint32_t>(cause);
  set(entry, BounceState::Done);
}

}  // namespace ib::hca
