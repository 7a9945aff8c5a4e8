// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/gsi/hca_internal.h"

#include <fmt/format.h>

#include <algorithm>

namespace ib::services {

void GsiHca::open() {
  const auto done = [](io::Irp&, void* context) { static_cast<GsiHca*>(context)->opened(); };
  ca_.open(fmt::format("\\Device\\ibal\\{:016x}", hca_.node_guid), irp_.start(done, this));
}

void GsiHca::opened() {
  outcome_ = {irp_.status, irp_.reason};
  if (outcome_.status != Status::Ok) {
    state_ = State::Failed;
    return is_wanted_ ? owner_.on_hca_changed() : owner_.on_hca_closed(*this);
  }
  state_ = State::Open;
  if (!is_wanted_) {
    state_ = State::Closing;
    return close_if_idle();
  }
  const PortQueue::OnReceive on_receive = [this](std::uint32_t port, const al::MadAddress& from,
                                                 const mad::Mad& mad) {
    receiver_.on_mad(port, from, mad);
  };
  for (const fabric::Port& port : hca_.ports) {
    ports_.push_back(
        std::make_unique<PortQueue>(ca_, fabric_.graph().index_of(port), port.number, on_receive));
  }
  open_ports();
}

void GsiHca::open_ports() {
  for (const auto& each : ports_) {
    PortQueue& port = *each;
    if (port.is_open() || port.is_busy()) continue;
    port.open([this, &port] {
      if (!is_wanted_) return close_if_idle();
      if (port.is_open()) receiver_.on_port({port.port(), GsiPortChange::Opened});
      owner_.on_hca_changed();
    });
  }
}

void GsiHca::drop() {
  if (!is_wanted_) return;
  is_wanted_ = false;
  switch (state_) {
    case State::Opening: return irp_.cancel();
    case State::Failed: return owner_.on_hca_closed(*this);
    case State::Closing: return;
    case State::Open: break;
  }
  for (const auto& port : ports_) {
    const bool was_open = port->is_open();
    port->abandon();
    if (was_open) receiver_.on_port({port->port(), GsiPortChange::Closed});
  }
  state_ = State::Closing;
  close_if_idle();
}

void GsiHca::close_if_idle() {
  const bool is_idle =
      std::ranges::none_of(ports_, [](const auto& port) { return port->is_busy(); });
  if (state_ != State::Closing || !is_idle) return;
  const auto done = [](io::Irp& irp, void* context) {
    IB_ASSERT(irp.status == Status::Ok);  // nothing of it is under way
    GsiHca& closed = *static_cast<GsiHca*>(context);
    closed.owner_.on_hca_closed(closed);
  };
  ca_.close(irp_.start(done, this));
}

bool GsiHca::is_settled() const {
  if (state_ == State::Failed) return true;
  return state_ == State::Open && std::ranges::all_of(ports_, [](const auto& port) {
           return port->status() != Status::Pending;
         });
}

GsiOutcome GsiHca::first_problem() const {
  if (outcome_.status != Status::Ok) return outcome_;
  for (const auto& port : ports_) {
    if (port->status() != Status::Ok) return {port->status(), port->reason()};
  }
  return {Status::Ok, {}};
}

void GsiHca::list(std::vector<GsiPort>& ports) const {
  for (const fabric::Port& each : hca_.ports) {
    const std::uint32_t index = fabric_.graph().index_of(each);
    const PortQueue* port = find(index);
    if (port != nullptr) {
      ports.push_back({index, port->is_open(), port->status(), port->reason()});
    } else {
      ports.push_back({index, false, outcome_.status, outcome_.reason});
    }
  }
}

PortQueue* GsiHca::find(std::uint32_t port) const {
  const std::uint32_t number = port - fabric_.graph().index_of(hca_.ports.front());
  return number < ports_.size() && is_wanted_ ? ports_[number].get() : nullptr;
}

void GsiHca::on_port_event(const verbs::control::EventOut& event) {
  for (const auto& port : ports_) {
    const bool is_it = port->number() == event.index && port->is_open();
    if (is_it) receiver_.on_port({port->port(), GsiPortChange::Event, event.type});
  }
}

}  // namespace ib::services
