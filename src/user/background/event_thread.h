// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EventThread: waits for asynchronous events at softibd, on a connection of its own, and gives them
// to the event sink. The end of that connection is the end of the fabric: all that is outstanding
// ends with a flush error, and the sink gets DeviceFatal.
#pragma once

#include "platform/client_host.h"
#include "user/background/attention.h"
#include "user/control_connection.h"
#include "user/object_tables.h"
#include "user/poster.h"

#include <atomic>
#include <memory>

namespace ib::user {

class EventThread {
 public:
  // The parts of this process that the end of the fabric concerns.
  struct Fabric {
    platform::ClientHost& host;
    ControlConnection& connection;
    Attention& attention;
    const ObjectTables& objects;
    Poster& poster;
  };

  EventThread(const Fabric& fabric, EventSink& events,
              std::unique_ptr<platform::ControlChannel> channel)
      : fabric_(fabric), events_(events), channel_(std::move(channel)) {}
  ~EventThread();  // ends it
  EventThread(const EventThread&) = delete;
  EventThread& operator=(const EventThread&) = delete;

  // `process`: its slot and the slot's generation.
  Status start(const control::GenerationIn& process);
  // softibd is gone.
  bool daemon_gone() const { return daemon_gone_.load(std::memory_order_acquire); }
  // And everything that was outstanding has been flushed, as far as posters have left in a short
  // time: one that is stopped, or that has died and nobody says so any more, never leaves.
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }

 private:
  void run(const control::GenerationIn& process);
  void daemon_died();
  void flush_all();

  Fabric fabric_;
  EventSink& events_;
  std::unique_ptr<platform::ControlChannel> channel_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> daemon_gone_{false};
  std::atomic<bool> is_over_{false};
  std::unique_ptr<platform::ClientHost::Thread> thread_;
};

}  // namespace ib::user
