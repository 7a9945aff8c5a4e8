// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Process: this process as a client of a fabric: it attaches, and owns the connections, the device
// memory, the tables of objects, and the two background threads (user/background).
//
// Three connections to softibd. The main one (ControlConnection): control calls, which may wait
// (for quiescence). Poster: small calls made while a work request executes; these must never wait
// behind a main call, since that may be waiting for this very work request. EventThread: WaitEvent.
//
// Lock order: control_lock -> send_lock of a queue pair -> recv_lock -> lock of WaitingRequests; a
// CQ's lock is taken before send_lock is *tried*. Nothing of the application is called under any.
#pragma once

#include "hca/memory/memory_plane.h"
#include "hca/memory/op_scope.h"
#include "user/api.h"
#include "user/arena_mapping.h"
#include "user/background/attention.h"
#include "user/background/event_thread.h"
#include "user/background/service_thread.h"
#include "user/background/waiting_requests.h"
#include "user/control_connection.h"
#include "user/object_tables.h"
#include "user/poster.h"
#include "user/queue_pair.h"
#include "user/regions.h"

#include <memory>
#include <string>

namespace ib::user {

class Process {
 public:
  // Connects to softibd, maps device memory, starts the service and event threads.
  static Result<std::unique_ptr<Process>> attach(platform::ClientHost& host,
                                                 const ProcessOptions& options, EventSink& events,
                                                 std::string& reason);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const control::AttachOut& info() const { return info_; }  // node name, HCAs
  Result<std::unique_ptr<Hca>> open_hca(std::uint64_t node_guid);
  Result<std::unique_ptr<CompletionChannel>> create_channel();

  platform::ClientHost& host() { return host_; }
  ControlConnection& connection() { return connection_; }
  hca::MemoryPlane& plane() { return *plane_; }
  const hca::Arena& arena() const { return plane_->arena(); }
  Poster& poster() { return *poster_; }
  Regions& regions() { return *regions_; }
  ObjectTables& objects() { return objects_; }
  WaitingRequests& waiting() { return waiting_; }
  const WaitingRequests& waiting() const { return waiting_; }
  Attention& attention() { return attention_; }
  ServiceThread& service() { return *service_; }
  bool daemon_gone() const { return events_->daemon_gone(); }
  // softibd is gone, and nothing is worth waiting for (EventThread).
  bool is_over() const { return events_->is_over(); }

 private:
  explicit Process(platform::ClientHost& host) : host_(host), connection_(host) {}
  Status start(const ProcessOptions& options, EventSink& events, std::string& reason);
  Status make_tables(std::unique_ptr<platform::ControlChannel> poster, std::string& reason);
  Status start_threads(EventSink& events, std::unique_ptr<platform::ControlChannel> channel,
                       std::string& reason);

  // In the order in which they end, from the last: the threads first; then the connection, so that
  // softibd tears down what is left before the memory is unmapped here.
  platform::ClientHost& host_;
  control::AttachOut info_;
  ArenaMapping mapping_;
  ObjectTables objects_;
  WaitingRequests waiting_;
  std::unique_ptr<Poster> poster_;
  std::unique_ptr<hca::MemoryPlane> plane_;
  std::unique_ptr<Regions> regions_;
  ControlConnection connection_;
  Attention attention_{connection_, objects_};
  std::unique_ptr<ServiceThread> service_;
  std::unique_ptr<EventThread> events_;
};

}  // namespace ib::user
