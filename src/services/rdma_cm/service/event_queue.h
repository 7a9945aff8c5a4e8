// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EventQueue: the events of one open file until its program has them, and the three ways to them: a
// notice to the pollers of its descriptor, a command that waits, and an offer that goes with the
// answer to another command, or with the notice.
//
// Thread rule: that of Service. The callbacks may not call back.
#pragma once

#include "services/rdma_cm/command/ucma_layout.h"

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace ib::services::rdma_cm {

struct Id;
struct Membership;

// Of an id, for its program.
struct PendingEvent {
  Id* id = nullptr;                  // counts it as reported; a listener's, of a ConnectRequest
  Id* request = nullptr;             // ConnectRequest: the new id
  Membership* membership = nullptr;  // of MulticastJoin and MulticastError
  ucma::EventOut out;

  const Id& about() const { return request != nullptr ? *request : *id; }
};

// How one client is offered the next event before GET_EVENT: both sides share a word, so that
// either the client has the event or it is still here.
class EventOffer {
 public:
  // Returns false if another event is offered already.
  virtual bool offer(std::uint32_t number) = 0;
  virtual bool is_taken() const = 0;
  // Ends the offer. Returns false if the client has taken the event.
  virtual bool withdraw() = 0;

 protected:
  ~EventOffer() = default;
};

class EventQueue {
 public:
  // A program that takes no events gets no more of those that it can cause without end.
  static constexpr std::uint32_t kMaxUnread = 64;

  // `on_events`: there are events now, and were none before; give_notice() shall follow in a
  // moment.
  explicit EventQueue(std::function<void()> on_events) : on_events_(std::move(on_events)) {}
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // The file ends: so does a wait, and nobody gets notice any more.
  void close();

  bool is_empty() const { return events_.empty(); }
  const PendingEvent& first() const { return events_.begin()->second; }
  void push(const PendingEvent& event);
  // Its program has it.
  void take_first();

  // The events of an id go unreported. Returns the requests among them, which no program will ever
  // see. All of these take as long as there are events of the id, whatever else is queued.
  std::vector<Id*> remove_events_of(Id& id);
  void remove_events_of(const Membership& membership);
  // Moves the events of an id, which is no request that waits here, to the queue of another file.
  // Returns the requests among them.
  std::vector<Id*> move_events_of(Id& id, EventQueue& to);

  // The program is about to be told that there are events. Returns false if they are gone.
  bool give_notice();
  // Returns true if the events have gone of which there was notice.
  bool take_back_notice();

  // Service::await_event() and end_wait().
  bool await(std::function<void()> on_event);
  void end_wait();

  // The client of the last command, to which a notice offers the first event; or nullptr.
  EventOffer* client() const { return client_; }
  void set_client(EventOffer* client) { client_ = client; }

  bool may_offer() const { return !events_.empty() && offer_ == nullptr; }
  // Returns false if the client has another offer. `drains` is whether the client that takes the
  // event takes the notice, too.
  bool offer_first(EventOffer& to, std::uint32_t number, bool& drains);
  // Ends the offer: the event is the client's, or is here again.
  void settle_offer();
  // The client need not tell anyone that it has taken an event: before a look at what it has not.
  void note_taken();
  // The client has gone.
  void end_offer(const EventOffer& offer);

 private:
  using Events = std::map<std::uint64_t, PendingEvent>;  // by number; later ones have greater ones

  void tell();
  void add(const PendingEvent& event);
  PendingEvent extract(Events::iterator at);

  std::function<void()> on_events_;
  Events events_;
  std::uint64_t last_number_ = 0;
  // Due: on_events_ was called. Given: the program was not told yet that the events are gone.
  enum class Notice : std::uint8_t { None, Due, Given } notice_ = Notice::None;
  std::function<void()> waiter_;
  EventOffer* client_ = nullptr;
  EventOffer* offer_ = nullptr;  // of the first event
  bool offer_drains_ = false;    // a client that takes that takes the notice, too
};

// Queues an event of the id in its file. An id that its program has not accepted yet has no name
// for the program, and gets none.
void queue(Id& id, ucma::Event event, std::uint32_t status);
void queue(Id& id, PendingEvent event);

}  // namespace ib::services::rdma_cm
