// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls, and what comes from Gsi and the service, to the part that they are for.
#include "services/sa/gsi_sa_client.h"

#include "sa/records/inform_info.h"
#include "services/sa/sa_message.h"

#include <fmt/format.h>

#include <utility>

namespace ib::services {

GsiSaClient::GsiSaClient(Gsi& gsi, SaService& service, const fabric::Fabric& fabric,
                         platform::Executor& executor, const Options& options)
    : gsi_(gsi),
      service_(service),
      fabric_(fabric),
      transport_(gsi, service, fabric, executor),
      deliveries_(executor),
      paths_({fabric, service.topology(), executor, transport_, deliveries_}, options.paths),
      groups_({fabric, service.topology(), executor, transport_, deliveries_}, options.joins),
      registrations_({fabric, service.topology(), executor, transport_, deliveries_},
                     options.registrations),
      subscriptions_({fabric, service.topology(), executor, transport_, deliveries_}) {}

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
  self->transport_.set_agent(added);
  service.set_on_port([client = self.get()](const fabric::Port& port, const verbs::Gid& gid,
                                            bool is_up) { client->on_port(port, gid, is_up); });
  return self;
}

GsiSaClient::~GsiSaClient() {
  service_.set_on_port({});
  if (agent_ != 0) gsi_.remove_agent(agent_);
}

std::optional<sa::PathRecord> GsiSaClient::cached_path(const PathQuery& query) {
  return paths_.find_cached(query);
}

std::unique_ptr<SaClient::Request> GsiSaClient::query_path(const PathQuery& query, OnPath on_path) {
  return paths_.query(query, std::move(on_path));
}

std::unique_ptr<SaClient::Request> GsiSaClient::query_group(const verbs::Gid& port_gid,
                                                            const verbs::Gid& mgid,
                                                            OnGroup on_group) {
  return groups_.query(port_gid, mgid, std::move(on_group));
}

std::unique_ptr<SaClient::Membership> GsiSaClient::join(const JoinRequest& request,
                                                        OnJoined on_joined) {
  return groups_.join(request, std::move(on_joined));
}

void GsiSaClient::leave(std::unique_ptr<Membership> membership, OnDone on_done) {
  groups_.leave(std::move(membership), std::move(on_done));
}

std::unique_ptr<SaClient::Registration> GsiSaClient::register_service(
    const sa::ServiceRecord& record, OnRegistered on_registered) {
  return registrations_.add(record, std::move(on_registered));
}

std::unique_ptr<SaClient::Request> GsiSaClient::subscribe(const verbs::Gid& port_gid,
                                                          std::uint16_t trap, OnNotice on_notice,
                                                          OnDone on_subscribed) {
  return subscriptions_.add(port_gid, trap, std::move(on_notice), std::move(on_subscribed));
}

void GsiSaClient::on_message(const GsiMessage& message) {
  if (message.header.attribute != sa::attribute::kNotice) return;
  const fabric::Port* port = fabric_.graph().port(message.from.port);
  // Only the subnet administrator of the port reports.
  if (port == nullptr || message.from.remote.lid != port->sm_lid) return;
  (void)gsi_.respond(agent_, message.from,
                     sa_report_response(message.header, sa_data(message).first(sa::Notice::kSize)));
  subscriptions_.on_report(port->gid(), sa::decode_some<sa::Notice>(sa_data(message)));
}

void GsiSaClient::on_port_event(const GsiPortEvent& event) {
  const bool must_reregister =
      event.change == GsiPortChange::Event && (event.event == verbs::EventType::ClientReregister ||
                                               event.event == verbs::EventType::SmChange);
  const fabric::Port* port = fabric_.graph().port(event.port);
  if (!must_reregister || port == nullptr) return;
  groups_.on_reregister(port->gid());
  registrations_.on_reregister(port->gid());
  subscriptions_.on_reregister(port->gid());
}

void GsiSaClient::on_port(const fabric::Port& port, const verbs::Gid& gid, bool is_up) {
  paths_.forget(gid);
  if (is_up) {
    registrations_.on_reregister(gid);
    return subscriptions_.on_reregister(gid);
  }
  const std::string_view why = out_of_service(fabric_, port);
  const sa::Outcome lost{
      Status::InvalidState, 0,
      fmt::format("{} {}", port_text(fabric_, port), why.empty() ? "has another GID or LID" : why)};
  groups_.on_port_lost(gid, lost);
  transport_.end_of(gid, lost);
  groups_.pump();
}

}  // namespace ib::services
