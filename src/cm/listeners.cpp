// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Listeners for one service ID are found by it; those for a range of them are tried in turn.
#include "cm/listeners_internal.h"

#include <algorithm>

namespace ib::cm {
namespace {

constexpr std::uint64_t kExact = ~std::uint64_t{0};

bool kinds_meet(ServiceKind a, ServiceKind b) {
  return a == b || a == ServiceKind::Both || b == ServiceKind::Both;
}

bool services_meet(const Listener& a, const Listener& b) {
  const std::uint64_t both = a.service_mask & b.service_mask;
  return (a.service_id & both) == (b.service_id & both);
}

bool ports_meet(const Listener& a, const Listener& b) {
  return a.port == b.port || a.port == 0 || b.port == 0;
}

// Returns whether private data could satisfy both: no bit that both compare differs.
bool data_meets(const Listener& a, const Listener& b) {
  if (a.compares != b.compares) return false;  // the one that compares goes first
  if (!a.compares) return true;
  const std::size_t first = std::max(a.offset, b.offset);
  const std::size_t end = std::min(a.offset + a.value.size(), b.offset + b.value.size());
  for (std::size_t i = first; i < end; ++i) {
    const unsigned mask = a.mask[i - a.offset] & b.mask[i - b.offset];
    if (((a.value[i - a.offset] ^ b.value[i - b.offset]) & mask) != 0) return false;
  }
  return true;
}

bool data_fits(const Listener& listener, ByteSpan data) {
  for (std::size_t i = 0; i < listener.value.size(); ++i) {
    const std::size_t at = listener.offset + i;
    if (at >= data.size() || (data[at] & listener.mask[i]) != listener.value[i]) return false;
  }
  return true;
}

Result<Listener> parse(const Listen& listen) {
  Listener result;
  result.service_mask = listen.service_mask;
  result.service_id = listen.service_id & listen.service_mask;
  result.kind = listen.kind;
  result.port = listen.port;
  result.is_fallback = listen.is_fallback;
  if (listen.compare) {
    const PrivateDataCompare& compare = *listen.compare;
    if (compare.value.empty() || compare.offset + compare.value.size() > kSidrReqPrivateBytes) {
      return Status::InvalidParameter;
    }
    if (!compare.mask.empty() && compare.mask.size() != compare.value.size()) {
      return Status::InvalidParameter;
    }
    result.compares = true;
    result.offset = compare.offset;
    result.value.assign(compare.value.begin(), compare.value.end());
    result.mask.assign(compare.value.size(), 0xff);
    std::copy(compare.mask.begin(), compare.mask.end(), result.mask.begin());
    for (std::size_t i = 0; i < result.value.size(); ++i) result.value[i] &= result.mask[i];
  }
  return result;
}

}  // namespace

Result<ListenerId> Listeners::add(const Listen& listen) {
  IB_TRY(listener, parse(listen));
  if (all_.size() >= max_listeners_) return Status::InsufficientResources;
  const auto meets = [&](const Listener* other) {
    return kinds_meet(listener.kind, other->kind) && services_meet(listener, *other) &&
           ports_meet(listener, *other) && data_meets(listener, *other);
  };
  if (listener.is_fallback) {
    if (std::ranges::any_of(fallbacks_, meets)) return Status::AlreadyExists;
    return keep(std::move(listener), listen.backlog, fallbacks_);
  }
  const bool is_exact = listener.service_mask == kExact;
  const auto same = is_exact ? exact_.find(listener.service_id) : exact_.end();
  bool taken =
      std::any_of(masked_.begin(), masked_.end(), meets) ||
      (same != exact_.end() && std::any_of(same->second.begin(), same->second.end(), meets));
  if (!is_exact) {
    for (const auto& [service_id, listeners] : exact_) {
      taken = taken || std::any_of(listeners.begin(), listeners.end(), meets);
    }
  }
  if (taken) return Status::AlreadyExists;
  auto& list = is_exact ? exact_[listener.service_id] : masked_;
  return keep(std::move(listener), listen.backlog, list);
}

ListenerId Listeners::keep(Listener&& listener, std::uint32_t backlog,
                           std::vector<Listener*>& list) {
  while (next_id_ == 0 || all_.contains(next_id_)) ++next_id_;
  listener.id = ListenerId{next_id_};
  const bool is_given = backlog > 0 && backlog < max_backlog_;
  listener.waiting = WaitingRoom::of_backlog(is_given ? backlog : max_backlog_);
  Listener& kept = all_.emplace(next_id_++, std::move(listener)).first->second;
  list.push_back(&kept);
  return kept.id;
}

void Listeners::remove(ListenerId id) {
  const auto found = all_.find(static_cast<std::uint32_t>(id));
  if (found == all_.end()) return;
  Listener* listener = &found->second;
  if (listener->is_fallback) {
    std::erase(fallbacks_, listener);
  } else if (listener->service_mask == kExact) {
    const auto same = exact_.find(listener->service_id);
    std::erase(same->second, listener);
    if (same->second.empty()) exact_.erase(same);
  } else {
    std::erase(masked_, listener);
  }
  all_.erase(found);
}

Listener* Listeners::find(ListenerId id) {
  const auto found = all_.find(static_cast<std::uint32_t>(id));
  return found == all_.end() ? nullptr : &found->second;
}

Listener* Listeners::best_of(const std::vector<Listener*>& candidates, std::uint64_t service_id,
                             std::uint8_t port, ServiceKind kind, ByteSpan private_data) {
  Listener* best = nullptr;
  for (Listener* each : candidates) {
    const bool fits = (service_id & each->service_mask) == each->service_id &&
                      (each->port == 0 || each->port == port) && kinds_meet(each->kind, kind) &&
                      data_fits(*each, private_data);
    if (fits && (best == nullptr || each->compares)) best = each;
  }
  return best;
}

Listener* Listeners::match(std::uint64_t service_id, std::uint8_t port, ServiceKind kind,
                           ByteSpan private_data) {
  const auto same = exact_.find(service_id);
  Listener* exact =
      same == exact_.end() ? nullptr : best_of(same->second, service_id, port, kind, private_data);
  if (exact != nullptr && exact->compares) return exact;
  Listener* masked = best_of(masked_, service_id, port, kind, private_data);
  if (masked != nullptr && (exact == nullptr || masked->compares)) return masked;
  if (exact != nullptr) return exact;
  return best_of(fallbacks_, service_id, port, kind, private_data);
}

}  // namespace ib::cm
