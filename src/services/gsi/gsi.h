// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Gsi: the general services interface of all nodes [IBA1 13.4.4, 13.5]: it has queue pair 1 of
// their ports, hands the MADs that come to the agents of their class, and sends requests for agents
// until an answer comes or the time is up (docs/design/0014). Services of softibd (SA, CM) are
// agents.
//
// An agent is added by add_agent(); ensure() opens the HCAs of a node, and nothing happens there
// before; request() sends a request and brings the answer.
//
// A *message* is a MAD with its headers, as it is on the wire. One that needs several packets [IBA1
// 13.6] is the headers of its first packet (mad::header_size() bytes) and then all of its data.
// RMPP is used if the message has the Active flag in its RMPP header, or is longer than a MAD;
// version, type, segment numbers and lengths in that header are filled in here.
//
// Nothing is called back from inside a call that an agent makes here, and nothing after
// remove_agent() or close() for what has ended with it.
//
// Thread rule: the executor's thread (al::System::executor), dispatch level. Nothing here blocks.
#pragma once

#include "al/mad_qp.h"
#include "base/result.h"
#include "base/time.h"
#include "fabric/management/gmp_agents.h"
#include "fabric/model.h"
#include "io/irp.h"
#include "mad/class_port_info.h"
#include "mad/header.h"
#include "mad/method_set.h"
#include "mad/rmpp.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ib::services {

using AgentId = std::uint32_t;    // 0: none
using RequestId = std::uint64_t;  // 0: none

// Both ends of a MAD. A request is answered by sending to where it came from.
struct GsiAddress {
  std::uint32_t port = 0;  // the own one: its index in the fabric's port table
  al::MadAddress remote;
};

// A message that came. Valid during the call.
struct GsiMessage {
  GsiAddress from;
  mad::MadHeader header;
  // With its headers: mad::kMadSize, or of RMPP as many as there are, at least
  // mad::header_size().
  std::span<const std::byte> bytes;
};

// Changes of ports that Gsi has queue pair 1 of.
enum class GsiPortChange : std::uint8_t {
  Opened,  // MADs can be sent and received
  Closed,  // its HCA is gone
  Event,   // `event` says which of a port's events [IBA1 11.6.3] came
};
struct GsiPortEvent {
  std::uint32_t port = 0;
  GsiPortChange change = GsiPortChange::Event;
  verbs::EventType event = verbs::EventType::PortActive;
};

struct GsiAgent {
  using OnMessage = std::function<void(const GsiMessage& message)>;
  using OnPort = std::function<void(const GsiPortEvent& event)>;

  std::string name;  // for people
  std::uint8_t mgmt_class = 0;
  std::uint8_t class_version = 1;
  std::uint32_t oui = 0;     // of vendor classes 0x30 to 0x4f: the company; the class is shared
  mad::MethodSet methods{};  // of requests that it takes; empty: it only sends
  std::optional<std::uint32_t> port{};  // it takes what comes to this port only
  // Get(ClassPortInfo) is answered with it, unless the agent has none. Its versions are filled in.
  std::optional<mad::ClassPortInfo> class_port_info{};
  std::uint32_t max_requests = 4096;  // under way at a time
  OnMessage on_message{};             // requests, whole
  OnPort on_port{};                   // may be empty
};

struct GsiRequest {
  GsiAddress to;
  // Copied. The transaction id is replaced on the wire; the answer has the one of the message.
  std::span<const std::byte> message;
  // From the end of each sending to the next one, a little longer each time; `timeout` is that of
  // one try.
  Duration timeout = std::chrono::seconds(1);
  // A message of several packets is sent once, as RMPP repeats what is lost: its retries are time
  // to wait. Nothing is sent any more when a part of the answer has come.
  std::uint32_t retries = 3;
};

// The answer of a request by IRP.
struct GsiAnswer {
  GsiAddress from;
  std::vector<std::byte> bytes;
};

// May be empty. `answer` is null unless the status is Ok. An answer that says in its MAD status
// that the request failed is an answer.
//   Timeout         no answer to any of the tries
//   Disconnected    the other side gave up a message of several packets (RMPP ABORT, STOP)
//   DeviceRemoved   the HCA of the port is gone
//   Malformed, LimitExceeded   the answer has no sense, or is longer than is allowed
using OnGsiAnswer =
    std::function<void(Status status, std::string_view reason, const GsiMessage* answer)>;
// Ok: the receiver has all of it.
using OnGsiSent = std::function<void(Status status, std::string_view reason)>;

// A port of an open node, for people and for choosing.
struct GsiPort {
  std::uint32_t port = 0;
  bool is_open = false;
  Status status = Status::Pending;  // why it is not
  std::string reason;
};

struct GsiCounters {
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint64_t refused = 0;         // requests that no agent takes, answered with a status
  std::uint64_t to_nobody = 0;       // the same without an answer, which the method does not want
  std::uint64_t late_responses = 0;  // nobody waits for them
  std::uint64_t malformed = 0;
  std::uint64_t sends_failed = 0;  // the port could not take them
};

// Sees MADs of queue pairs 1, and changes of their ports, before the agents do: programs with
// agents of their own (services/umad), to which those of softibd give way.
class GsiFirst {
 public:
  virtual ~GsiFirst() = default;
  // Returns true if it has taken the MAD: no agent gets it.
  virtual bool on_mad(const GsiAddress& from, const mad::Mad& mad) = 0;
  virtual void on_port(const GsiPortEvent& event) = 0;
  // The removal of an HCA has ended (Gsi::let_back), maybe without it.
  virtual void on_removal_over(const fabric::Hca& hca) = 0;
};

class Gsi {
 public:
  struct Options {
    std::uint64_t seed = 1;  // of the random part of timeouts
    mad::Rmpp::Options rmpp{};
    // Sees each MAD that goes out, before it does. For captures.
    std::function<void(const GsiAddress& to, const mad::Mad& mad)> on_send{};
    // A line for people about MADs that were dropped: `times` of this kind since the last line. Of
    // each kind the first eight have one, then those that double their number.
    std::function<void(std::string line, std::uint32_t times)> on_drop{};
    // They answer at ports where nobody has queue pair 1. MADs to such ports are lost without them.
    fabric::GmpAgents* element_agents = nullptr;
  };
  Gsi(al::System& system, const fabric::Fabric& fabric, const Options& options);
  Gsi(const Gsi&) = delete;
  Gsi& operator=(const Gsi&) = delete;
  ~Gsi();  // close() is done, or no node was opened

  // Opens the node and queue pairs 1 of its ports; Ok at once if that has been done. From then on
  // its HCAs are opened and closed as they come and go. Ports that could not be opened are tried
  // again. Ends with the error and reason of the first port that cannot be opened (AlreadyExists:
  // another kernel client has its queue pair 1); the others are open all the same. NotFound: no
  // such node; InvalidState: closed.
  void ensure(std::string_view node, io::IrpRef irp);
  bool is_open(std::uint32_t port) const;
  // Of all open nodes.
  std::vector<GsiPort> ports() const;

  // Closes an HCA that is about to be removed, so that nobody objects to that on our account, and
  // opens it again only after let_back().
  void let_go(const fabric::Hca& hca, std::function<void()> done);
  void let_back(const fabric::Hca& hca);

  // Ends all requests with Cancelled, then closes all nodes. Agents may still be removed. Once.
  void close(io::IrpRef irp);

  // AlreadyExists: another agent takes one of these methods there; InvalidParameter; the reason
  // says which. `agent` hears of ports that are open already as of others, soon.
  Result<AgentId> add_agent(GsiAgent agent, std::string& reason);
  // At most one. It outlives this, or is taken back (nullptr).
  void set_first(GsiFirst* first);
  // Sends one packet as it is. Errors as send().
  Status transmit(const GsiAddress& to, const mad::Mad& mad);

  // Its requests and transfers are dropped without a call; requests by IRP end with Cancelled. Also
  // from inside its own callbacks.
  void remove_agent(AgentId agent);

  // Sends a request and waits for the response with its class and transaction id, from there.
  // A redirection [IBA1 13.5.2] is followed once. InvalidParameter: no message of this agent's
  // class, or no request; LimitExceeded: max_requests are under way; InvalidState: the node of the
  // port was never opened, or this is closed. A port that is away for a while loses what is sent.
  Result<RequestId> request(AgentId agent, const GsiRequest& request, OnGsiAnswer on_answer);
  // The same as an IRP: `answer` and the IRP live until it is done; it may be cancelled.
  void request(AgentId agent, const GsiRequest& request, GsiAnswer& answer, io::IrpRef irp);
  // Nothing is called back. Nothing happens if the request is over.
  void cancel(RequestId request);

  // Sends once, without waiting for anything (CM, traps, reports). One packet. The transaction id
  // is that of the message; make_tid() has those that no other agent uses. Errors as request(), and
  // DeviceRemoved: the HCA of the port is gone or sleeps; LimitExceeded also: the queue is full.
  Status send(AgentId agent, const GsiAddress& to, std::span<const std::byte> message);
  std::uint64_t make_tid(AgentId agent);

  // Answers a request that came: `message` has the transaction id and class of the request, and a
  // response's method. Longer than a packet, or with the Active flag: by RMPP; `on_sent` may be
  // empty.
  Status respond(AgentId agent, const GsiAddress& to, std::span<const std::byte> message,
                 OnGsiSent on_sent = {});

  const GsiCounters& counters() const;
  // Requests and RMPP transfers under way, for tests and for people.
  std::size_t under_way() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace ib::services
