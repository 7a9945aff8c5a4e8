// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Files, ids, and the queue of events of each file.
#include "services/rdma_cm/service/service.h"

#include <algorithm>
#include <utility>

namespace ib::services::rdma_cm {
namespace {

template <class Map>
std::uint32_t next_number(const Map& map, std::uint32_t& last, std::uint32_t limit) {
  do {
    last = last + 1 < limit ? last + 1 : 1;
  } while (map.contains(last));
  return last;
}
// The preload library keeps a file's number in 28 bits.
constexpr std::uint32_t kFileLimit = 1u << 28;
constexpr std::uint32_t kIdLimit = 1u << 31;

}  // namespace

Service::Service(const fabric::Fabric& fabric, Connector& connector, Routes& routes,
                 ServiceOptions options)
    : fabric_(fabric),
      connector_(connector),
      routes_(routes),
      options_(std::move(options)),
      ports_({}, options_.random) {
  connector_.set_handler(this);
}

Service::~Service() {
  while (!files_.empty()) close(files_.begin()->first);
  connector_.set_handler(nullptr);
}

std::uint32_t Service::open(FileOptions options) {
  auto file = std::make_unique<File>();
  file->number = next_number(files_, last_file_, kFileLimit);
  file->options = std::move(options);
  const std::uint32_t number = file->number;
  connector_.prepare(fabric_.nodes()[file->options.node]);
  files_.emplace(number, std::move(file));
  return number;
}

void Service::close(std::uint32_t number) {
  const auto at = files_.find(number);
  if (at == files_.end()) return;
  File& file = *at->second;
  file.options.on_events = nullptr;
  settle_offer(file);
  if (file.waiter) std::exchange(file.waiter, nullptr)();
  while (!file.ids.empty()) destroy(*ids_.at(*file.ids.begin()));
  files_.erase(number);
}

Id& Service::make_id(File& file) {
  auto id = std::make_unique<Id>();
  id->number = next_number(ids_, last_id_, kIdLimit);
  id->file = &file;
  id->node = file.options.node;
  id->psn = options_.random() & 0xffffff;
  id->since = options_.now();
  Id& made = *id;
  file.ids.insert(made.number);
  ids_.emplace(made.number, std::move(id));
  return made;
}

Id* Service::find(const File& file, std::uint32_t number, Error& error) {
  const auto at = ids_.find(number);
  if (at == ids_.end()) {
    error = Error::NoEntry;
    return nullptr;
  }
  if (at->second->file == &file) return at->second.get();
  error = Error::Invalid;
  return nullptr;
}

Id* Service::find_by_endpoint(Endpoint endpoint) {
  const auto at = by_endpoint_.find(endpoint);
  return at == by_endpoint_.end() ? nullptr : at->second;
}

void Service::destroy(Id& id) {
  while (!id.multicasts.empty()) end_membership(*id.multicasts.begin());
  end_events(id);
  if (id.has_port) ports_.release(id.node, id.port_space, id.source.port, id.number);
  if (id.endpoint != 0) {
    by_endpoint_.erase(id.endpoint);
    connector_.drop(id.endpoint);
  }
  id.file->ids.erase(id.number);
  ids_.erase(id.number);
}

// Its events go unreported; so do the requests among them that no program will ever see.
void Service::end_events(Id& id) {
  settle_offer(*id.file);
  std::list<PendingEvent>& events = id.file->events;
  for (auto at = events.begin(); at != events.end() && id.events_pending > 0;) {
    if (at->id != &id && at->request != &id) {
      ++at;
      continue;
    }
    Id* const request = at->request != &id ? at->request : nullptr;
    --at->id->events_pending;
    if (at->request != nullptr) --at->request->events_pending;
    at = events.erase(at);
    if (request != nullptr) destroy(*request);
  }
}

void Service::queue(Id& id, ucma::Event event, std::uint32_t status) {
  PendingEvent pending;
  pending.out.event = event;
  pending.out.status = status;
  queue(id, pending);
}

// An id that its program has not accepted yet has no name for the program.
void Service::queue(Id& id, PendingEvent event) {
  if (event.request == nullptr && event.multicast == 0 && id.uid == 0) return;
  event.id = &id;
  if (event.multicast == 0) {
    event.out.uid = id.uid;
    event.out.id = event.request != nullptr ? event.request->number : id.number;
  }
  ++id.events_pending;
  if (event.request != nullptr) ++event.request->events_pending;
  File& file = *id.file;
  if (file.offer_drains) settle_offer(file);
  file.events.push_back(event);
  tell(file);
}

// Of new events: whoever waits for one, or else, once, the pollers of the descriptor.
void Service::tell(File& file) {
  if (file.waiter) return std::exchange(file.waiter, nullptr)();
  if (file.notice != File::Notice::None || !file.options.on_events) return;
  file.notice = File::Notice::Due;
  file.options.on_events();
}

bool Service::give_notice(std::uint32_t number) {
  const auto at = files_.find(number);
  if (at == files_.end()) return false;
  File& file = *at->second;
  settle_offer(file);
  file.notice = file.events.empty() ? File::Notice::None : File::Notice::Given;
  return file.notice == File::Notice::Given;
}

bool Service::await_event(std::uint32_t number, std::function<void()> on_event) {
  const auto at = files_.find(number);
  if (at == files_.end()) return false;
  File& file = *at->second;
  settle_offer(file);
  if (!file.events.empty() || file.waiter) return false;
  file.waiter = std::move(on_event);
  return true;
}

void Service::end_wait(std::uint32_t number) {
  const auto at = files_.find(number);
  if (at == files_.end()) return;
  at->second->waiter = nullptr;
  if (!at->second->events.empty()) tell(*at->second);
}

void Service::note_drained(File& file, bool& is_drained) {
  if (!file.events.empty() || file.notice != File::Notice::Given) return;
  file.notice = File::Notice::None;
  is_drained = true;
}

Error Service::get_event(File& file, std::size_t room, bool takes_ahead, Answer& answer) {
  if (file.events.empty()) return Error::Again;
  const PendingEvent& event = file.events.front();
  if (takes_ahead) add_answers_ahead(fabric_, event.about(), event.out.event, answer.ahead);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&event.out);
  answer.data.append({bytes, std::min(room, sizeof event.out)});
  take_first_event(file);
  note_drained(file, answer.is_drained);
  return Error::None;
}

// Its program has it.
void Service::take_first_event(File& file) {
  const PendingEvent& event = file.events.front();
  ++event.id->events_reported;
  --event.id->events_pending;
  if (event.request != nullptr) {
    --event.request->events_pending;
    event.id->requests.leave(event.request->sender);
  }
  if (event.multicast != 0) {
    const auto at = memberships_.find(event.multicast);
    if (at != memberships_.end()) ++at->second.events_reported;
  }
  file.events.pop_front();
}

void Service::offer_event(File& file, EventOffer& to, Answer& answer) {
  if (file.events.empty() || file.offer != nullptr) return;
  const PendingEvent& event = file.events.front();
  if (++last_offer_ == 0) ++last_offer_;
  if (!to.offer(last_offer_)) return;
  file.offer = &to;
  file.offer_drains = file.events.size() == 1 && file.notice == File::Notice::Given;
  add_event_ahead(event.out, {last_offer_, file.offer_drains}, answer.ahead);
  add_answers_ahead(fabric_, event.about(), event.out.event, answer.ahead);
}

void Service::settle_offer(File& file) {
  EventOffer* const offer = std::exchange(file.offer, nullptr);
  if (offer == nullptr || offer->withdraw()) return;
  take_first_event(file);
  if (file.offer_drains) file.notice = File::Notice::None;
}

void Service::end_offer(std::uint32_t number, const EventOffer& offer) {
  const auto at = files_.find(number);
  if (at != files_.end() && at->second->offer == &offer) settle_offer(*at->second);
}

// The id and its events go from the file of another descriptor to this one.
Error Service::migrate(File& file, const ucma::MigrateId& in, const Request& request,
                       Answer& answer) {
  if (request.from_file == 0) {
    answer.need = Answer::Need::File;
    answer.need_address = in.fd;
    return Error::None;
  }
  const auto from = files_.find(request.from_file);
  if (from == files_.end()) return Error::Invalid;
  File& old = *from->second;
  settle_offer(old);
  Error error = Error::None;
  Id* const id = find(old, in.id, error);
  if (id == nullptr) return error;
  answer.data.append_object(ucma::EventsOut{id->events_reported});
  if (&old == &file) return Error::None;
  if (file.options.node != old.options.node || file.ids.size() >= kMaxIdsOfFile) {
    return Error::Invalid;
  }
  bool moved = false;
  for (auto at = old.events.begin(); at != old.events.end();) {
    const auto next = std::next(at);
    if (at->id == id) {
      if (at->request != nullptr) {
        old.ids.erase(at->request->number);
        file.ids.insert(at->request->number);
        at->request->file = &file;
      }
      file.events.splice(file.events.end(), old.events, at);
      moved = true;
    }
    at = next;
  }
  old.ids.erase(id->number);
  file.ids.insert(id->number);
  id->file = &file;
  note_drained(old, answer.is_old_file_drained);
  if (moved) tell(file);
  return Error::None;
}

void Service::on_hca_gone(const fabric::Hca& hca) {
  std::vector<std::uint32_t> gone;
  for (const auto& [number, id] : ids_) {
    if (id->port != nullptr && fabric_.hca_of(*id->port) == &hca) gone.push_back(number);
  }
  std::sort(gone.begin(), gone.end());
  for (const std::uint32_t number : gone) {
    Id& id = *ids_.at(number);
    if (id.state == IdState::DeviceRemoval) continue;
    id.state = IdState::DeviceRemoval;
    queue(id, ucma::Event::DeviceRemoval, 0);
  }
}

// As Linux reports that a bonded interface has another port now: to each id on the old port, once.
void Service::on_ports_changed(const fabric::Hca& hca) {
  std::vector<std::uint32_t> moved;
  for (auto& [number, id] : ids_) {
    if (id->port == nullptr || fabric_.hca_of(*id->port) != &hca) continue;
    if (id->state == IdState::DeviceRemoval) continue;
    const bool was = std::exchange(
        id->has_moved, has_moved(fabric_, fabric_.nodes()[id->node], id->source, *id->port));
    if (id->has_moved && !was && id->events_pending < kMaxUnread) moved.push_back(number);
  }
  std::sort(moved.begin(), moved.end());
  for (const std::uint32_t number : moved) queue(*ids_.at(number), ucma::Event::AddrChange, 0);
}

}  // namespace ib::services::rdma_cm
