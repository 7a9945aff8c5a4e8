// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Service: the kernel side of /dev/infiniband/rdma_cm. Programs open files, create ids in them, and
// connect, listen and get events by the commands of librdmacm (ucma_layout.h); results and events
// are those of Linux.
//
// * Every command ends at once; what takes longer becomes an event. Events are kept until the
//   program has got them; File::is_readable tells it that there are some.
// * The numbers of ids are unique in the fabric. An id may be used through its file only.
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
#include "services/rdma_cm/service/answers_ahead.h"
#include "services/rdma_cm/service/ids.h"
#include "services/rdma_cm/words/listing.h"
#include "verbs/control_rdma_cm.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ib::services::rdma_cm {

struct ServiceOptions {
  std::function<std::uint32_t()> random;
  // Leaves a line for people about what a program of this node met (`softib trace`).
  std::function<void(std::string line, const File* file, std::string_view node)> trace;
  std::function<Instant()> now = [] { return Instant{}; };  // for the age of ids
};

class Service final : private Connector::Handler {
 public:
  // Ids of one file; the rest is for others.
  static constexpr std::size_t kMaxIdsOfFile = 65536;
  static constexpr std::uint32_t kMaxBacklog = 1024;
  // A program that takes no events gets no more of those that it can cause without end.
  static constexpr std::uint32_t kMaxUnread = 64;

  Service(const fabric::Fabric& fabric, Connector& connector, Routes& routes,
          ServiceOptions options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() override;

  // Returns the number of the file.
  std::uint32_t open(FileOptions options);
  void close(std::uint32_t file);

  struct Request {
    std::uint32_t file = 0;
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

  // The program is about to be told that its file has events. Returns false if they are gone.
  bool give_notice(std::uint32_t file);

  // For a command that waits: `on_event` is called once, by the next event of the file instead of
  // on_events(), or by the end of the file. It may not call back. Returns false if there are
  // events, if another command waits, or if there is no such file.
  bool await_event(std::uint32_t file, std::function<void()> on_event);
  // The command that waited has got an event, or has given up: the others get on_events().
  void end_wait(std::uint32_t file);

  // The client of this offer has gone: what it has not taken is for others.
  void end_offer(std::uint32_t file, const EventOffer& offer);

  std::vector<Listing> list() const;     // without their peers
  PortTable& ports() { return ports_; }  // for kernel clients that listen (kernel_ports.h)
  std::size_t id_count() const { return ids_.size(); }
  std::size_t file_count() const { return files_.size(); }

 private:
  // Connector::Handler
  void on_request(Endpoint endpoint, const fabric::Port& port,
                  const ConnectRequest& request) override;
  void on_datagram_request(Endpoint endpoint, const fabric::Port& port,
                           const DatagramRequest& request) override;
  void on_reply(Endpoint endpoint, const ConnectReply& reply) override;
  void on_datagram_reply(Endpoint endpoint, const DatagramReply& reply) override;
  void on_ready(Endpoint endpoint) override;
  void on_rejected(Endpoint endpoint, std::uint16_t reason, const Bytes& private_data) override;
  void on_unreachable(Endpoint endpoint, const Unanswered& message) override;
  void on_disconnected(Endpoint endpoint, bool timed_out) override;
  void on_timewait_over(Endpoint endpoint) override;
  void on_hca_gone(const fabric::Hca& hca) override;
  void on_ports_changed(const fabric::Hca& hca) override;

  struct Execution;  // of a command: service_commands.cpp

  // service.cpp: ids and events
  Id& make_id(File& file);
  Id* find(const File& file, std::uint32_t number, Error& error);
  Id* find_by_endpoint(Endpoint endpoint);
  void destroy(Id& id);
  void end_events(Id& id);
  void queue(Id& id, ucma::Event event, std::uint32_t status);
  void queue(Id& id, PendingEvent event);
  void tell(File& file);
  void note_drained(File& file, bool& is_drained);
  void take_first_event(File& file);
  void offer_event(File& file, EventOffer& to, Answer& answer);
  void settle_offer(File& file);
  Error get_event(File& file, std::size_t room, bool takes_ahead, Answer& answer);
  Error migrate(File& file, const ucma::MigrateId& in, const Request& request, Answer& answer);

  // service_address.cpp
  Error create_id(File& file, const ucma::CreateId& in, std::uint32_t& number);
  Error bind(Id& id, EndpointAddress address);
  Error resolve_address(Id& id, const std::optional<EndpointAddress>& source,
                        EndpointAddress destination);
  Error resolve_route(Id& id, std::uint32_t timeout_ms);
  void on_route(std::uint32_t number, Error error, std::string_view reason, const Path& path);
  void trace(const Id& id, std::string what, std::string_view why = {}) const;
  Error address_in_use(const Id& id, Error error, const EndpointAddress& address) const;
  Error listen(Id& id, std::uint32_t backlog);
  Error set_option(Id& id, const ucma::SetOption& in, std::span<const std::uint8_t> value);
  Error set_id_option(Id& id, std::uint32_t name, std::span<const std::uint8_t> value);
  Error set_path(Id& id, std::span<const std::uint8_t> value);

  // service_connect.cpp
  Error connect(Id& id, const ucma::ConnParam& param);
  Error connect_datagram(Id& id, const ucma::ConnParam& param);
  Error accept(Id& id, std::uint64_t uid, const ucma::ConnParam& param);
  Error reply(Id& id, const ucma::ConnParam& param);
  Error reject(Id& id, const ucma::Reject& in);
  Error disconnect(Id& id);
  Error notify(Id& id, std::uint32_t event);
  // The ends of a request that came in, as this side has them.
  struct Arrival {
    const fabric::Node* node = nullptr;
    PortSpace space = PortSpace::Tcp;
    EndpointAddress at;  // AF_IB addresses of the port and of the peer's
    EndpointAddress from;
    cm::Peer sender;
    bool is_ip = false;  // it has the header of the IP CM for an address of this node:
    EndpointAddress wanted;
    EndpointAddress peer;

    const EndpointAddress& target() const { return is_ip ? wanted : at; }
    const EndpointAddress& origin() const { return is_ip ? peer : from; }
  };
  bool read_arrival(const fabric::Port& port, std::uint64_t service_id, const Path& path,
                    const Bytes& private_data, Arrival& arrival) const;
  Id* find_listener(const Arrival& arrival) const;
  Id* add_connection(Id& listener, const Arrival& arrival, Endpoint endpoint,
                     const fabric::Port& port, const Path& path);

  // service_words.cpp: what the trace says of them
  void report_no_listener(const Arrival& arrival);
  void report_full(const Arrival& arrival, const Id& listener, bool is_full);
  void report_no_answer(const Id& id, const Unanswered& message);
  void report_refusal(const Id& id, const std::string& text);
  void report_private_data(const Id& id, std::string_view call, std::size_t size,
                           std::size_t most) const;
  Id* sender_of(const Arrival& arrival);
  const fabric::Port* peer_port_of(const Id& id) const;
  std::string listener_text(const Id& id) const;

  // service_multicast.cpp
  Error join(Id& id, const EndpointAddress& group, std::uint16_t flags, std::uint64_t uid,
             std::uint32_t& number);
  Error leave(File& file, std::uint32_t number, std::uint32_t& events);
  void end_membership(std::uint32_t number);
  void on_group(std::uint32_t number, Error error, std::string_view reason,
                const Routes::Group& group);

  const fabric::Fabric& fabric_;
  Connector& connector_;
  Routes& routes_;
  ServiceOptions options_;
  PortTable ports_;
  std::unordered_map<std::uint32_t, std::unique_ptr<File>> files_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Id>> ids_;
  std::unordered_map<Endpoint, Id*> by_endpoint_;
  std::unordered_map<std::uint32_t, Membership> memberships_;
  std::uint32_t last_file_ = 0;
  std::uint32_t last_id_ = 0;
  std::uint32_t last_membership_ = 0;
  std::uint32_t last_offer_ = 0;
};

}  // namespace ib::services::rdma_cm
