// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EventQueue: asynchronous events of the HCAs, from the thread that gets them to an event loop.
// Thread rule: on_event() by any thread; the rest by that of the loop.
#pragma once

#include "platform/control_channel.h"
#include "user/api.h"

#include <mutex>
#include <vector>

namespace ib::ipoib::driver {

class EventQueue final : public user::EventSink {
 public:
  Status open();
  // Readable while events wait.
  int descriptor() const { return signal_.get(); }
  void on_event(const user::control::EventOut& event) override;
  // All that wait, in their order.
  std::vector<user::control::EventOut> take();

 private:
  platform::NativeHandle signal_;
  std::mutex lock_;
  std::vector<user::control::EventOut> events_;
};

}  // namespace ib::ipoib::driver
