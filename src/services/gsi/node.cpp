// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/gsi/node_internal.h"

#include <algorithm>
#include <utility>

namespace ib::services {

using verbs::EventType;

GsiNode::GsiNode(al::System& system, io::DriverObject& driver, const fabric::Fabric& fabric,
                 const fabric::Node& node, Owner& owner, GsiReceiver& receiver)
    : fabric_(fabric), node_(node), owner_(owner), receiver_(receiver), al_(system, driver) {
  al_.set_on_event([this](const verbs::control::EventOut& event) { on_event(event); });
}

GsiNode::~GsiNode() {
  IB_ASSERT(state_ == State::New || state_ == State::Closed);
}

void GsiNode::open() {
  if (closing_) return;
  if (state_ == State::Open) {
    std::erase_if(hcas_, [](const auto& hca) { return hca->has_failed(); });
    for (const auto& hca : hcas_) {
      if (hca->is_open() && hca->is_wanted()) hca->open_ports();
    }
    reconcile();
    return on_hca_changed();
  }
  if (state_ != State::New) return;
  state_ = State::Attaching;
  const auto done = [](io::Irp&, void* context) { static_cast<GsiNode*>(context)->attached(); };
  al_.open(node_.name, "softib services", irp_.start(done, this));
}

void GsiNode::attached() {
  attached_ = {irp_.status, irp_.reason};
  const bool is_attached = attached_.status == Status::Ok;
  state_ = is_attached ? State::Open : State::New;
  if (closing_) return is_attached ? detach() : end();
  reconcile();
  on_hca_changed();
}

// Makes the HCAs that are open those that are there.
void GsiNode::reconcile() {
  if (state_ != State::Open || closing_) return;
  std::vector<GsiHca*> gone;
  for (const auto& hca : hcas_) {
    if (!hca->hca().present) gone.push_back(hca.get());
  }
  for (GsiHca* hca : gone) hca->drop();
  for (const fabric::Hca& hca : node_.hcas) {
    const bool is_open = find_hca(hca.node_guid) != nullptr;
    if (hca.present && !is_open && !held_.is_held(hca.node_guid)) {
      hcas_.push_back(std::make_unique<GsiHca>(al_, fabric_, hca, *this, receiver_));
      hcas_.back()->open();
    }
  }
}

void GsiNode::on_hca_closed(GsiHca& hca) {
  const std::uint64_t guid = hca.hca().node_guid;
  std::erase_if(hcas_, [&hca](const auto& each) { return each.get() == &hca; });
  const std::vector<std::function<void()>> done = held_.take_waiting(guid);
  if (closing_) {
    if (hcas_.empty() && state_ == State::Open) detach();
  } else {
    reconcile();
    on_hca_changed();
  }
  for (const auto& each : done) each();
}

void GsiNode::on_event(const verbs::control::EventOut& event) {
  if (closing_) return;
  if (event.type == EventType::CaRemoved) {
    if (GsiHca* hca = find_hca(event.cookie)) hca->drop();
  }
  if (event.type == EventType::CaRemoved || event.type == EventType::CaAdded ||
      event.type == EventType::EventsLost) {
    return reconcile();
  }
  const bool is_broken = event.type == EventType::QpFatal || event.type == EventType::QpReqErr ||
                         event.type == EventType::QpAccessErr || event.type == EventType::CqErr;
  for (const auto& hca : hcas_) {
    if (!hca->is_open() || !hca->is_of(event)) continue;
    // Somebody has damaged device memory. With the file all of it goes, and is made again.
    if (is_broken) return hca->drop();
    if (event.object != verbs::control::EventObject::Port) return;
    hca->on_port_event(event);
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
  std::vector<GsiHca*> all;
  for (const auto& hca : hcas_) all.push_back(hca.get());
  if (all.empty()) return detach();
  for (GsiHca* hca : all) hca->drop();
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
  if (state_ != State::Open) return attached_.status != Status::Pending && state_ == State::New;
  return std::ranges::all_of(hcas_, [](const auto& hca) { return hca->is_settled(); });
}

// From the executor: what is being opened may be opened in the call.
void GsiNode::on_hca_changed() {
  platform::Executor& executor = al_.system().executor;
  settling_ = executor.at(executor.now(), [this] {
    if (!closing_ && is_settled()) owner_.on_settled(*this);
  });
}

GsiOutcome GsiNode::first_problem() const {
  if (attached_.status != Status::Ok) return attached_;
  for (const auto& hca : hcas_) {
    if (GsiOutcome problem = hca->first_problem(); problem.status != Status::Ok) return problem;
  }
  return {Status::Ok, {}};
}

void GsiNode::list(std::vector<GsiPort>& ports) const {
  for (const auto& hca : hcas_) hca->list(ports);
}

PortQueue* GsiNode::find(std::uint32_t port) const {
  for (const auto& hca : hcas_) {
    if (PortQueue* found = hca->find(port)) return found;
  }
  return nullptr;
}

GsiHca* GsiNode::find_hca(std::uint64_t guid) const {
  for (const auto& hca : hcas_) {
    if (hca->hca().node_guid == guid) return hca.get();
  }
  return nullptr;
}

void GsiNode::let_go(std::uint64_t guid, std::function<void()> done) {
  held_.hold(guid);
  GsiHca* hca = find_hca(guid);
  if (hca == nullptr) return done();
  held_.await_close(guid, std::move(done));
  hca->drop();
}

void GsiNode::let_back(std::uint64_t guid) {
  held_.release(guid);
  if (state_ == State::Open) open();
}

}  // namespace ib::services
