// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The queue of events of each file, and its notices, waits and offers.
#include "services/rdma_cm/service/event_queue.h"

#include "services/rdma_cm/service/ids.h"

#include <iterator>
#include <utility>

namespace ib::services::rdma_cm {

void EventQueue::close() {
  on_events_ = nullptr;
  settle_offer();
  if (waiter_) std::exchange(waiter_, nullptr)();
}

void EventQueue::push(const PendingEvent& event) {
  if (offer_drains_) settle_offer();
  events_.push_back(event);
  tell();
}

// Of new events: whoever waits for one, or else, once, the pollers of the descriptor.
void EventQueue::tell() {
  if (waiter_) return std::exchange(waiter_, nullptr)();
  if (notice_ != Notice::None || !on_events_) return;
  notice_ = Notice::Due;
  on_events_();
}

void EventQueue::take_first() {
  const PendingEvent& event = events_.front();
  ++event.id->events_reported;
  --event.id->events_pending;
  if (event.request != nullptr) {
    --event.request->events_pending;
    event.id->requests.leave(event.request->sender);
  }
  if (event.membership != nullptr) ++event.membership->events_reported;
  events_.pop_front();
}

std::vector<Id*> EventQueue::remove_events_of(Id& id) {
  settle_offer();
  std::vector<Id*> requests;
  for (auto at = events_.begin(); at != events_.end() && id.events_pending > 0;) {
    if (at->id != &id && at->request != &id) {
      ++at;
      continue;
    }
    --at->id->events_pending;
    if (at->request != nullptr) --at->request->events_pending;
    if (at->request != nullptr && at->request != &id) requests.push_back(at->request);
    at = events_.erase(at);
  }
  return requests;
}

void EventQueue::remove_events_of(const Membership& membership) {
  Id& id = *membership.id;
  for (auto event = events_.begin(); event != events_.end() && id.events_pending > 0;) {
    const bool of_it = event->membership == &membership;
    if (of_it) --id.events_pending;
    event = of_it ? events_.erase(event) : std::next(event);
  }
}

std::vector<Id*> EventQueue::move_events_of(const Id& id, EventQueue& to) {
  std::vector<Id*> requests;
  bool moved = false;
  for (auto at = events_.begin(); at != events_.end();) {
    const auto next = std::next(at);
    if (at->id == &id) {
      if (at->request != nullptr) requests.push_back(at->request);
      to.events_.splice(to.events_.end(), events_, at);
      moved = true;
    }
    at = next;
  }
  if (moved) to.tell();
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

void EventQueue::end_offer(const EventOffer& offer) {
  if (offer_ == &offer) settle_offer();
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
  ++id.events_pending;
  if (event.request != nullptr) ++event.request->events_pending;
  id.file->events.push(event);
}

}  // namespace ib::services::rdma_cm
