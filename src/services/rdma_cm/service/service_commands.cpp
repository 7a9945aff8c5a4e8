// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The way from a command to the function for it, and from its results to the program.
#include "services/rdma_cm/service/id_options.h"
#include "services/rdma_cm/service/queries.h"
#include "services/rdma_cm/service/service.h"

#include <algorithm>
#include <cstring>
#include <variant>

namespace ib::services::rdma_cm {

// One function for each kind of command. A command that names an id gets it first, or ENOENT or
// EINVAL.
struct Service::Execution {
  Service& service;
  File& file;
  const Command& command;
  const Request& request;
  Answer& answer;

  void operator()(const ucma::CreateId& in) const {
    ucma::IdOut out;
    end(service.create_id(file, in, out.id), out);
  }
  void operator()(const command::Destroy& in) const {
    Id* id = find(in.id);
    if (id == nullptr) return;
    put(ucma::EventsOut{id->events_reported});
    service.destroy(*id);
    answer.is_drained = file.events.take_back_notice();
  }
  void operator()(const command::Bind& in) const {
    with(in.id, [&](Id& id) { return service.binder_.bind(id, in.address); });
  }
  void operator()(const command::ResolveAddress& in) const {
    with(in.id,
         [&](Id& id) { return service.resolver_.resolve_address(id, in.source, in.destination); });
  }
  void operator()(const ucma::ResolveRoute& in) const {
    with(in.id, [&](Id& id) { return service.resolver_.resolve_route(id, in.timeout_ms); });
  }
  void operator()(const command::QueryRoute& in) const {
    if (const Id* id = find(in.id)) put(query_route(service.fabric_, *id));
  }
  void operator()(const command::Query& in) const {
    const Id* id = find(in.id);
    if (id == nullptr) return;
    if (in.option == ucma::QueryOption::Path) return put(query_path(*id));
    put(query_address(service.fabric_, *id, in.option));
  }
  void operator()(const ucma::Connect& in) const {
    with(in.id, [&](Id& id) { return service.connections_.connect(id, in.conn_param); });
  }
  void operator()(const ucma::Listen& in) const {
    with(in.id, [&](Id& id) { return service.binder_.listen(id, in.backlog); });
  }
  void operator()(const ucma::Accept& in) const {
    with(in.id, [&](Id& id) { return service.connections_.accept(id, in.uid, in.conn_param); });
  }
  void operator()(const ucma::Reject& in) const {
    with(in.id, [&](Id& id) { return service.connections_.reject(id, in); });
  }
  void operator()(const ucma::Disconnect& in) const {
    with(in.id, [&](Id& id) { return service.connections_.disconnect(id); });
  }
  void operator()(const ucma::InitQpAttr& in) const {
    const Id* id = find(in.id);
    if (id == nullptr) return;
    ucma::QpAttrOut out;
    end(init_qp_attributes(service.fabric_, *id, in.qp_state, out), out);
  }
  void operator()(const ucma::GetEvent& in) const {
    answer.address = in.response;
    answer.error = service.get_event(file, command.room, request.takes_ahead, answer);
  }
  void operator()(const ucma::SetOption& in) const {
    with(in.id, [&](Id& id) {
      constexpr std::uint32_t kMostOption = 512;
      if (in.optlen > kMostOption) return Error::Invalid;
      if (request.option.size() < in.optlen) {
        answer.need = Answer::Need::Option;
        answer.need_address = in.optval;
        answer.need_size = in.optlen;
        return Error::None;
      }
      return set_option(id, in, request.option.first(in.optlen));
    });
  }
  void operator()(const ucma::Notify& in) const {
    with(in.id, [&](Id& id) { return service.connections_.notify(id, in.event); });
  }
  void operator()(const command::Join& in) const {
    Id* id = find(in.id);
    if (id == nullptr) return;
    ucma::IdOut out;
    end(service.memberships_.join(*id, in.group, in.flags, in.uid, out.id), out);
  }
  void operator()(const command::Leave& in) const {
    ucma::EventsOut out;
    end(service.memberships_.leave(file, in.membership, out.events_reported), out);
    answer.is_drained = file.events.take_back_notice();
  }
  void operator()(const ucma::MigrateId& in) const {
    answer.address = command.response;
    answer.error = service.migrate(file, in, request, answer);
  }
  void operator()(const ucma::WriteCmEvent& in) const {
    with(in.id, [&](Id& id) {
      if (id.events.size() >= EventQueue::kMaxUnread) return Error::NoMemory;
      PendingEvent event;
      event.out.event = in.event;
      event.out.status = in.status;
      std::copy(in.arg.begin(), in.arg.end(), event.out.param.begin());
      queue(id, event);
      return Error::None;
    });
  }

 private:
  Id* find(std::uint32_t number) const { return service.ids_.find(file, number, answer.error); }
  Error set_option(Id& id, const ucma::SetOption& in, std::span<const std::uint8_t> value) const {
    switch (static_cast<ucma::Level>(in.level)) {
      case ucma::Level::Id: return set_id_option(id, in.optname, value, service.binder_);
      case ucma::Level::Ib:
        return in.optname == ucma::kOptionIbPath ? service.resolver_.set_path(id, value)
                                                 : Error::NotImplemented;
    }
    return Error::NotImplemented;
  }
  template <class Function>
  void with(std::uint32_t number, Function function) const {
    if (Id* id = find(number)) answer.error = function(*id);
  }
  template <class Out>
  void put(const Out& out) const {
    answer.address = command.response;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&out);
    answer.data.append({bytes, std::min<std::size_t>(sizeof out, command.room)});
  }
  template <class Out>
  void end(Error error, const Out& out) const {
    answer.error = error;
    if (error == Error::None) put(out);
  }
};

namespace {

template <class... Kinds>
bool is_one_of(const Command& command) {
  return (std::holds_alternative<Kinds>(command.body) || ...);
}

// Whether that is what most programs do next.
bool is_followed_by_get_event(const Command& command, const Service::Answer& answer) {
  if (is_one_of<command::ResolveAddress, ucma::ResolveRoute, ucma::Connect, ucma::Accept,
                ucma::SetOption, command::Destroy>(command)) {
    return true;
  }
  ucma::EventOut event;
  if (!is_one_of<ucma::GetEvent>(command) || answer.data.size() < sizeof event) return false;
  std::memcpy(&event, answer.data.data(), sizeof event);
  return event.event == ucma::Event::Established || event.event == ucma::Event::TimewaitExit;
}

}  // namespace

Service::Answer Service::command(const Request& request) {
  Answer answer;
  File* const found = ids_.find_file(request.file);
  if (found == nullptr) {
    answer.error = Error::NoDevice;
    return answer;
  }
  File& file = *found;
  if (file.options.pid != request.pid) {
    trace_.report_foreign_command(file, request.pid);
    answer.error = Error::Access;
    return answer;
  }
  file.events.settle_offer();
  if (request.offer != nullptr) file.events.set_client(request.offer);
  const ParsedCommand parsed = parse_command(request.bytes, request.size);
  answer.error = parsed.error;
  if (parsed.error == Error::None) {
    const Execution execution{*this, file, parsed.command, request, answer};
    std::visit(execution, parsed.command.body);
  }
  if (request.offer != nullptr && parsed.error == Error::None &&
      is_followed_by_get_event(parsed.command, answer)) {
    offer_event(file, *request.offer, answer.ahead);
  }
  return answer;
}

}  // namespace ib::services::rdma_cm
