// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests that concern only this process: binding and invalidating memory windows
// [IBA1 10.6.7, 11.4.1.1].
#include "hca/requester/attempt.h"

#include <optional>

namespace ib::hca {

namespace access = verbs::access;
using verbs::WcStatus;

namespace {

void store_state(KeyEntry& key, KeyState state) {
  key.id.state.store(state, std::memory_order_seq_cst);
}

bool is_valid(const KeyEntry& key) {
  return key.id.state.load(std::memory_order_acquire) == KeyState::Valid;
}

// Returns the property of the region that forbids it, for people (Cause::WindowBind); nothing if it
// may be bound.
std::optional<std::uint64_t> why_not_bound(const Attempt& a, const KeyEntry* region) {
  const SendWqe& wqe = a.wqe;
  if (region == nullptr || region->id.owner_slot != a.plane.slot() || !is_valid(*region)) return 4;
  const LocalKey* local = a.plane.local_keys().find(region->id.key.load(std::memory_order_relaxed));
  if (local == nullptr || local->pd != a.config.pd) return 4;
  if ((local->access & access::kMwBind) == 0) return local->access;
  const std::uint32_t writes = access::kRemoteWrite | access::kRemoteAtomic;
  if ((wqe.bind_access & writes) != 0 && (local->access & access::kLocalWrite) == 0) {
    return local->access;
  }
  // Whatever a flush through the window makes persistent lies in the region.
  if ((wqe.bind_access & ~local->access & access::kFlushPersistent) != 0) return local->access;
  if (!in_range(wqe.bind_address, wqe.bind_length, local->iova, local->length)) return 5;
  return std::nullopt;
}

}  // namespace

void unbind_window(const Arena& arena, KeyEntry& window) {
  auto valid = KeyState::Valid;
  if (!window.id.state.compare_exchange_strong(valid, KeyState::Invalid,
                                               std::memory_order_acq_rel)) {
    return;
  }
  KeyEntry* region = arena.key(window.id.window_region);
  if (region != nullptr && region->adopted.windows.load(std::memory_order_relaxed) > 0) {
    region->adopted.windows.fetch_sub(1, std::memory_order_acq_rel);
  }
}

Outcome bind_window(Attempt& a) {
  const SendWqe& wqe = a.wqe;
  const Arena& arena = a.plane.arena();
  KeyEntry* window = arena.key(wqe.window);
  KeyEntry* region = arena.key(wqe.bind_region);
  const auto refuse = [](std::uint64_t detail) {
    return Outcome::fail(WcStatus::MwBindErr, Cause::WindowBind, detail);
  };
  if (window == nullptr || window->id.owner_slot != a.plane.slot()) return refuse(0);
  const bool type2 = window->id.kind == KeyKind::Window2;
  if (!type2 && window->id.kind != KeyKind::Window1) return refuse(0);
  // Type 2 must be invalidated before it is bound again; its new key keeps the index.
  if (type2 && (is_valid(*window) || key_index(wqe.bind_rkey) != wqe.window)) return refuse(1);
  if (window->id.pd != a.config.pd) return refuse(2);
  const bool zero_length = wqe.bind_length == 0;
  if (zero_length && type2) return refuse(3);
  if (!zero_length) {
    if (const auto why = why_not_bound(a, region)) return refuse(*why);
  }
  unbind_window(arena, *window);
  if (zero_length) return Outcome::done();
  // Nobody reads the fields of a window that is not Valid, but a poster may be inside an older
  // binding of it: wait for those.
  if (!a.plane.quiesce_from_inside()) return refuse(6);
  window->id.iova = (wqe.bind_access & access::kZeroBased) != 0 ? 0 : wqe.bind_address;
  window->id.length = wqe.bind_length;
  window->id.address = region->id.address + (wqe.bind_address - region->id.iova);
  window->id.access = wqe.bind_access;
  window->id.window_region = wqe.bind_region;
  window->id.window_qpn = a.own.id.qpn.load(std::memory_order_relaxed);
  region->adopted.windows.fetch_add(1, std::memory_order_acq_rel);
  window->id.key.store(wqe.bind_rkey, std::memory_order_release);
  store_state(*window, KeyState::Valid);
  return Outcome::done();
}

Outcome invalidate_local(Attempt& a) {
  const std::uint32_t rkey = a.wqe.imm;
  const Arena& arena = a.plane.arena();
  KeyEntry* window = arena.key(key_index(rkey));
  if (window == nullptr || rkey == 0 || window->id.owner_slot != a.plane.slot() ||
      window->id.kind != KeyKind::Window2 || !is_valid(*window) ||
      window->id.window_qpn != a.own.id.qpn.load(std::memory_order_relaxed) ||
      window->id.key.load(std::memory_order_relaxed) != rkey) {
    return Outcome::fail(WcStatus::MwBindErr, Cause::RemoteKeyUnknown, rkey);
  }
  unbind_window(arena, *window);
  return Outcome::done();
}

}  // namespace ib::hca
