// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EventWait: the wait for the events of a client's file 0, one after the other. An event may be
// raised by a work request that this very client is executing: it is taken when that is over.
#pragma once

#include "al/system.h"
#include "base/export.h"
#include "io/irp.h"
#include "verbs/control.h"

#include <functional>
#include <memory>
#include <utility>

namespace ib::al {

class Al;

class IB_DRIVER_API EventWait {
 public:
  using OnEvent = std::function<void(const verbs::control::EventOut& event)>;

  explicit EventWait(Al& al) : al_(al) {}
  EventWait(const EventWait&) = delete;
  EventWait& operator=(const EventWait&) = delete;

  // For those that are not the access layer's own business.
  void set_on_event(OnEvent on_event) { on_event_ = std::move(on_event); }
  // Waits for the next one, unless file 0 takes no request any more.
  void start();
  // An event that has come is not taken any more. Closing file 0 ends the wait.
  void stop() { timer_.reset(); }

 private:
  static void came(io::Irp& irp, void* context);

  Al& al_;
  OnEvent on_event_;
  io::Irp irp_;
  verbs::control::EventOut event_;
  std::unique_ptr<platform::Timer> timer_;  // an event is to be taken
};

}  // namespace ib::al
