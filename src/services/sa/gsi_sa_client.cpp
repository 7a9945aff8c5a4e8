// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests, and what comes back. Objects that were handed out name their entry by its ticket; an
// event finds nothing if the object was destroyed before it is delivered.
#include "services/sa/gsi_sa_client.h"

#include "sa/records/inform_info.h"
#include "services/sa/sa_message.h"
#include "services/sa/sa_words.h"
#include "verbs/gid.h"

#include <fmt/format.h>

#include <utility>

namespace ib::services {
namespace {

namespace path_bit = sa::path_component;

constexpr std::uint64_t kPathComponents =
    path_bit::kSgid | path_bit::kPkey | path_bit::kReversible | path_bit::kNumbPath;

sa::PathCache::Key key_of(const SaClient::PathQuery& query) {
  return {query.sgid, query.dgid, query.pkey, query.dlid};
}
// Paths that are marked or chosen by more than the ends and the partition are queried each time.
bool is_shared(const SaClient::PathQuery& query) {
  return query.service_id == 0 && query.extra_components == 0;
}

sa::Outgoing path_request(const SaClient::PathQuery& query) {
  sa::PathRecord wanted = query.extra;
  std::uint64_t components = kPathComponents | query.extra_components;
  wanted.sgid = query.sgid;
  wanted.dgid = query.dgid;
  wanted.pkey = query.pkey;
  wanted.reversible = true;
  wanted.numb_path = 1;
  if (!verbs::is_zero(query.dgid)) components |= path_bit::kDgid;
  if (query.dlid != 0) {
    wanted.dlid = query.dlid;
    components |= path_bit::kDlid;
  }
  if (query.service_id != 0) {
    wanted.service_id = query.service_id;
    components |= path_bit::kServiceId;
  }
  sa::Outgoing outgoing;
  outgoing.port_gid = query.sgid;
  outgoing.method = sa::method::kGet;
  outgoing.attribute = sa::attribute::kPathRecord;
  outgoing.components = components;
  const auto bytes = sa::encode(wanted);
  outgoing.record.assign(bytes.begin(), bytes.end());
  outgoing.patience = query.patience;
  return outgoing;
}

// Runs when an object that was handed out is destroyed.
template <class Base>
class Handle : public Base {
 public:
  explicit Handle(std::function<void()> end) : end_(std::move(end)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() override { end_(); }

 private:
  std::function<void()> end_;
};

}  // namespace

class GsiSaClient::Share final : public SaClient::Membership {
 public:
  Share(GsiSaClient& client, sa::Ticket ticket) : client_(client), ticket_(ticket) {}
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() override {
    if (ticket_ != 0) client_.give_back(ticket_, {});
  }
  sa::Ticket take() { return std::exchange(ticket_, 0); }

 private:
  GsiSaClient& client_;
  sa::Ticket ticket_;
};

GsiSaClient::GsiSaClient(Gsi& gsi, SaService& service, const fabric::Fabric& fabric,
                         platform::Executor& executor, const Options& options)
    : gsi_(gsi),
      service_(service),
      fabric_(fabric),
      executor_(executor),
      paths_(options.paths),
      joins_(options.joins),
      registrations_(options.registrations) {}

Result<std::unique_ptr<GsiSaClient>> GsiSaClient::create(Gsi& gsi, SaService& service,
                                                         const fabric::Fabric& fabric,
                                                         platform::Executor& executor,
                                                         const Options& options,
                                                         std::string& reason) {
  std::unique_ptr<GsiSaClient> self(new GsiSaClient(gsi, service, fabric, executor, options));
  GsiAgent agent;
  agent.name = "subnet administration client";
  agent.mgmt_class = sa::kMgmtClass;
  agent.class_version = sa::kClassVersion;
  agent.methods = {sa::method::kReport};
  agent.on_message = [client = self.get()](const GsiMessage& message) {
    client->on_message(message);
  };
  agent.on_port = [client = self.get()](const GsiPortEvent& event) {
    client->on_port_event(event);
  };
  IB_TRY(added, gsi.add_agent(std::move(agent), reason));
  self->agent_ = added;
  self->transport_ = std::make_unique<SaTransport>(gsi, service, fabric, executor, added);
  service.set_on_port([client = self.get()](const fabric::Port& port, const verbs::Gid& gid,
                                            bool is_up) { client->on_port(port, gid, is_up); });
  return self;
}

GsiSaClient::~GsiSaClient() {
  service_.set_on_port({});
  if (agent_ != 0) gsi_.remove_agent(agent_);
}

// --- Paths ---

std::optional<sa::PathRecord> GsiSaClient::cached_path(const PathQuery& query) {
  if (!is_shared(query)) return std::nullopt;
  return paths_.find(key_of(query), executor_.now());
}

std::unique_ptr<SaClient::Request> GsiSaClient::query_path(const PathQuery& query, OnPath on_path) {
  const sa::Ticket ticket = ++last_ticket_;
  path_waiters_.emplace(ticket, PathWaiter{query, std::move(on_path)});
  auto handle = std::make_unique<Handle<Request>>([this, ticket] { withdraw_path(ticket); });
  sa::Outcome refusal;
  refusal.status = transport_->check(query.sgid, refusal.reason);
  if (refusal.status != Status::Ok) {
    later([this, ticket, refusal] { this->on_path(ticket, refusal, {}); });
  } else if (const auto path = cached_path(query)) {
    later([this, ticket, path = *path] { this->on_path(ticket, {}, path); });
  } else if (!is_shared(query)) {
    send_path_query(ticket, query, false);
  } else {
    const Status status = paths_.wait(key_of(query), ticket);
    if (status == Status::Ok) send_path_query(ticket, query, true);
    if (status == Status::LimitExceeded) {
      later([this, ticket] {
        this->on_path(ticket, {Status::InsufficientResources, 0, "too many queries wait"}, {});
      });
    }
  }
  return handle;
}

void GsiSaClient::send_path_query(sa::Ticket ticket, const PathQuery& query, bool shared) {
  const sa::PathCache::Key key = key_of(query);
  const auto on_answer = [this, ticket, key, shared](const sa::Outcome& outcome,
                                                     std::span<const std::byte> record) {
    sa::PathRecord path;
    if (outcome.is_ok()) path = sa::decode_some<sa::PathRecord>(record);
    std::vector<sa::Ticket> tickets{ticket};
    if (shared) {
      path_queries_.erase(key);
      tickets = paths_.on_answer(key, outcome.is_ok() ? std::optional(path) : std::nullopt,
                                 executor_.now());
    }
    for (const sa::Ticket each : tickets) {
      if (const auto waiter = path_waiters_.find(each); waiter != path_waiters_.end()) {
        waiter->second.sent = 0;
      }
      later([this, each, outcome, path] { on_path(each, outcome, path); });
    }
  };
  const std::uint64_t last = transport_->send(path_request(query), on_answer);
  if (last == 0) return;
  if (shared) {
    path_queries_.insert_or_assign(key, last);
  } else if (const auto waiter = path_waiters_.find(ticket); waiter != path_waiters_.end()) {
    waiter->second.sent = last;
  }
}

void GsiSaClient::on_path(sa::Ticket ticket, const sa::Outcome& outcome,
                          const sa::PathRecord& path) {
  const auto found = path_waiters_.find(ticket);
  if (found == path_waiters_.end()) return;
  const PathWaiter waiter = std::move(found->second);
  path_waiters_.erase(found);
  if (outcome.is_ok()) return waiter.on_path({}, path);
  waiter.on_path(explain_path(fabric_, service_.topology(), outcome, waiter.query), path);
}

void GsiSaClient::withdraw_path(sa::Ticket ticket) {
  const auto found = path_waiters_.find(ticket);
  if (found == path_waiters_.end()) return;
  const PathQuery query = found->second.query;
  if (found->second.sent != 0) transport_->cancel(found->second.sent);
  path_waiters_.erase(found);
  if (!is_shared(query) || !paths_.withdraw(key_of(query), ticket)) return;
  const auto sent = path_queries_.find(key_of(query));
  if (sent == path_queries_.end()) return;
  transport_->cancel(sent->second);
  path_queries_.erase(sent);
}

// --- Groups ---

std::unique_ptr<SaClient::Request> GsiSaClient::query_group(const verbs::Gid& port_gid,
                                                            const verbs::Gid& mgid,
                                                            OnGroup on_group) {
  const sa::Ticket ticket = ++last_ticket_;
  group_waiters_.emplace(ticket, std::move(on_group));
  sa::McMemberRecord wanted;
  wanted.mgid = mgid;
  sa::Outgoing outgoing;
  outgoing.port_gid = port_gid;
  outgoing.method = sa::method::kGet;
  outgoing.attribute = sa::attribute::kMcMemberRecord;
  outgoing.components = sa::mc_component::kMgid;
  const auto bytes = sa::encode(wanted);
  outgoing.record.assign(bytes.begin(), bytes.end());
  const std::string what = fmt::format("the group {}", verbs::address_text(mgid));
  const auto on_answer = [this, ticket, what](const sa::Outcome& outcome,
                                              std::span<const std::byte> record) {
    sa::McMemberRecord group;
    if (outcome.is_ok()) group = sa::decode_some<sa::McMemberRecord>(record);
    later([this, ticket, what, outcome, group] {
      const auto found = group_waiters_.find(ticket);
      if (found == group_waiters_.end()) return;
      const OnGroup call = std::move(found->second);
      group_waiters_.erase(found);
      call(explain_outcome(fabric_, service_.topology(), outcome, what), group);
    });
  };
  const std::uint64_t sent = transport_->send(std::move(outgoing), on_answer);
  return std::make_unique<Handle<Request>>([this, ticket, sent] {
    transport_->cancel(sent);
    group_waiters_.erase(ticket);
  });
}

std::unique_ptr<SaClient::Membership> GsiSaClient::join(const JoinRequest& request,
                                                        OnJoined on_joined) {
  const sa::Ticket ticket = ++last_ticket_;
  joining_.emplace(
      ticket, Joining{std::move(on_joined),
                      fmt::format("joining group {}", verbs::address_text(request.record.mgid))});
  sa::Outcome refusal;
  refusal.status = transport_->check(request.record.port_gid, refusal.reason);
  if (refusal.status == Status::Ok) {
    const Status status = joins_.join(ticket, request.components, request.record, request.patience);
    refusal.status = status == Status::LimitExceeded ? Status::InsufficientResources : status;
    refusal.reason = status == Status::LimitExceeded
                         ? "the port has as many shares in groups as it may have"
                         : "the request lacks MGID, port GID or join state";
  }
  if (refusal.status != Status::Ok) {
    later([this, ticket, refusal] { on_join_event(sa::Joins::Joined{ticket, refusal, {}}); });
  }
  pump();
  return std::make_unique<Share>(*this, ticket);
}

void GsiSaClient::leave(std::unique_ptr<Membership> membership, OnDone on_done) {
  IB_ASSERT(membership != nullptr);
  give_back(static_cast<Share&>(*membership).take(), std::move(on_done));
}

void GsiSaClient::give_back(sa::Ticket ticket, OnDone on_done) {
  joining_.erase(ticket);
  if (on_done) leaving_.emplace(ticket, std::move(on_done));
  if (joins_.has(ticket)) {
    joins_.leave(ticket);
  } else {
    later([this, ticket] { on_join_event(sa::Joins::Left{ticket}); });
  }
  pump();
}

void GsiSaClient::on_join_event(const sa::Joins::Event& event) {
  if (const auto* left = std::get_if<sa::Joins::Left>(&event)) {
    const auto found = leaving_.find(left->ticket);
    if (found == leaving_.end()) return;
    const OnDone call = std::move(found->second);
    leaving_.erase(found);
    return call({});
  }
  const auto& joined = std::get<sa::Joins::Joined>(event);
  const auto found = joining_.find(joined.ticket);
  if (found == joining_.end()) return;
  const Joining share = found->second;  // the call may destroy the membership
  share.on_joined(explain_outcome(fabric_, service_.topology(), joined.outcome, share.what),
                  joined.group);
}

// --- Services and notices ---

std::unique_ptr<SaClient::Registration> GsiSaClient::register_service(
    const sa::ServiceRecord& record, OnRegistered on_registered) {
  const sa::Ticket ticket = ++last_ticket_;
  registered_.emplace(ticket, std::move(on_registered));
  if (registrations_.add(ticket, record, {}, executor_.now()) != Status::Ok) {
    later([this, ticket, record] {
      const auto found = registered_.find(ticket);
      if (found == registered_.end()) return;
      const OnRegistered call = found->second;
      call({Status::InsufficientResources, "too many services are registered"}, record);
    });
  }
  pump();
  return std::make_unique<Handle<Registration>>([this, ticket] {
    registered_.erase(ticket);
    registrations_.remove(ticket, executor_.now());
    pump();
  });
}

std::unique_ptr<SaClient::Request> GsiSaClient::subscribe(const verbs::Gid& port_gid,
                                                          std::uint16_t trap, OnNotice on_notice,
                                                          OnDone on_subscribed) {
  const sa::Ticket ticket = ++last_ticket_;
  subscribed_.emplace(ticket, Subscribed{std::move(on_notice), std::move(on_subscribed)});
  if (subscriber_.add(ticket, port_gid, trap, {}) != Status::Ok) {
    later([this, ticket] {
      const auto found = subscribed_.find(ticket);
      if (found == subscribed_.end()) return;
      const OnDone call = found->second.on_subscribed;
      call({Status::InsufficientResources, "there are too many subscriptions"});
    });
  }
  pump();
  return std::make_unique<Handle<Request>>([this, ticket] {
    subscribed_.erase(ticket);
    subscriber_.remove(ticket);
    pump();
  });
}

void GsiSaClient::on_message(const GsiMessage& message) {
  if (message.header.attribute != sa::attribute::kNotice) return;
  const fabric::Port* port = fabric_.graph().port(message.from.port);
  // Only the subnet administrator of the port reports.
  if (port == nullptr || message.from.remote.lid != port->sm_lid) return;
  (void)gsi_.respond(agent_, message.from,
                     sa_report_response(message.header, sa_data(message).first(sa::Notice::kSize)));
  const auto notice = sa::decode_some<sa::Notice>(sa_data(message));
  for (const sa::Ticket ticket : subscriber_.on_report(port->gid(), notice)) {
    later([this, ticket, notice] {
      const auto found = subscribed_.find(ticket);
      if (found == subscribed_.end()) return;
      const OnNotice call = found->second.on_notice;
      call(notice);
    });
  }
}

// --- Ports ---

void GsiSaClient::on_port_event(const GsiPortEvent& event) {
  const bool must_reregister =
      event.change == GsiPortChange::Event && (event.event == verbs::EventType::ClientReregister ||
                                               event.event == verbs::EventType::SmChange);
  const fabric::Port* port = fabric_.graph().port(event.port);
  if (!must_reregister || port == nullptr) return;
  joins_.on_reregister(port->gid());
  registrations_.on_reregister(port->gid(), executor_.now());
  subscriber_.on_reregister(port->gid());
  pump();
}

void GsiSaClient::on_port(const fabric::Port& port, const verbs::Gid& gid, bool is_up) {
  paths_.forget(gid);
  if (is_up) {
    registrations_.on_reregister(gid, executor_.now());
    subscriber_.on_reregister(gid);
  } else {
    const std::string_view why = out_of_service(fabric_, port);
    const sa::Outcome lost{Status::InvalidState, 0,
                           fmt::format("{} {}", port_text(fabric_, port),
                                       why.empty() ? "has another GID or LID" : why)};
    joins_.on_port_lost(gid, lost.status, lost.reason);
    transport_->end_of(gid, lost);
  }
  pump();
}

// --- Engines ---

void GsiSaClient::later(Event event) {
  events_.push_back(std::move(event));
  if (delivery_ == nullptr) delivery_ = executor_.at(executor_.now(), [this] { deliver(); });
}

void GsiSaClient::deliver() {
  // Events that come meanwhile wait for their own turn: the loop lives for others, too.
  std::deque<Event> events = std::exchange(events_, {});
  const std::unique_ptr<platform::Timer> done = std::move(delivery_);
  for (const Event& event : events) event();
}

void GsiSaClient::pump() {
  if (is_pumping_) return;  // an answer that came at once: the loop below sees what it brought
  is_pumping_ = true;
  const auto send = [this](auto& engine, sa::Outgoing&& outgoing, auto on_answer) {
    const sa::Operation operation = outgoing.operation;
    transport_->send(std::move(outgoing),
                     [this, &engine, operation, on_answer](const sa::Outcome& outcome,
                                                           std::span<const std::byte> record) {
                       on_answer(engine, operation, outcome, record);
                       pump();
                     });
  };
  bool is_busy = true;
  while (is_busy) {
    is_busy = false;
    while (auto out = joins_.poll_outgoing()) {
      is_busy = true;
      send(joins_, *std::move(out),
           [](sa::Joins& engine, sa::Operation operation, const sa::Outcome& outcome,
              std::span<const std::byte> record) { engine.on_answer(operation, outcome, record); });
    }
    while (auto out = registrations_.poll_outgoing()) {
      is_busy = true;
      send(registrations_, *std::move(out),
           [this](sa::Registrations& engine, sa::Operation operation, const sa::Outcome& outcome,
                  std::span<const std::byte> record) {
             engine.on_answer(operation, outcome, record, executor_.now());
           });
    }
    while (auto out = subscriber_.poll_outgoing()) {
      is_busy = true;
      send(subscriber_, *std::move(out),
           [](sa::Subscriber& engine, sa::Operation operation, const sa::Outcome& outcome,
              std::span<const std::byte>) { engine.on_answer(operation, outcome); });
    }
  }
  is_pumping_ = false;
  take_events();
  arm();
}

void GsiSaClient::take_events() {
  while (auto event = joins_.poll_event()) {
    later([this, event = *std::move(event)] { on_join_event(event); });
  }
  while (auto event = registrations_.poll_event()) {
    later([this, event = *std::move(event)] {
      const auto found = registered_.find(event.ticket);
      if (found == registered_.end()) return;
      const OnRegistered call = found->second;
      call(explain_outcome(fabric_, service_.topology(), event.outcome,
                           fmt::format("registering service {:#x}", event.record.id)),
           event.record);
    });
  }
  while (auto event = subscriber_.poll_event()) {
    later([this, event = *std::move(event)] {
      const auto found = subscribed_.find(event.ticket);
      if (found == subscribed_.end()) return;
      const OnDone call = found->second.on_subscribed;
      call(explain_outcome(fabric_, service_.topology(), event.outcome, "subscribing"));
    });
  }
}

void GsiSaClient::arm() {
  leases_.reset();
  const std::optional<Instant> deadline = registrations_.deadline();
  if (!deadline) return;
  leases_ = executor_.at(*deadline, [this] {
    registrations_.on_time(executor_.now());
    pump();
  });
}

}  // namespace ib::services
