// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "echo.h"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

namespace echo {

using ib::io::Irp;
using ib::io::IrpRef;
using ib::verbs::QpState;

Echo::Echo(ib::io::DriverObject& driver, al::System& system, Where where)
    : system_(system),
      where_(std::move(where)),
      al_(system, driver),
      ca_(al_),
      cm_(ca_),
      sa_(ca_) {}

std::string Echo::note() const {
  if (!problem_.empty()) return problem_;
  return "port " + std::to_string(kPort) + ": " + std::to_string(connections_.size()) +
         " connected, " + std::to_string(served_) + " in all; " + std::to_string(echoed_) +
         " messages" + (is_registered_ ? "; registered" : "");
}

void Echo::begin() {
  requests_.run(
      {
          [this](IrpRef irp) { al_.open(where_["host"], "echo", std::move(irp)); },
          [this](IrpRef irp) { ca_.open("\\Device\\ibal\\" + where_["ca_guid"], std::move(irp)); },
          [this](IrpRef irp) { cm_.open(std::move(irp)); },
          [this](IrpRef irp) { sa_.open(std::move(irp)); },
          [this](IrpRef irp) { al::alloc_pd(ca_, pd_, std::move(irp)); },
          [this](IrpRef irp) { al::create_cq(ca_, 4 * kSlots, cq_, std::move(irp)); },
          [this](IrpRef irp) { al::alloc_dm(ca_, room_, memory_, std::move(irp)); },
          [this](IrpRef irp) {
            al::reg_dm(pd_, memory_, ib::verbs::access::kLocalWrite, region_, std::move(irp));
          },
      },
      [this](Status status, const std::string& reason) {
        if (status == Status::Ok) return listen();
        problem_ = "does not work: " + reason;
      });
}

void Echo::end(std::function<void()> done) {
  ending_ = true;
  problem_ = "has let go of the HCA";
  requests_.end({[this](IrpRef irp) { sa_.close(std::move(irp)); },
                 [this](IrpRef irp) { cm_.close(std::move(irp)); },
                 [this](IrpRef irp) { ca_.close(std::move(irp)); },
                 [this](IrpRef irp) { al_.close(std::move(irp)); }},
                [this, done = std::move(done)] {
                  connections_.clear();
                  done();
                });
}

// On this port of the HCA; another instance has the other one.
void Echo::listen() {
  cq_.on_completion = [this](al::Cq&) { take_completions(); };
  al::arm(cq_);
  listen_in_.service_id = 0x0106'0000 + kPort;  // RDMA IP service, TCP
  const std::string& port = where_["port"];
  std::from_chars(port.data(), port.data() + port.size(), listen_in_.port);
  const auto listening = [](Irp& irp, void* context) {
    auto& self = *static_cast<Echo*>(context);
    if (irp.status != Status::Ok) {
      self.problem_ = "cannot listen: " + irp.reason;
      return;
    }
    self.listener_.handle = static_cast<al::CmHandle>(irp.information);
    self.wait_for_request();
    self.register_service();
  };
  cm_.listen(listen_in_, request_irp_.start(listening, this));
}

// Other drivers find a path to it by its service ID. Without a subnet administrator, as on Ethernet
// ports, it is found by its address only.
void Echo::register_service() {
  service_.port = listen_in_.port;
  service_.service_id = listen_in_.service_id;
  const auto registered = [](Irp& irp, void* context) {
    static_cast<Echo*>(context)->is_registered_ = irp.status == Status::Ok;
  };
  sa_.register_service(service_, service_irp_.start(registered, this));
}

void Echo::wait_for_request() {
  const auto came = [](Irp& irp, void* context) {
    auto& self = *static_cast<Echo*>(context);
    if (irp.status != Status::Ok || self.ending_) return;  // cancelled: it ends
    self.take_request();
    self.wait_for_request();
  };
  cm_.get_request(listener_, request_, request_irp_.start(came, this));
}

void Echo::take_request() {
  std::uint32_t slot = 0;
  while (connections_.contains(slot)) ++slot;
  std::unique_ptr<Connection> made(new Connection{*this, slot});
  Connection& connection = *made;
  connection.name.handle = connection.accept.handle = connection.confirm.handle =
      connection.state.handle = request_.handle;
  connection.accept.responder_resources = request_.initiator_depth;
  connection.accept.initiator_depth = request_.responder_resources;
  connections_[slot] = std::move(made);
  if (slot >= kSlots) return drop(connection);  // the requester gets a rejection
  std::vector<parts::Requests::Issue> steps{[this, &connection](IrpRef irp) {
    const ib::verbs::control::QpCaps caps{1, 1, 1, 1, 0, 0};
    al::create_qp(pd_, ib::verbs::QpType::Rc, caps, cq_, cq_, connection.qp, std::move(irp));
  }};
  for (const QpState state : {QpState::Init, QpState::Rtr, QpState::Rts}) {
    steps.push_back([this, &connection, state](IrpRef irp) {
      connection.state.state = state;
      cm_.query(connection.state, connection.attributes, std::move(irp));
    });
    steps.push_back([&connection](IrpRef irp) {
      const al::CmQueryOut& to = connection.attributes;
      al::modify_qp(connection.qp, to.mask, to.attr, std::move(irp));
    });
  }
  requests_.run(std::move(steps), [this, &connection](Status status, const std::string&) {
    status == Status::Ok ? accept(connection) : drop(connection);
  });
}

// The receive is posted before the requester can send.
void Echo::accept(Connection& connection) {
  receive(connection);
  connection.accept.qpn = connection.qp.made.qpn;
  const auto ready = [](Irp& irp, void* context) {
    auto& self = *static_cast<Connection*>(context);
    if (self.echo.ending_) return;
    if (irp.status != Status::Ok) return self.echo.drop(self);
    ++self.echo.served_;
    self.echo.wait_for_event(self);
  };
  cm_.accept(connection.accept, connection.event, connection.irp.start(ready, &connection));
}

void Echo::wait_for_event(Connection& connection) {
  const auto came = [](Irp& irp, void* context) {
    auto& self = *static_cast<Connection*>(context);
    if (irp.status != Status::Ok || self.echo.ending_) return;         // cancelled: it ends
    const bool goes_on = self.event.kind == al::CmEventKind::Delayed;  // a program takes its time
    goes_on ? self.echo.wait_for_event(self) : self.echo.drop(self);
  };
  cm_.wait_event(connection.name, connection.event, connection.irp.start(came, &connection));
}

// Whatever it was that ended it: destroy() answers a DREQ, or sends one.
void Echo::drop(Connection& connection) {
  if (std::exchange(connection.is_leaving, true)) return;
  requests_.run(
      {[this, &connection](IrpRef irp) { cm_.destroy(connection.name, std::move(irp)); },
       [&connection](IrpRef irp) {
         if (!connection.qp.exists()) return std::move(irp).complete(Status::Ok);
         al::destroy(connection.qp, std::move(irp));
       }},
      [this, slot = connection.slot](Status, const std::string&) { connections_.erase(slot); });
}

void Echo::receive(Connection& connection) {
  const ib::hca::Sge sge{std::uint64_t{connection.slot} * kSlot, kSlot, region_.made.lkey};
  (void)al::post_recv(connection.qp, connection.slot, {&sge, 1});
}

void Echo::take_completions() {
  std::array<ib::hca::Completion, 16> got;
  while (const std::size_t count = al::poll(cq_, got)) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto slot = static_cast<std::uint32_t>(got[i].wr_id % kSlots);
      const auto found = connections_.find(slot);
      if (got[i].status != ib::verbs::WcStatus::Success || found == connections_.end()) continue;
      if (got[i].wr_id >= kSlots) {  // it is sent
        receive(*found->second);
        continue;
      }
      const ib::hca::Sge sge{std::uint64_t{slot} * kSlot, got[i].byte_len, region_.made.lkey};
      ib::hca::SendWqe wqe;
      wqe.wr_id = kSlots + slot;
      wqe.opcode = ib::verbs::WrOpcode::Send;
      wqe.flags = ib::verbs::send_flag::kSignaled;
      wqe.sge = &sge;
      wqe.num_sge = 1;
      if (al::post_send(found->second->qp, wqe) == Status::Ok) ++echoed_;
    }
  }
  al::arm(cq_);
}

}  // namespace echo
