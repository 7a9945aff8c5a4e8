// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "al/event_wait.h"

#include "al/al.h"
#include "al/requests_internal.h"
#include "base/buffers.h"

namespace ib::al {

void EventWait::start() {
  if (!al_.zero_->begin(irp_)) return;
  irp_.code = static_cast<std::uint32_t>(control::Code::WaitEvent);
  irp_.in = {};
  irp_.out = room_of(event_);
  io::call_driver(way_to(al_.system_, al_.system_.root), irp_.start(&came, this));
}

void EventWait::came(io::Irp& irp, void* context) {
  EventWait& self = *static_cast<EventWait*>(context);
  Al& al = self.al_;
  al.zero_->end(irp);
  if (!al.zero_->is_open()) return al.send_close();
  if (irp.status != Status::Ok) return;
  platform::Executor& executor = al.system_.executor;
  self.timer_ = executor.at(executor.now(), [&self] {
    const control::EventOut event = self.event_;
    self.start();
    if (self.al_.take_event(event) && self.on_event_) self.on_event_(event);
  });
}

}  // namespace ib::al
