// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Walks the records of each process; fill levels and arming come from device memory, which programs
// can write: a level that is impossible is shown as a full ring.
#include "drivers/diagnostics/resources.h"

#include "drivers/soft_hca/handlers.h"
#include "drivers/trace/explain.h"
#include "verbs/explanation.h"
#include "verbs/qp_state.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace ib::drivers {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kEventBytes = 8;  // of a completion event in the pipe of its channel

std::string hex(std::uint64_t value) {
  return fmt::format("{:#x}", value);
}

std::uint64_t level(std::uint64_t in, std::uint64_t out, std::uint64_t most) {
  return std::min(in - out, most);
}

Json peer_json(const Qp& peer) {
  const Session& session = *peer.file->session;
  return {{"node", session.node->name},
          {"pid", session.pid},
          {"program", session.program},
          {"hca", peer.file->hca->name}};
}

void put_peer(Core& core, const Qp& qp, Json& json) {
  if (qp.attr.dest_qpn == 0) return;
  json["peer_qpn"] = hex(qp.attr.dest_qpn);
  const Qp* peer = core.qps.find(hca::qp_index(qp.attr.dest_qpn));
  if (peer != nullptr && peer->qpn == qp.attr.dest_qpn) json["peer"] = peer_json(*peer);
}

// The cause for which its oldest request waits, or which broke it.
void put_causes(const Qp& qp, const hca::QpEntry& entry, Json& json) {
  const control::Cause blocked = entry.requester.blocked.load();
  if (blocked != control::Cause::None && !qp.dying) json["waits"] = verbs::cause_name(blocked);
  const control::Cause broken = entry.geometry.error_cause.load();
  if (json["state"] == qp_state_name(verbs::QpState::Error) && broken != control::Cause::None) {
    json["error"] = verbs::cause_name(broken);
  }
}

Json qp_json(Core& core, const Qp& qp) {
  const hca::QpEntry& entry = *core.arena().qp(qp.index);
  Json json = {{"hca", qp.file->hca->name},
               {"port", qp.attr.port},
               {"qpn", hex(qp.qpn)},
               {"type", qp_type_name(qp.type)},
               {"state", qp_state_name(current_state(core, qp))}};
  put_peer(core, qp, json);
  if (qp.send_cq != nullptr) {
    json["send_cq"] = qp.send_cq->index;
    json["max_send_wr"] = qp.caps.max_send_wr;
  }
  if (qp.recv_cq != nullptr) json["recv_cq"] = qp.recv_cq->index;
  if (qp.srq != nullptr) {
    json["srq"] = qp.srq->index;
  } else if (qp.recv_cq != nullptr) {
    json["receives_posted"] =
        level(entry.owner.rq_tail.load(), entry.responder.rq_head.load(), qp.rq_slots);
    json["max_recv_wr"] = qp.caps.max_recv_wr;
  }
  json["sent_messages"] = entry.requester.messages.load();
  json["received_messages"] = entry.responder.messages.load();
  put_causes(qp, entry, json);
  return json;
}

const char* arming_name(std::uint32_t armed) {
  if (armed == 1) return "any";
  return armed == 2 ? "solicited" : "no";
}

Json cq_json(Core& core, const Cq& cq) {
  const hca::CqEntry& entry = *core.arena().cq(cq.index);
  const std::uint64_t written = entry.producer.producer.load();
  Json json = {{"hca", cq.file->hca->name},
               {"cq", cq.index},
               {"entries", cq.cqe},
               {"unpolled", level(written, entry.consumer.consumer.load(), cq.slots)},
               {"completions", written},
               {"armed", arming_name(entry.arm.armed.load())},
               {"was_armed", entry.arm.used.load() != 0},
               {"overrun", entry.producer.overflowed.load() != 0},
               {"queues", cq.qps + cq.srqs}};
  if (const Channel* channel = core.channels.find_handle(cq.channel); channel != nullptr) {
    json["channel"] = channel->index;
  }
  return json;
}

Json srq_json(Core& core, const Srq& srq) {
  const hca::SrqEntry& entry = *core.arena().srq(srq.index);
  return {
      {"hca", srq.file->hca->name},
      {"srq", srq.index},
      {"type", srq.type == verbs::SrqType::Xrc ? "XRC" : "basic"},
      {"receives_posted", level(entry.producer.tail.load(), entry.consumer.head.load(), srq.slots)},
      {"max_wr", srq.max_wr},
      {"limit", entry.event.limit.load()},
      {"queue_pairs", srq.qps}};
}

Json key_json(const Core& core, const Key& key) {
  Json json = {{"hca", key.file->hca->name}, {"key", hex(key.key)}};
  if (key.pd != nullptr) json["pd"] = key.pd->index;
  if (key.kind == Kind::Window) {
    // The program binds it by itself; device memory has the range.
    const hca::KeyEntry& entry = *core.arena().key(key.index);
    const bool bound = entry.id.state.load() == hca::KeyState::Valid;
    json["key"] = hex(entry.id.key.load());
    json["bound"] = bound;
    if (!bound) return json;
    json["iova"] = hex(entry.id.iova);
    json["length"] = entry.id.length;
    json["access"] = access_names(entry.id.access);
    return json;
  }
  json["address"] = hex(key.address);
  json["iova"] = hex(key.iova);
  json["length"] = key.length;
  json["access"] = access_names(key.access);
  return json;
}

Json channels_json(Core& core, const Session& session) {
  Json channels = Json::array();
  for (const std::uint32_t index : session.channels) {
    const Channel& channel = *core.channels.find(index);
    channels.push_back(
        {{"channel", index},
         {"unread_events", core.memory.host().unread_bytes(channel.read_end) / kEventBytes},
         {"completion_queues", channel.cqs}});
  }
  return channels;
}

// The objects of one kind that `session` has, of all its files.
template <class F>
Json objects_of(const Session& session, Kind kind, F&& json_of) {
  Json objects = Json::array();
  for (const auto& file : session.files) {
    for (const std::uint32_t index : file->of(kind)) {
      Json json = json_of(index);
      if (!json.is_null()) objects.push_back(std::move(json));
    }
  }
  return objects;
}

// JSON of the object at an index of a table; null while it is being made.
template <class T, class F>
auto from(const Table<T>& table, F&& json_of) {
  return [&table, json_of](std::uint32_t index) {
    const T* object = table.find(index);
    return object == nullptr || object->making ? Json() : json_of(*object);
  };
}

Json program_json(Core& core, const Session& session) {
  const auto of_qp = [&core](const Qp& qp) { return qp_json(core, qp); };
  const auto of_cq = [&core](const Cq& cq) { return cq_json(core, cq); };
  const auto of_srq = [&core](const Srq& srq) { return srq_json(core, srq); };
  const auto of_key = [&core](const Key& key) { return key_json(core, key); };
  const hca::ProcessSlot& slot = *core.arena().slot(session.slot);
  return {{"pid", session.pid},
          {"program", session.program},
          {"node", session.node->name},
          {"is_softibd", session.pid == core.memory.host().pid()},
          {"unacknowledged_events", slot.unacknowledged.load()},
          {"qp", objects_of(session, Kind::Qp, from(core.qps, of_qp))},
          {"cq", objects_of(session, Kind::Cq, from(core.cqs, of_cq))},
          {"srq", objects_of(session, Kind::Srq, from(core.srqs, of_srq))},
          {"mr", objects_of(session, Kind::Region, from(core.keys, of_key))},
          {"mw", objects_of(session, Kind::Window, from(core.keys, of_key))},
          {"channels", channels_json(core, session)}};
}

}  // namespace

std::string resources_json(Core& core) {
  Json programs = Json::array();
  for (const auto& [id, session] : core.sessions) {
    if (session->slot != hca::kNone) programs.push_back(program_json(core, *session));
  }
  const Json json = {{"version", 1}, {"programs", std::move(programs)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace ib::drivers
