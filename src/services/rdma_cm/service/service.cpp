// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Files and ids from beginning to end, and the events of files.
#include "services/rdma_cm/service/service.h"

#include "services/rdma_cm/service/id_options.h"
#include "services/rdma_cm/service/listing.h"

#include <algorithm>
#include <utility>

namespace ib::services::rdma_cm {

Service::Service(const fabric::Fabric& fabric, Connector& connector, Routes& routes,
                 ServiceOptions options)
    : fabric_(fabric),
      connector_(connector),
      options_(std::move(options)),
      ports_({}, options_.random),
      ids_(options_.random, options_.now),
      trace_(fabric, ports_, ids_, options_.trace),
      binder_(fabric, ports_, trace_),
      resolver_(fabric, routes, ids_, binder_, trace_),
      memberships_(routes, trace_),
      connections_(fabric, connector, ports_, ids_, trace_, options_.find_owner) {}

Service::~Service() {
  while (!ids_.files().empty()) close(ids_.files().begin()->first);
}

std::uint32_t Service::open(FileOptions options) {
  connector_.prepare(fabric_.nodes()[options.node]);
  return ids_.make_file(std::move(options)).number;
}

void Service::close(std::uint32_t number) {
  File* const file = ids_.find_file(number);
  if (file == nullptr) return;
  file->is_closing = true;
  file->events.close();
  while (!file->ids.empty()) destroy(ids_.at(*file->ids.begin()));
  ids_.erase_file(*file);
}

Error Service::create_id(File& file, const ucma::CreateId& in, std::uint32_t& number) {
  if (!is_port_space(in.ps)) return Error::Invalid;
  const auto space = static_cast<PortSpace>(in.ps);
  const auto type = qp_type_of(space, in.qp_type);
  if (!type) return Error::Invalid;
  if (!IdTable::has_room(file)) return Error::NoMemory;
  Id& id = ids_.make(file);
  id.uid = in.uid;
  id.space = space;
  id.qp_type = *type;
  number = id.number;
  return Error::None;
}

// So end requests to it that no program will ever see.
void Service::destroy(Id& id) {
  memberships_.leave_all(id);
  trace_.note_end(id);
  for (Id* const request : id.file->events.remove_events_of(id)) destroy(*request);
  binder_.release(id);
  connections_.drop(id);
  ids_.erase(id);
}

std::optional<AnswersAhead> Service::give_notice(std::uint32_t number) {
  File* const file = ids_.find_file(number);
  if (file == nullptr || !file->events.give_notice()) return std::nullopt;
  AnswersAhead ahead;
  if (EventOffer* const client = file->events.client()) offer_event(*file, *client, ahead);
  return ahead;
}

bool Service::await_event(std::uint32_t number, std::function<void()> on_event) {
  File* const file = ids_.find_file(number);
  return file != nullptr && file->events.await(std::move(on_event));
}

void Service::end_wait(std::uint32_t number) {
  if (File* const file = ids_.find_file(number)) file->events.end_wait();
}

void Service::end_offer(const EventOffer& offer) {
  for (const auto& [number, file] : ids_.files()) file->events.end_offer(offer);
}

Error Service::get_event(File& file, std::size_t room, bool takes_ahead, Answer& answer) {
  if (file.events.is_empty()) return Error::Again;
  const PendingEvent& event = file.events.first();
  if (takes_ahead) add_answers_ahead(fabric_, event.about(), event.out.event, answer.ahead);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&event.out);
  answer.data.append({bytes, std::min(room, sizeof event.out)});
  file.events.take_first();
  answer.is_drained = file.events.take_back_notice();
  return Error::None;
}

void Service::offer_event(File& file, EventOffer& to, AnswersAhead& list) {
  if (!file.events.may_offer()) return;
  const PendingEvent& event = file.events.first();
  if (++last_offer_ == 0) ++last_offer_;
  OfferAhead ahead{last_offer_, false};
  if (!file.events.offer_first(to, ahead.number, ahead.drains)) return;
  add_event_ahead(event.out, ahead, list);
  add_answers_ahead(fabric_, event.about(), event.out.event, list);
}

// The id and its events go from the file of another descriptor to this one.
Error Service::migrate(File& file, const ucma::MigrateId& in, const Request& request,
                       Answer& answer) {
  if (request.from_file == 0) {
    answer.need = Answer::Need::File;
    answer.need_address = in.fd;
    return Error::None;
  }
  File* const from = ids_.find_file(request.from_file);
  if (from == nullptr || from->options.pid != request.pid) return Error::Invalid;
  File& old = *from;
  old.events.settle_offer();
  Error error = Error::None;
  Id* const id = ids_.find(old, in.id, error);
  if (id == nullptr) return error;
  answer.data.append_object(ucma::EventsOut{id->events_reported});
  if (&old == &file) return Error::None;
  const bool has_room = IdTable::has_room(file, 1 + id->requests.size());
  if (file.options.node != old.options.node || !has_room) return Error::Invalid;
  const auto move = [&](Id& one) {
    old.ids.erase(one.number);
    file.ids.insert(one.number);
    one.file = &file;
  };
  move(*id);
  for (Id* const incoming : old.events.move_events_of(*id, file.events)) move(*incoming);
  answer.is_old_file_drained = old.events.take_back_notice();
  return Error::None;
}

std::vector<Listing> Service::list() {
  for (const auto& [number, file] : ids_.files()) file->events.note_taken();
  std::vector<Listing> all;
  all.reserve(ids_.ids().size());
  for (const auto& [number, id] : ids_.ids()) {
    all.push_back(listing_of(*id, connections_.progress(*id)));
    all.back().age = options_.now() - id->since;
    all.back().groups = memberships_.groups_of(*id);
  }
  std::sort(all.begin(), all.end(), [](const Listing& a, const Listing& b) { return a.id < b.id; });
  return all;
}

}  // namespace ib::services::rdma_cm
