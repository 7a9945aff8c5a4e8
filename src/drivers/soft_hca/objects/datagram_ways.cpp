// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A poster that misses a way requests it by RaiseEvent; the answer is the entry. Entries stay until
// something on their way changes, or their place is needed.
#include "drivers/soft_hca/objects/datagram_ways.h"

#include "drivers/soft_hca/core.h"
#include "fabric/forwarding/data_way.h"
#include "fabric/subnet_setup.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ib::drivers {
namespace {

using control::Cause;

constexpr std::uint16_t kFirstMulticastLid = 0xc000;

bool is_group(hca::WayKey key) {
  return key.lid >= kFirstMulticastLid;
}

hca::WayWord word_of(const fabric::DataWay& way) {
  hca::WayWord word;
  const bool arrives = way.leads_to_adapter();
  word.stop = arrives ? Cause::None : way.stop;
  if (!arrives && word.stop == Cause::None) word.stop = Cause::PeerUnknown;  // that of a switch
  if (arrives) word.port = static_cast<std::uint16_t>(way.end->device_index);
  word.levels = way.levels;
  word.mtu = way.mtu;
  return word;
}

// The ports of channel adapters with a queue pair in the group, by their indexes in device memory.
std::set<std::uint32_t> members_of(Core& core, std::uint16_t lid) {
  std::set<std::uint32_t> members;
  core.mcasts.for_each([&](const McastGroupEntry& entry) {
    if (entry.dying || entry.mlid != lid) return;
    const auto& ports = entry.qp->file->hca->ports;
    const std::uint32_t number = entry.qp->attr.port;
    if (number >= 1 && number <= ports.size()) members.insert(ports[number - 1].device_index);
  });
  return members;
}

}  // namespace

void DatagramWays::find(Core& core, hca::WayKey key) {
  const fabric::Port* from = core.fabric.device_port(key.from);
  if (from == nullptr || key.lid == 0 || !fabric::is_behind_switch(core.fabric.graph(), *from)) {
    return;
  }
  if (is_group(key)) {
    find_group(core, key);
  } else if (key.member == hca::WayKey::kNoPort) {
    find_one(core, key);
  }
}

void DatagramWays::find_one(Core& core, hca::WayKey key) {
  fabric::Graph& graph = core.fabric.graph();
  fabric::Port& from = *graph.port(graph.index_of(*core.fabric.device_port(key.from)));
  fabric::DataWay way = fabric::find_data_way(graph, from, key.lid, key.pkey);
  // One that ends where it begins passes no port: it depends on its own.
  const std::uint32_t end = way.end != nullptr ? graph.index_of(*way.end) : way.stop_at;
  enter(core, key, word_of(way), {std::move(way.ports), end});
}

// All members at once: a sender needs each of them. Where softib manages the subnet, it has not
// written what its tables for groups would be: each member is reached that has a way by its LID.
void DatagramWays::find_group(Core& core, hca::WayKey key) {
  fabric::Graph& graph = core.fabric.graph();
  fabric::Port& from = *graph.port(graph.index_of(*core.fabric.device_port(key.from)));
  const std::set<std::uint32_t> members = members_of(core, key.lid);
  const bool by_tables = !core.fabric.is_managed_here(from);
  fabric::GroupWays tree;
  if (by_tables) tree = fabric::find_group_ways(graph, from, key.lid, key.pkey);
  const auto refusals = std::make_shared<const std::vector<std::uint32_t>>(std::move(tree.refused));
  std::set<std::pair<std::uint32_t, std::uint32_t>> links;
  const auto enter_member = [&](std::uint32_t member) {
    const fabric::Port* to = core.fabric.device_port(member);
    fabric::DataWay way;
    way.stop = Cause::WayMissing;
    way.stop_at = graph.index_of(from);
    const auto end = std::ranges::find(tree.ends, to, &fabric::DataWay::end);
    if (end != tree.ends.end()) way = *end;
    if (!by_tables && to != nullptr) {
      way = fabric::find_data_way(graph, from, to->lid, key.pkey);
      for (std::size_t i = 0; i + 1 < way.ports.size(); i += 2) {
        if (links.emplace(way.ports[i], way.ports[i + 1]).second) {
          tree.ports.insert(tree.ports.end(), {way.ports[i], way.ports[i + 1]});
        }
      }
    }
    hca::WayKey one = key;
    one.member = static_cast<std::uint16_t>(member);
    // Ports count what goes along the whole tree; this way is what the member depends on.
    enter(core, one, word_of(way), {std::move(way.ports), way.stop_at, refusals});
  };
  for (const std::uint32_t member : members) enter_member(member);
  if (key.member != hca::WayKey::kNoPort && !members.contains(key.member)) enter_member(key.member);
  hca::WayKey whole = key;
  whole.member = hca::WayKey::kNoPort;
  hca::WayWord nobody;  // a group is no queue pair's address: the entry counts
  nobody.stop = Cause::PeerUnknown;
  enter(core, whole, nobody, {std::move(tree.ports), graph.index_of(from), refusals});
}

std::uint32_t DatagramWays::place_for(Core& core, std::uint64_t key) {
  const std::uint32_t first = hca::way_place(key);
  std::uint32_t free = hca::kNone;
  for (std::uint32_t i = 0; i < hca::kWaysLookedAt; ++i) {
    const std::uint32_t index = (first + i) % hca::kMaxWays;
    const std::uint64_t there = core.arena().way(index)->key.load(std::memory_order_relaxed);
    if (there == key) return index;
    if (there == 0 && free == hca::kNone) free = index;
  }
  return free != hca::kNone ? free : first;
}

void DatagramWays::enter(Core& core, hca::WayKey key, const hca::WayWord& word, Course course) {
  const std::uint64_t name = key.word();
  const std::uint32_t index = place_for(core, name);
  hca::WayEntry& entry = *core.arena().way(index);
  Known& known = ways_[index];
  entry.word.store(0, std::memory_order_seq_cst);  // nobody begins to count
  count(core, index, known);
  entry.key.store(name, std::memory_order_seq_cst);
  entry.end = course.end;
  known.course = std::move(course);
  entry.word.store(word.word(), std::memory_order_release);
}

void DatagramWays::forget_those_that_pass(
    Core& core, const std::function<bool(std::uint32_t port)>& is_marked) {
  for (auto& [index, known] : ways_) {
    const Course& course = known.course;
    const bool passes = is_marked(course.end) || std::ranges::any_of(course.ports, is_marked) ||
                        (course.refusals && std::ranges::any_of(*course.refusals, is_marked));
    if (!passes) continue;
    core.arena().way(index)->word.store(0, std::memory_order_seq_cst);
    count(core, index, known);
  }
}

void DatagramWays::settle(Core& core) {
  for (auto& [index, known] : ways_) count(core, index, known);
}

// Ports of channel adapters count what their queue pairs send and get.
void DatagramWays::count(Core& core, std::uint32_t index, Known& known) {
  const hca::WayEntry& entry = *core.arena().way(index);
  const std::uint64_t packets = entry.packets.load(std::memory_order_relaxed) - known.packets;
  const std::uint64_t bytes = entry.bytes.load(std::memory_order_relaxed) - known.bytes;
  known.packets += packets;
  known.bytes += bytes;
  const auto key = hca::WayKey::of(entry.key.load(std::memory_order_relaxed));
  if (packets == 0 || (is_group(key) && key.member != hca::WayKey::kNoPort)) return;
  fabric::Graph& graph = core.fabric.graph();
  for (std::size_t i = 0; i < known.course.ports.size(); ++i) {
    fabric::Port& port = *graph.port(known.course.ports[i]);
    if (port.device_index != fabric::kNoIndex) continue;
    fabric::PacketCounters& to = i % 2 == 0 ? port.counters.sent : port.counters.received;
    to.packets += packets;
    to.data += bytes / 4;  // in 4-byte words [IBA1 16.1.3.5]
    (is_group(key) ? to.multicast : to.unicast) += packets;
  }
}

}  // namespace ib::drivers
