// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Service: the kernel side of /dev/infiniband/rdma_cm. Programs open files, create ids in them, and
// connect, listen and get events by the commands of librdmacm (ucma_layout.h); results and events
// are those of Linux. This class is the way in; its parts do the work: addresses (AddressBinder,
// Resolver), connections (Connections), multicast groups (Memberships) and events (EventQueue).
//
// * Every command ends at once; what takes longer becomes an event. Events are kept until the
//   program has got them; give_notice() comes before it is told that there are some.
// * The numbers of ids are unique in the fabric. An id may be used through its file only, and a
// file
//   by the process that has opened it.
// * An id that ends, for whatever reason, ends its connection: the peer gets a message.
//
// Thread rule: the executor's thread, dispatch level. Nothing here blocks.
#pragma once

#include "base/buffers.h"
#include "base/inline_bytes.h"
#include "platform/executor.h"
#include "services/rdma_cm/addresses/port_table.h"
#include "services/rdma_cm/command/ucma_command.h"
#include "services/rdma_cm/connector/connector.h"
#include "services/rdma_cm/service/address_binder.h"
#include "services/rdma_cm/service/answers_ahead.h"
#include "services/rdma_cm/service/connections.h"
#include "services/rdma_cm/service/failure_trace.h"
#include "services/rdma_cm/service/id_table.h"
#include "services/rdma_cm/service/listing.h"
#include "services/rdma_cm/service/memberships.h"
#include "services/rdma_cm/service/resolver.h"
#include "verbs/control_rdma_cm.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ib::services::rdma_cm {

struct ServiceOptions {
  std::function<std::uint32_t()> random;
  // Leaves a line for people about what a program of this node met (`softib trace`).
  FailureTrace::AddLine trace;
  std::function<Instant()> now = [] { return Instant{}; };  // for the age of ids
  FindOwner find_owner = {};                                // of queue pairs
};

class Service final {
 public:
  Service(const fabric::Fabric& fabric, Connector& connector, Routes& routes,
          ServiceOptions options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();

  // Returns the number of the file.
  std::uint32_t open(FileOptions options);
  void close(std::uint32_t file);

  struct Request {
    std::uint32_t file = 0;
    std::uint32_t pid = 0;                 // of the process that has written it
    std::span<const std::uint8_t> bytes;   // the beginning of what was written
    std::uint64_t size = 0;                // all of it
    std::span<const std::uint8_t> option;  // SetOption: what the pointer leads to; may be missing
    std::uint32_t from_file = 0;           // MigrateId: the file of the old descriptor; 0: missing
    bool takes_ahead = false;              // GetEvent: answers_ahead.h
    EventOffer* offer = nullptr;           // of the client, if it takes events ahead, too
  };
  struct Answer {
    Error error = Error::None;
    std::uint64_t address = 0;  // in the program, for `data`
    InlineBytes<sizeof(verbs::control::RdmaCmOut::bytes)> data;
    AnswersAhead ahead;
    // The request comes again with this.
    enum class Need : std::uint8_t { Nothing, Option, File } need = Need::Nothing;
    std::uint64_t need_address = 0;
    std::uint32_t need_size = 0;
    // The file's (or the old file's) last event has gone, of which there was notice.
    bool is_drained = false;
    bool is_old_file_drained = false;
  };
  Answer command(const Request& request);

  // The program is about to be told that its file has events. Returns what the notice brings along
  // (answers_ahead.h), or nothing if the events are gone.
  std::optional<AnswersAhead> give_notice(std::uint32_t file);

  // For a command that waits: `on_event` is called once, by the next event of the file instead of
  // on_events(), or by the end of the file. It may not call back. Returns false if there are
  // events, if another command waits, or if there is no such file.
  bool await_event(std::uint32_t file, std::function<void()> on_event);
  // The command that waited has got an event, or has given up: the others get on_events().
  void end_wait(std::uint32_t file);

  // The client of this offer has gone: what it has not taken is for others.
  void end_offer(const EventOffer& offer);

  std::vector<Listing> list();           // without their peers
  PortTable& ports() { return ports_; }  // for kernel clients that listen (kernel_ports.h)
  std::size_t id_count() const { return ids_.ids().size(); }
  std::size_t file_count() const { return ids_.files().size(); }

 private:
  struct Execution;  // of a command: service_commands.cpp

  Error create_id(File& file, const ucma::CreateId& in, std::uint32_t& number);
  void destroy(Id& id);
  Error get_event(File& file, std::size_t room, bool takes_ahead, Answer& answer);
  void offer_event(File& file, EventOffer& to, AnswersAhead& ahead);
  Error migrate(File& file, const ucma::MigrateId& in, const Request& request, Answer& answer);

  const fabric::Fabric& fabric_;
  Connector& connector_;
  ServiceOptions options_;
  PortTable ports_;
  IdTable ids_;
  FailureTrace trace_;
  AddressBinder binder_;
  Resolver resolver_;
  Memberships memberships_;
  Connections connections_;
  std::uint32_t last_offer_ = 0;
};

}  // namespace ib::services::rdma_cm
