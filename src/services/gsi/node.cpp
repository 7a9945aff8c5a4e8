// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/gsi/node_internal.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::services {

using verbs::EventType;

GsiNode::GsiNode(al::System& system, io::DriverObject& driver, const fabric::Fabric& fabric,
                 const fabric::Node& node, Owner& owner)
    : fabric_(fabric), node_(node), owner_(owner), al_(system, driver) {
  al_.set_on_event([this](const verbs::control::EventOut& event) { on_event(event); });
}

GsiNode::~GsiNode() {
  IB_ASSERT(state_ == State::New || state_ == State::Closed);
}

void GsiNode::open() {
  if (closing_) return;
  if (state_ == State::Open) {
    std::erase_if(hcas_, [](const auto& hca) { return hca->state == Hca::State::Failed; });
    for (const auto& hca : hcas_) {
      if (hca->state == Hca::State::Open && hca->is_wanted) open_ports(*hca);
    }
    reconcile();
    return settle();
  }
  if (state_ != State::New) return;
  state_ = State::Attaching;
  const auto done = [](io::Irp&, void* context) { static_cast<GsiNode*>(context)->attached(); };
  al_.open(node_.name, "softib services", irp_.start(done, this));
}

void GsiNode::attached() {
  status_ = irp_.status;
  reason_ = irp_.reason;
  const bool is_attached = status_ == Status::Ok;
  state_ = is_attached ? State::Open : State::New;
  if (closing_) return is_attached ? detach() : end();
  reconcile();
  settle();
}

// Makes the HCAs that are open those that are there.
void GsiNode::reconcile() {
  if (state_ != State::Open || closing_) return;
  std::vector<Hca*> gone;
  for (const auto& hca : hcas_) {
    if (!hca->hca.present) gone.push_back(hca.get());
  }
  for (Hca* hca : gone) drop(*hca);
  for (const fabric::Hca& hca : node_.hcas) {
    const bool is_open = find_hca(hca.node_guid) != nullptr;
    if (hca.present && !is_open && !is_held(hca.node_guid)) open_hca(hca);
  }
}

void GsiNode::open_hca(const fabric::Hca& hca) {
  Hca& opening = *hcas_.emplace_back(std::make_unique<Hca>(*this, hca));
  const auto done = [](io::Irp&, void* context) {
    Hca& opened = *static_cast<Hca*>(context);
    opened.node.hca_opened(opened);
  };
  opening.ca.open(fmt::format("\\Device\\ibal\\{:016x}", hca.node_guid),
                  opening.irp.start(done, &opening));
}

void GsiNode::hca_opened(Hca& hca) {
  hca.status = hca.irp.status;
  hca.reason = hca.irp.reason;
  if (hca.status != Status::Ok) {
    hca.state = Hca::State::Failed;
    return hca.is_wanted ? settle() : hca_closed(hca);
  }
  hca.state = Hca::State::Open;
  if (!hca.is_wanted) {
    hca.state = Hca::State::Closing;
    return close_if_idle(hca);
  }
  const PortQueue::OnReceive on_receive = [this](std::uint32_t port, const al::MadAddress& from,
                                                 const mad::Mad& mad) {
    if (!closing_) owner_.on_mad(port, from, mad);
  };
  for (const fabric::Port& port : hca.hca.ports) {
    hca.ports.push_back(std::make_unique<PortQueue>(hca.ca, fabric_.graph().index_of(port),
                                                    port.number, on_receive));
  }
  open_ports(hca);
}

void GsiNode::open_ports(Hca& hca) {
  for (const auto& each : hca.ports) {
    PortQueue& port = *each;
    if (port.is_open() || port.is_busy()) continue;
    port.open([this, &hca, &port] {
      if (!hca.is_wanted) return close_if_idle(hca);
      if (port.is_open()) owner_.on_port({port.port(), GsiPortChange::Opened});
      settle();
    });
  }
}

// Ends what is under way at the HCA, and then closes it.
void GsiNode::drop(Hca& hca) {
  if (!hca.is_wanted) return;
  hca.is_wanted = false;
  switch (hca.state) {
    case Hca::State::Opening: return hca.irp.cancel();
    case Hca::State::Failed: return hca_closed(hca);
    case Hca::State::Closing: return;
    case Hca::State::Open: break;
  }
  for (const auto& port : hca.ports) {
    const bool was_open = port->is_open();
    port->abandon();
    if (was_open) owner_.on_port({port->port(), GsiPortChange::Closed});
  }
  hca.state = Hca::State::Closing;
  close_if_idle(hca);
}

void GsiNode::close_if_idle(Hca& hca) {
  const bool is_idle =
      std::ranges::none_of(hca.ports, [](const auto& port) { return port->is_busy(); });
  if (hca.state != Hca::State::Closing || !is_idle) return;
  const auto done = [](io::Irp& irp, void* context) {
    IB_ASSERT(irp.status == Status::Ok);  // nothing of it is under way
    Hca& closed = *static_cast<Hca*>(context);
    closed.node.hca_closed(closed);
  };
  hca.ca.close(hca.irp.start(done, &hca));
}

void GsiNode::hca_closed(Hca& hca) {
  const std::uint64_t guid = hca.hca.node_guid;
  std::erase_if(hcas_, [&hca](const auto& each) { return each.get() == &hca; });
  std::vector<std::function<void()>> done;
  std::erase_if(waiting_, [&](auto& entry) {
    if (entry.first != guid) return false;
    done.push_back(std::move(entry.second));
    return true;
  });
  if (closing_) {
    if (hcas_.empty() && state_ == State::Open) detach();
  } else {
    reconcile();
    settle();
  }
  for (const auto& each : done) each();
}

void GsiNode::on_event(const verbs::control::EventOut& event) {
  if (closing_) return;
  if (event.type == EventType::CaRemoved) {
    if (Hca* hca = find_hca(event.cookie)) drop(*hca);
  }
  if (event.type == EventType::CaRemoved || event.type == EventType::CaAdded ||
      event.type == EventType::EventsLost) {
    return reconcile();
  }
  const bool is_broken = event.type == EventType::QpFatal || event.type == EventType::QpReqErr ||
                         event.type == EventType::QpAccessErr || event.type == EventType::CqErr;
  for (const auto& hca : hcas_) {
    if (hca->state != Hca::State::Open || hca->ca.file() != event.file) continue;
    // Somebody has damaged device memory. With the file all of it goes, and is made again.
    if (is_broken) return drop(*hca);
    if (event.object != verbs::control::EventObject::Port) return;
    for (const auto& port : hca->ports) {
      const bool is_it = port->number() == event.index && port->is_open();
      if (is_it) owner_.on_port({port->port(), GsiPortChange::Event, event.type});
    }
  }
}

void GsiNode::close() {
  if (closing_) return;
  closing_ = true;
  switch (state_) {
    case State::New: return end();
    case State::Attaching: return irp_.cancel();
    case State::Open: break;
    case State::Detaching:
    case State::Closed: return;
  }
  std::vector<Hca*> all;
  for (const auto& hca : hcas_) all.push_back(hca.get());
  if (all.empty()) return detach();
  for (Hca* hca : all) drop(*hca);
}

void GsiNode::detach() {
  state_ = State::Detaching;
  const auto done = [](io::Irp& irp, void* context) {
    IB_ASSERT(irp.status == Status::Ok);  // no CA is open
    static_cast<GsiNode*>(context)->end();
  };
  al_.close(irp_.start(done, this));
}

void GsiNode::end() {
  state_ = State::Closed;
  owner_.on_closed(*this);  // `this` may be gone now
}

bool GsiNode::is_settled() const {
  if (state_ != State::Open) return status_ != Status::Pending && state_ == State::New;
  return std::ranges::all_of(hcas_, [](const auto& hca) {
    if (hca->state == Hca::State::Failed) return true;
    return hca->state == Hca::State::Open && std::ranges::all_of(hca->ports, [](const auto& port) {
             return port->status() != Status::Pending;
           });
  });
}

// From the executor: what is being opened may be opened in the call.
void GsiNode::settle() {
  platform::Executor& executor = al_.system().executor;
  settling_ = executor.at(executor.now(), [this] {
    if (!closing_ && is_settled()) owner_.on_settled(*this);
  });
}

Status GsiNode::first_problem(std::string& reason) const {
  if (status_ != Status::Ok) {
    reason = reason_;
    return status_;
  }
  for (const auto& hca : hcas_) {
    if (hca->status != Status::Ok) {
      reason = hca->reason;
      return hca->status;
    }
    for (const auto& port : hca->ports) {
      if (port->status() == Status::Ok) continue;
      reason = port->reason();
      return port->status();
    }
  }
  return Status::Ok;
}

void GsiNode::list(std::vector<GsiPort>& ports) const {
  for (const auto& hca : hcas_) {
    for (const fabric::Port& each : hca->hca.ports) {
      const std::uint32_t index = fabric_.graph().index_of(each);
      const PortQueue* port = find(index);
      if (port != nullptr) {
        ports.push_back({index, port->is_open(), port->status(), port->reason()});
      } else {
        ports.push_back({index, false, hca->status, hca->reason});
      }
    }
  }
}

PortQueue* GsiNode::find(std::uint32_t port) const {
  for (const auto& hca : hcas_) {
    const std::uint32_t number = port - hca->hca.first_port;
    if (number < hca->ports.size() && hca->is_wanted) return hca->ports[number].get();
  }
  return nullptr;
}

GsiNode::Hca* GsiNode::find_hca(std::uint64_t guid) const {
  for (const auto& hca : hcas_) {
    if (hca->hca.node_guid == guid) return hca.get();
  }
  return nullptr;
}

bool GsiNode::is_held(std::uint64_t guid) const {
  return std::ranges::find(held_, guid) != held_.end();
}

void GsiNode::let_go(std::uint64_t guid, std::function<void()> done) {
  held_.push_back(guid);
  Hca* hca = find_hca(guid);
  if (hca == nullptr) return done();
  waiting_.emplace_back(guid, std::move(done));
  drop(*hca);
}

void GsiNode::let_back(std::uint64_t guid) {
  const auto held = std::ranges::find(held_, guid);
  if (held != held_.end()) held_.erase(held);
  if (state_ == State::Open) open();
}

}  // namespace ib::services
