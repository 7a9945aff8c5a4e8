// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ping.h"

#include <array>
#include <charconv>

namespace ping {

namespace al = ib::al;
using ib::hca::Completion;
using ib::io::IrpRef;
using ib::verbs::QpType;
using ib::verbs::WcStatus;

namespace {

constexpr std::uint32_t kCqes = 1024;

std::map<std::uint64_t, Ping*> all;  // those that are ready
std::uint64_t last_number = 0;

}  // namespace

Ping::Ping(ib::io::DriverObject& driver, al::System& system, Where where)
    : number_(++last_number),
      system_(system),
      where_(std::move(where)),
      al_(system, driver),
      ca_(al_) {}

std::string Ping::note() const {
  if (!problem_.empty()) return problem_;
  const auto text = [](const char* name, const Count& count) {
    return std::string(name) + " " + std::to_string(count.answered) + " pings answered, " +
           std::to_string(count.answers) + " answers; ";
  };
  std::size_t up = 0;
  for (const auto& [other, connection] : connections_)
    up += connection.state == Connection::State::Up;
  return text("UD", ud_) + text("RC", rc_) + std::to_string(up) + " connected, " +
         std::to_string(broken_) + " broken";
}

Ping* Ping::find(std::uint64_t number) {
  const auto found = all.find(number);
  return found == all.end() ? nullptr : found->second;
}

void Ping::begin() {
  const std::string& number = where_["port"];
  std::from_chars(number.data(), number.data() + number.size(), port_in_.port);
  datagrams_ = std::make_unique<Endpoint>(ca_, pd_, cq_, QpType::Ud,
                                          static_cast<std::uint8_t>(port_in_.port));
  std::vector<Requests::Issue> steps = {
      [this](IrpRef irp) { al_.open(where_["host"], "ping", std::move(irp)); },
      [this](IrpRef irp) { ca_.open("\\Device\\ibal\\" + where_["ca_guid"], std::move(irp)); },
      [this](IrpRef irp) { ca_.call(control::Code::QueryPort, port_in_, port_, std::move(irp)); },
      [this](IrpRef irp) { al::alloc_pd(ca_, pd_, std::move(irp)); },
      [this](IrpRef irp) { al::create_cq(ca_, kCqes, cq_, std::move(irp)); },
  };
  for (auto part : {datagrams_->make(), datagrams_->connect({})}) {
    steps.insert(steps.end(), part.begin(), part.end());
  }
  requests_.run(std::move(steps), [this](Status status, const std::string& reason) {
    if (status != Status::Ok) {
      problem_ = "does not work: " + reason;
      return;
    }
    ready();
  });
}

void Ping::end(std::function<void()> done) {
  all.erase(number_);
  timer_.reset();
  problem_ = "has let go of the HCA";
  for (const auto& [number, other] : all) other->left(number_);
  requests_.end({[this](IrpRef irp) { ca_.close(std::move(irp)); },
                 [this](IrpRef irp) { al_.close(std::move(irp)); }},
                std::move(done));
}

void Ping::ready() {
  datagrams_->post_receives();
  cq_.on_completion = [this](al::Cq&) { take(); };
  al::arm(cq_);
  all[number_] = this;
  tick();
}

void Ping::tick() {
  for (const auto& [number, other] : all) {
    if (other == this) continue;
    datagrams_->send("ping", other->address_of(*other->datagrams_));
    const auto connection = connections_.find(number);
    if (connection != connections_.end()) {
      if (connection->second.state == Connection::State::Up) {
        connection->second.endpoint->send("ping");
      }
    } else if (number < number_ && !other->connections_.contains(number_)) {
      make(number, [this, number = number] {
        Ping* older = find(number);
        if (older == nullptr) return drop(number);
        older->offer(number_, address_of(*connections_[number].endpoint));
      });
    }
  }
  timer_ = system_.executor.at(system_.executor.now() + kPeriod, [this] { tick(); });
}

// --- connections ---

bool Ping::is_making(std::uint64_t other) const {
  const auto found = connections_.find(other);
  return found != connections_.end() && found->second.state == Connection::State::Making;
}

void Ping::make(std::uint64_t other, std::function<void()> made) {
  Connection& connection = connections_[other];
  connection.endpoint = std::make_unique<Endpoint>(ca_, pd_, cq_, QpType::Rc,
                                                   static_cast<std::uint8_t>(port_in_.port));
  requests_.run(connection.endpoint->make(),
                [this, other, made = std::move(made)](Status status, const std::string&) {
                  if (!is_making(other)) return;  // it left meanwhile
                  if (status != Status::Ok) return drop(other);
                  connections_[other].endpoint->post_receives();
                  made();
                });
}

void Ping::offer(std::uint64_t younger, const Address& its) {
  make(younger, [this, younger, its] { connect(younger, its); });
}

void Ping::accepted(std::uint64_t older, const Address& its) {
  if (is_making(older)) connect(older, its);
}

void Ping::connect(std::uint64_t other, const Address& its) {
  requests_.run(connections_[other].endpoint->connect(its),
                [this, other](Status status, const std::string&) {
                  if (!is_making(other)) return;
                  if (status != Status::Ok) return drop(other);
                  connections_[other].state = Connection::State::Up;
                  Ping* peer = find(other);
                  if (peer == nullptr) return drop(other);
                  if (other > number_)
                    peer->accepted(number_, address_of(*connections_[other].endpoint));
                });
}

// Takes this end away, and has the other instance do likewise.
void Ping::drop(std::uint64_t other) {
  const auto found = connections_.find(other);
  if (found == connections_.end() || found->second.state == Connection::State::Leaving) return;
  found->second.state = Connection::State::Leaving;
  if (Ping* peer = find(other)) peer->left(number_);
  requests_.run(found->second.endpoint->take_away(),
                [this, other](Status status, const std::string& reason) {
                  if (status == Status::Ok) {
                    connections_.erase(other);
                  } else {
                    problem_ = "cannot take a connection away: " + reason;
                  }
                });
}

// --- completions ---

void Ping::take() {
  std::array<Completion, 16> got;
  while (const std::size_t n = al::poll(cq_, got)) {
    for (std::size_t i = 0; i < n; ++i) {
      if (got[i].qpn == datagrams_->qpn()) {
        take_datagram(got[i]);
      } else {
        take_message(got[i]);
      }
    }
  }
  al::arm(cq_);
}

void Ping::take_datagram(const Completion& got) {
  const auto text = datagrams_->take(got);
  if (!text) return;
  ud_.note(*text);
  if (*text == "ping") datagrams_->send("pong", {got.slid, got.src_qp});
}

// A connection that has failed once stays failed.
void Ping::take_message(const Completion& got) {
  for (auto& [other, connection] : connections_) {
    if (connection.endpoint->qpn() != got.qpn) continue;
    const auto text = connection.endpoint->take(got);
    if (connection.state == Connection::State::Leaving) return;
    if (got.status != WcStatus::Success) {
      ++broken_;
      return drop(other);
    }
    if (!text) return;
    rc_.note(*text);
    if (*text == "ping") connection.endpoint->send("pong");
    return;
  }
}

}  // namespace ping
