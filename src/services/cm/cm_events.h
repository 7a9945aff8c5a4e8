// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CmEvents: the events of the engine for one kernel client. An event completes the request that
// waits for it, or is kept for WaitEvent. It is taken from the executor, never inside a call: a
// completion may call anything.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "services/cm/cm_objects.h"

#include <deque>
#include <memory>

namespace ib::services {

class CmEvents {
 public:
  CmEvents(platform::Executor& executor, const fabric::Hca& hca, CmObjects& objects)
      : executor_(executor), hca_(hca), objects_(objects) {}
  CmEvents(const CmEvents&) = delete;
  CmEvents& operator=(const CmEvents&) = delete;
  ~CmEvents() { *alive_ = false; }

  void add(const cm::Event& event);
  // Completes GetRequest with what has come to the listener.
  void serve_listener(al::CmHandle handle);

 private:
  using Kind = CmObject::Kind;

  void run();
  void take(const cm::RequestReceived& event);
  void take(const cm::ReplyReceived& event);
  void take(const cm::Established& event);
  void take(const cm::Rejected& event);
  void take(const cm::TimedOut& event);
  void take(const cm::Delayed& event);
  void take(const cm::DisconnectRequested& event);
  void take(const cm::Disconnected& event);
  void take(const cm::TimeWaitEnded& event);
  void take(const cm::AlternatePathOffered& event);
  void take(const cm::AlternatePathAnswered& event);
  void take(const cm::AlternatePathTimedOut& event);
  void take(const cm::SidrRequested& event);
  void take(const cm::SidrAnswered& event);
  void take(const cm::SidrTimedOut& event);
  CmObject* connection_of(cm::ConnectionId id);
  void offer(cm::ListenerId listener, CmObject& object, al::CmRequest request);
  void keep(CmObject& object, al::CmEvent event);

  platform::Executor& executor_;
  const fabric::Hca& hca_;
  CmObjects& objects_;
  std::deque<cm::Event> events_;
  std::unique_ptr<platform::Timer> timer_;  // while there are events
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ib::services
