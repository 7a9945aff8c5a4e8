// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/datagram_way.h"

#include "hca/layout/gid_lookup.h"
#include "hca/requester/partition_check.h"

namespace ib::hca {

using verbs::QpType;
using verbs::control::way_detail;

namespace {

// Returns the entry if softibd has filled it, else nullptr.
WayEntry* filled_way(const Arena& arena, WayKey key, WayWord& word) {
  WayEntry* const entry = arena.find_way(key);
  if (entry == nullptr) return nullptr;
  const std::uint64_t found = entry->word.load(std::memory_order_acquire);
  // The entry may have become another way's between the two loads.
  if (found == 0 || entry->key.load(std::memory_order_acquire) != key.word()) return nullptr;
  word = WayWord::of(found);
  return entry;
}

// The same after a request to softibd, if that is necessary. The call is short: it waits for nobody
// else.
WayEntry* known_way(Attempt& a, WayKey key, WayWord& word) {
  const Arena& arena = a.plane.arena();
  if (WayEntry* const known = filled_way(arena, key, word)) return known;
  const std::uint64_t name = key.word();
  a.plane.host().raise({verbs::control::EventObject::Way, static_cast<std::uint32_t>(name >> 32),
                        static_cast<std::uint32_t>(name)});
  return filled_way(arena, key, word);
}

DatagramWay look_up(Attempt& a, WayKey key) {
  DatagramWay way;
  WayWord word;
  way.entry = known_way(a, key, word);
  if (way.entry == nullptr) {
    way.outcome = Outcome::wait(Cause::WayMissing, way_detail(kNone, key.lid));
    return way;
  }
  way.port = word.port;
  way.most = verbs::mtu_bytes(word.mtu);
  const unsigned level = a.wqe.av.sl & 15u;
  if (word.stop != Cause::None) {
    way.outcome = Outcome::dropped(word.stop, way_detail(way.entry->end, key.lid));
  } else if ((word.levels >> level & 1) == 0) {
    way.outcome = Outcome::dropped(Cause::WayLane, way_detail(way.entry->end, key.lid));
  }
  return way;
}

// Subnet management has a virtual lane and a way of its own.
bool needs_table(const Attempt& a, const PortEntry& from) {
  return from.has_switches.load(std::memory_order_relaxed) != 0 && a.config.type != QpType::Smi;
}

WayKey key_of(const Attempt& a, std::uint16_t lid) {
  WayKey key;
  key.from = static_cast<std::uint16_t>(a.own.id.port);
  key.lid = lid;
  key.pkey = own_pkey(a);
  return key;
}

}  // namespace

DatagramWay way_to_one(Attempt& a, const PortEntry& from) {
  const Arena& arena = a.plane.arena();
  const verbs::AddressVector& av = a.wqe.av;
  DatagramWay way;
  if (needs_table(a, from)) {
    std::uint16_t lid = av.dlid;
    if (lid == 0 && av.is_global != 0) {
      const PortEntry* to = arena.port(port_with_gid(arena, av.dgid));
      if (to != nullptr) lid = to->lid;
    }
    if (lid != 0) return look_up(a, key_of(a, lid));
  } else {
    way.port = destination_of(arena, from, av);
  }
  if (way.port == kNone) way.outcome = Outcome::dropped(Cause::PeerUnknown, av.dlid);
  return way;
}

DatagramWay way_to_member(Attempt& a, const PortEntry& from, std::uint32_t member) {
  DatagramWay way;
  way.port = member;
  // The own port gives it to its members itself.
  if (member == a.own.id.port || a.wqe.av.dlid == 0 || !needs_table(a, from)) return way;
  WayKey key = key_of(a, a.wqe.av.dlid);
  key.member = static_cast<std::uint16_t>(member);
  return look_up(a, key);
}

WayEntry* way_to_group(Attempt& a, const PortEntry& from) {
  if (a.wqe.av.dlid == 0 || !needs_table(a, from)) return nullptr;
  WayWord word;
  return known_way(a, key_of(a, a.wqe.av.dlid), word);
}

}  // namespace ib::hca
