// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every request of the communication manager's device and of the subnet administrator's, in every
// order, with any handle, while events are kept, requests wait and are cancelled, and clients,
// (with each second seed) ports and HCAs come and go. Each request ends once; in the end both
// engines and the subnet administrator hold nothing. A seed that fails is printed with the command
// that repeats it; more seeds: SOFTIB_SEEDS=10000.
#include "base/sanitizer.h"
#include "sa_world.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;

// A request with its buffers.
struct Sent {
  std::vector<std::byte> in;
  alignas(8) std::array<std::byte, 2048> out{};
  Outcome outcome;
};

// A client of both devices of one HCA.
class Client {
 public:
  Client(SaWorld& w, std::size_t node) : node_(node), cm_(w, node), sa_(cm_.ca) {
    EXPECT_EQ(cm_.run([&](io::IrpRef irp) { sa_.open(std::move(irp)); }), Status::Ok);
  }
  std::size_t node() const { return node_; }

  template <class In>
  void send(al::CmCode code, const In& in) {
    Sent& one = add(in);
    cm_.cm.send(code, one.in, one.out, one.outcome.start());
  }
  template <class In>
  void send(al::SaCode code, const In& in) {
    Sent& one = add(in);
    sa_.send(code, one.in, one.out, one.outcome.start());
  }
  void cancel(std::uint32_t which) {
    if (sent_.empty()) return;
    Sent& one = *sent_[which % sent_.size()];
    if (!one.outcome.is_done()) one.outcome.irp.cancel();
  }
  void close() {
    EXPECT_EQ(cm_.run([&](io::IrpRef irp) { sa_.close(std::move(irp)); }), Status::Ok);
    cm_.close();
    for (const auto& one : sent_) EXPECT_EQ(one->outcome.times, 1);
    for (const auto& one : sent_) succeeded_ += one->outcome.irp.status == Status::Ok ? 1u : 0u;
  }
  std::size_t succeeded() const { return succeeded_; }

 private:
  template <class In>
  Sent& add(const In& in) {
    std::erase_if(sent_, [this](const auto& one) {
      if (!one->outcome.is_done() || sent_.size() < 200) return false;
      EXPECT_EQ(one->outcome.times, 1);
      return true;
    });
    sent_.push_back(std::make_unique<Sent>());
    const auto bytes = bytes_of(in);
    sent_.back()->in.assign(bytes.begin(), bytes.end());
    return *sent_.back();
  }

  std::size_t node_;
  CmClient cm_;
  al::Sa sa_;
  std::vector<std::unique_ptr<Sent>> sent_;
  std::size_t succeeded_ = 0;
};

class RandomRequests {
 public:
  explicit RandomRequests(unsigned seed) : random_(seed), has_changes_(seed % 2 == 0) {
    for (std::size_t i = 0; i < 4; ++i) clients_.push_back(std::make_unique<Client>(w_, i % 2));
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      if (happens(50)) w_.run(std::chrono::microseconds(number(3000)));
    }
    for (const auto& client : clients_) close(*client);
    clients_.clear();
    EXPECT_TRUE(w_.comes([&] { return w_.is_over(); }, 5min))
        << w_.connections() << " connections and " << w_.exchanges() << " exchanges are left";
    if (has_changes_) take_ports_down();
    EXPECT_TRUE(w_.comes([&] { return w_.held() == 0; }, 5min)) << w_.held() << " records are left";
  }
  std::size_t succeeded() const { return succeeded_; }

 private:
  std::uint32_t number(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_()) % below;
  }
  bool happens(std::uint32_t percent) { return number(100) < percent; }
  al::CmHandle handle() { return number(happens(90) ? 12 : 60); }
  std::uint64_t service() { return kService + number(3); }
  // Now and then more than there is room for.
  void fill(al::CmData& data) { data.size = happens(80) ? number(60) : number(250); }

  void close(Client& client) {
    client.close();
    succeeded_ += client.succeeded();
  }
  void replace(std::size_t which) {
    const std::size_t node = clients_[which]->node();
    close(*clients_[which]);
    clients_[which].reset();
    clients_[which] = std::make_unique<Client>(w_, node);
  }
  // The clients of the HCA notice by their requests; then it comes back.
  void pull_out(std::size_t node) {
    EXPECT_EQ(w_.eject(node), Status::Ok);
    for (const auto& client : clients_) {
      if (client->node() == node && happens(50)) any_request(*client);
    }
    std::erase_if(clients_, [&](const auto& client) {
      if (client->node() != node) return false;
      close(*client);
      return true;
    });
    EXPECT_EQ(w_.plug_in(node), Status::Ok);
    for (int i = 0; i < 2; ++i) clients_.push_back(std::make_unique<Client>(w_, node));
  }

  // An end that got no answer, since a port was down, leaves a record until its own port goes.
  void take_ports_down() {
    for (std::size_t node = 0; node < 2; ++node) {
      for (fabric::Port& port : w_.hca(node).ports) {
        drivers::set_port_state(w_.bench.core(), port, false);
      }
    }
    w_.run();
  }

  void step() {
    const auto which = number(static_cast<std::uint32_t>(clients_.size()));
    switch (number(60)) {
      case 0: return replace(which);
      case 1:
        if (has_changes_ && happens(10)) pull_out(number(2));
        return;
      case 2:
        if (has_changes_) w_.set_port(number(2), happens(70));
        return;
      case 3: return w_.run(std::chrono::milliseconds(number(500)));
      case 4:
      case 5:
      case 6: return clients_[which]->cancel(number(1000));
      default: return any_request(*clients_[which]);
    }
  }

  al::CmPath path(const Client& client) {
    al::CmPath path = w_.path(client.node(), happens(90) ? 1 - client.node() : client.node());
    if (happens(5)) path.dlid = static_cast<std::uint16_t>(number(9));
    if (happens(3)) path.port = static_cast<std::uint8_t>(number(4));
    return path;
  }

  void any_request(Client& client) {
    switch (number(26)) {
      case 0: return listen(client);
      case 1:
      case 2: return client.send(al::CmCode::GetRequest, al::CmHandleIn{handle()});
      case 3:
      case 4:
      case 5: return connect(client);
      case 6:
      case 7: return send_message(client, al::CmCode::Establish);
      case 8:
      case 9:
      case 10: return accept(client);
      case 11: return reject(client);
      case 12: return send_message(client, al::CmCode::Delay);
      case 13: return send_message(client, al::CmCode::Disconnect);
      case 14: return send_message(client, al::CmCode::ConfirmDisconnect);
      case 15:
      case 16: return client.send(al::CmCode::WaitEvent, al::CmHandleIn{handle()});
      case 17: return change_path(client);
      case 18: return client.send(al::CmCode::PathMigrated, al::CmHandleIn{handle()});
      case 19: {
        al::CmQueryIn in;
        in.handle = handle();
        in.state = static_cast<verbs::QpState>(number(8));
        return client.send(al::CmCode::Query, in);
      }
      case 20: return resolve(client);
      case 21: return respond(client);
      case 22: return client.send(al::CmCode::Destroy, al::CmHandleIn{handle()});
      default: return of_administrator(client);
    }
  }

  void listen(Client& client) {
    al::CmListenIn in;
    in.service_id = service();
    in.services = static_cast<al::CmServices>(number(4));
    in.port = number(happens(90) ? 2 : 9);
    in.backlog = number(4);
    in.compare_size = happens(90) ? 0 : number(70);
    in.offset = number(90);
    client.send(al::CmCode::Listen, in);
  }
  void connect(Client& client) {
    al::CmConnectIn in = connect_in(w_, client.node(), 1 - client.node(), number(6), service());
    in.path = path(client);
    in.peer_to_peer = happens(10);
    in.has_alternate = happens(10);
    in.alternate = path(client);
    in.type = happens(90) ? verbs::QpType::Rc : static_cast<verbs::QpType>(number(12));
    in.max_retries = static_cast<std::uint8_t>(number(3));
    fill(in.data);
    client.send(al::CmCode::Connect, in);
  }
  void accept(Client& client) {
    al::CmAcceptIn in;
    in.handle = handle();
    in.qpn = number(6);
    in.failover = static_cast<std::uint8_t>(number(4));
    fill(in.data);
    client.send(al::CmCode::Accept, in);
  }
  void reject(Client& client) {
    al::CmRejectIn in;
    in.handle = handle();
    in.reason = number(40);
    in.info.size = number(90);
    fill(in.data);
    client.send(al::CmCode::Reject, in);
  }
  void send_message(Client& client, al::CmCode code) {
    al::CmMessageIn in;
    in.handle = handle();
    in.service_timeout = number(40);
    fill(in.data);
    client.send(code, in);
  }
  void change_path(Client& client) {
    if (happens(50)) {
      al::CmLoadPathIn in;
      in.handle = handle();
      in.path = path(client);
      return client.send(al::CmCode::LoadPath, in);
    }
    al::CmAnswerPathIn in;
    in.handle = handle();
    in.status = number(12);
    client.send(al::CmCode::AnswerPath, in);
  }
  void resolve(Client& client) {
    al::CmResolveIn in;
    in.service_id = service();
    in.path = path(client);
    in.response_timeout = number(20);
    in.max_retries = number(3);
    fill(in.data);
    client.send(al::CmCode::Resolve, in);
  }
  void respond(Client& client) {
    al::CmRespondIn in;
    in.handle = handle();
    in.status = number(7);
    in.qpn = number(6);
    fill(in.data);
    client.send(al::CmCode::Respond, in);
  }

  void of_administrator(Client& client) {
    const std::uint32_t port = happens(95) ? 1 : number(9);
    switch (number(6)) {
      case 0: {
        al::SaPathIn in;
        in.port = port;
        if (happens(60)) in.dgid = w_.gid(number(2));
        if (happens(20)) in.dlid = static_cast<std::uint16_t>(number(9));
        if (happens(20)) in.service_id = service();
        return client.send(al::SaCode::QueryPath, in);
      }
      case 1: {
        al::SaServiceIn in;
        in.port = port;
        in.service_id = service();
        in.lease_seconds = number(9);
        return client.send(al::SaCode::Register, in);
      }
      case 2:
        return client.send(al::SaCode::Subscribe,
                           al::SaSubscribeIn{port, static_cast<std::uint16_t>(64 + number(4))});
      case 3: {
        al::SaJoinIn in;
        in.port = port;
        in.mgid = SaWorld::mgid(static_cast<std::uint8_t>(1 + number(3)));
        in.join_state = static_cast<std::uint8_t>(number(9));
        in.may_create = happens(70);
        return client.send(al::SaCode::Join, in);
      }
      case 4: return client.send(al::SaCode::WaitEvent, al::SaHandleIn{handle()});
      default: return client.send(al::SaCode::Destroy, al::SaHandleIn{handle()});
    }
  }

  std::mt19937 random_;
  bool has_changes_;  // of ports and HCAs
  SaWorld w_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::size_t succeeded_ = 0;
};

unsigned setting(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST(KernelRequestsRandom, NoOrderOfRequestsBreaksTheServices) {
  const unsigned first = setting("SOFTIB_FIRST_SEED", 1);
  const unsigned seeds = setting("SOFTIB_SEEDS", IB_ADDRESS_SANITIZER != 0 ? 5 : 20);
  std::size_t succeeded = 0;
  for (unsigned seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("repeat with SOFTIB_FIRST_SEED=" + std::to_string(seed) + " SOFTIB_SEEDS=1");
    RandomRequests requests(seed);
    requests.run(1500);
    succeeded += requests.succeeded();
  }
  EXPECT_GT(succeeded, 50 * seeds) << "hardly anything has happened";
}

}  // namespace
}  // namespace ib::services::test
