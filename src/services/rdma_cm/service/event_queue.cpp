// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The queue of events of each file, and its notices, waits and offers.
#include "services/rdma_cm/service/event_queue.h"

#include "services/rdma_cm/service/ids.h"

#include <set>
#include <utility>

namespace ib::services::rdma_cm {

void EventQueue::close() {
  on_events_ = nullptr;
  settle_offer();
  if (waiter_) std::exchange(waiter_, nullptr)();
}

void EventQueue::push(const PendingEvent& event) {
  if (offer_drains_) settle_offer();
  add(event);
  tell();
}

void EventQueue::add(const PendingEvent& event) {
  const std::uint64_t number = ++last_number_;
  events_.emplace_hint(events_.end(), number, event);
  event.id->events.insert(number);
  if (event.request != nullptr) event.request->events.insert(number);
}

PendingEvent EventQueue::extract(Events::iterator at) {
  const PendingEvent event = at->second;
  event.id->events.erase(at->first);
  if (event.request != nullptr) event.request->events.erase(at->first);
  events_.erase(at);
  return event;
}

// Of new events: whoever waits for one, or else, once, the pollers of the descriptor.
void EventQueue::tell() {
  if (waiter_) return std::exchange(waiter_, nullptr)();
  if (notice_ != Notice::None || !on_events_) return;
  notice_ = Notice::Due;
  on_events_();
}

void EventQueue::take_first() {
  const PendingEvent event = extract(events_.begin());
  ++event.id->events_reported;
  if (event.request != nullptr) {
    event.request->is_unread = false;
    event.id->requests.leave(event.request->sender);
  }
  if (event.membership != nullptr) ++event.membership->events_reported;
}

std::vector<Id*> EventQueue::remove_events_of(Id& id) {
  settle_offer();
  std::vector<Id*> requests;
  while (!id.events.empty()) {
    const PendingEvent event = extract(events_.find(*id.events.begin()));
    if (event.request == nullptr) continue;
    event.id->requests.leave(event.request->sender);
    if (event.request != &id) requests.push_back(event.request);
  }
  return requests;
}

void EventQueue::remove_events_of(const Membership& membership) {
  for (const std::uint64_t number : std::set(membership.id->events)) {
    const auto at = events_.find(number);
    if (at->second.membership == &membership) extract(at);
  }
}

std::vector<Id*> EventQueue::move_events_of(Id& id, EventQueue& to) {
  std::vector<PendingEvent> moved;
  while (!id.events.empty()) moved.push_back(extract(events_.find(*id.events.begin())));
  std::vector<Id*> requests;
  for (const PendingEvent& event : moved) {
    to.add(event);
    if (event.request != nullptr) requests.push_back(event.request);
  }
  if (!moved.empty()) to.tell();
  return requests;
}

bool EventQueue::give_notice() {
  settle_offer();
  notice_ = events_.empty() ? Notice::None : Notice::Given;
  return notice_ == Notice::Given;
}

bool EventQueue::take_back_notice() {
  if (!events_.empty() || notice_ != Notice::Given) return false;
  notice_ = Notice::None;
  return true;
}

bool EventQueue::await(std::function<void()> on_event) {
  settle_offer();
  if (!events_.empty() || waiter_) return false;
  waiter_ = std::move(on_event);
  return true;
}

void EventQueue::end_wait() {
  waiter_ = nullptr;
  if (!events_.empty()) tell();
}

bool EventQueue::offer_first(EventOffer& to, std::uint32_t number, bool& drains) {
  if (!to.offer(number)) return false;
  offer_ = &to;
  drains = offer_drains_ = events_.size() == 1 && notice_ == Notice::Given;
  return true;
}

void EventQueue::settle_offer() {
  EventOffer* const offer = std::exchange(offer_, nullptr);
  if (offer == nullptr || offer->withdraw()) return;
  take_first();
  if (offer_drains_) notice_ = Notice::None;
}

void EventQueue::note_taken() {
  if (offer_ != nullptr && offer_->is_taken()) settle_offer();
}

void EventQueue::end_offer(const EventOffer& offer) {
  if (offer_ == &offer) settle_offer();
  if (client_ == &offer) client_ = nullptr;
}

void queue(Id& id, ucma::Event event, std::uint32_t status) {
  PendingEvent pending;
  pending.out.event = event;
  pending.out.status = status;
  queue(id, pending);
}

void queue(Id& id, PendingEvent event) {
  if (event.request == nullptr && event.membership == nullptr && id.uid == 0) return;
  event.id = &id;
  if (event.membership == nullptr) {
    event.out.uid = id.uid;
    event.out.id = event.request != nullptr ? event.request->number : id.number;
  }
  if (event.request != nullptr) event.request->is_unread = true;
  id.file->events.push(event);
}

}  // namespace ib::services::rdma_cm
