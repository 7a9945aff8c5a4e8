// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/event_hub.h"

#include "base/address.h"

namespace ib::host_abi {

using user::control::EventObject;
using user::control::EventOut;

namespace {

AsyncEventRecord record_of(std::uint64_t element, verbs::EventType type) {
  return {.element = element, .event_type = static_cast<std::uint32_t>(type), .reserved = 0};
}

}  // namespace

void EventHub::add_file(std::uint32_t number, AsyncQueue* queue) {
  const std::lock_guard lock(mutex_);
  files_.push_back({number, queue});
}

void EventHub::remove_file(AsyncQueue* queue) {
  const std::lock_guard lock(mutex_);
  std::erase_if(files_, [&](const File& file) { return file.queue == queue; });
  std::erase_if(objects_, [&](const auto& entry) { return entry.second.queue == queue; });
}

std::uint64_t EventHub::add(void* element, AsyncQueue* queue) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t cookie = next_cookie_++;
  objects_[cookie] = {.element = element, .queue = queue, .delivered = {}};
  return cookie;
}

EventHub::Delivered EventHub::remove(std::uint64_t cookie) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(cookie);
  if (found == objects_.end()) return {};
  const Object object = found->second;
  objects_.erase(found);
  Delivered delivered = object.delivered;
  if (delivered.async != 0) {
    delivered.async -= object.queue->purge(address_of(object.element));
  }
  return delivered;
}

void* EventHub::deliver_completion(std::uint64_t cookie) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(cookie);
  if (found == objects_.end()) return nullptr;
  ++found->second.delivered.completion;
  return found->second.element;
}

void EventHub::on_event(const EventOut& event) {
  if (event.type == verbs::EventType::EventsLost) {  // has no number in libibverbs
    static_cast<void>(std::fprintf(
        stderr,
        "softib: %u asynchronous events were lost, since the process was stopped too long\n",
        event.index));
    return;
  }
  const std::lock_guard lock(mutex_);
  switch (event.object) {
    case EventObject::Cq:
    case EventObject::Qp:
    case EventObject::Srq: to_object(event); break;
    case EventObject::Device:
    case EventObject::Port: to_files(event); break;
    case EventObject::Way: break;  // no event
  }
}

void EventHub::to_object(const EventOut& event) {
  const auto found = objects_.find(event.cookie);
  if (found == objects_.end()) return;  // destroyed while the event was on its way
  Object& object = found->second;
  ++object.delivered.async;
  object.queue->post(record_of(address_of(object.element), event.type));
}

void EventHub::to_files(const EventOut& event) {
  const std::uint64_t element = event.object == EventObject::Port ? event.index : 0;
  for (const File& file : files_) {
    // File 0 in the event: softibd is gone, which affects all contexts.
    const bool concerned = event.file == 0 || file.number == event.file;
    if (concerned) file.queue->post(record_of(element, event.type));
  }
}

}  // namespace ib::host_abi
