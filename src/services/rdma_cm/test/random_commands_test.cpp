// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every command in every order: programs with several files write commands about ids that exist,
// that they were never told of, and that are others', while events lie unread, are offered, waited
// for and moved, and files, ports and HCAs come and go. A seed that fails is printed with the
// command that repeats it; more seeds: SOFTIB_SEEDS=100000.
#include "base/sanitizer.h"
#include "services/rdma_cm/test/programs_test.h"
#include "verbs/control_rdma_cm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ib::services::rdma_cm {
namespace {

constexpr std::uint16_t kFirstPort = 7471;
constexpr std::uint32_t kPorts = 3;

// A file of one of three processes, two of which are on the same node.
struct Open {
  Open(World& w, std::uint32_t process) : program(w, process % 2, 1 + process) {
    program.is_late = true;
    program.takes_ahead = true;
  }
  Program program;
  OfferWord word;
  std::uint32_t last_offer = 0;
};

class RandomCommands {
 public:
  RandomCommands(unsigned seed, verbs::LinkLayer link_layer) : random_(seed), w_(link_layer) {
    for (int i = 0; i < 5; ++i) open();
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) step();
    for (const auto& file : files_) w_.service.close(file->program.file);
    EXPECT_EQ(w_.service.id_count(), 0u);
    EXPECT_EQ(w_.service.file_count(), 0u);
    for (const auto& file : files_) EXPECT_FALSE(file->word.is_out);
    w_.executor.advance(std::chrono::seconds(10));
  }
  std::size_t events() const { return events_; }
  std::size_t moved() const { return moved_; }
  std::size_t foreign() const { return foreign_; }

 private:
  std::uint32_t number(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_()) % below;
  }
  bool happens(std::uint32_t percent) { return number(100) < percent; }

  void open() { files_.push_back(std::make_unique<Open>(w_, number(3))); }
  Open& any_file() { return *files_[number(static_cast<std::uint32_t>(files_.size()))]; }

  // Of any file, also one whose program was never told.
  std::uint32_t any_id() {
    const std::vector<Listing> all = w_.service.list();
    if (all.empty() || happens(3)) return number(200);
    return all[number(static_cast<std::uint32_t>(all.size()))].id;
  }
  EndpointAddress any_address() {
    const std::uint32_t ip[] = {0, 0x7f000001, 0xef010203, 0x08080808};
    const auto port = static_cast<std::uint16_t>(kFirstPort + number(kPorts));
    const std::uint32_t which = number(8);
    return which < 4 ? Program::at(w_.address(which % 2), port)
                     : Program::at(verbs::ipv4_gid(ip[which - 4]), port);
  }

  void step() {
    Open& file = any_file();
    switch (number(20)) {
      case 0: return reopen(file);
      case 1: return w_.executor.advance(std::chrono::milliseconds(number(1500)));
      case 2: return change_port();
      case 3: return await(file);
      case 4: return migrate(file);
      case 5: return take_offer(file);
      case 6: return notice(file);
      case 7:
      case 8:
      case 9: return take_event(file);
      case 10:
      case 11:
      case 12: return go_on(file);
      default: return command(file);
    }
  }

  void reopen(Open& file) {
    if (happens(60)) return;
    w_.service.close(file.program.file);
    EXPECT_FALSE(file.word.is_out);
    std::erase_if(files_, [&file](const auto& one) { return one.get() == &file; });
    open();
  }
  void change_port() {
    fabric::Hca& hca = w_.fabric.nodes()[number(2)].hcas[0];
    if (happens(10)) return w_.connector.report_gone(hca);
    hca.ports[0].state = happens(70) ? verbs::PortState::Active : verbs::PortState::Down;
    w_.connector.report_ports(hca);
  }
  void await(Open& file) {
    if (happens(50)) return w_.service.end_wait(file.program.file);
    static_cast<void>(w_.service.await_event(file.program.file, [] {}));
  }
  void take_offer(Open& file) {
    if (happens(30)) return w_.service.end_offer(file.word);
    file.word.take(file.last_offer);
  }
  void notice(Open& file) {
    file.program.ahead = {};
    file.program.notice();
    note_offer(file, file.program.ahead);
  }
  // The id of an event belongs to the file that gets it, whatever has happened to it before.
  void take_event(Open& file) {
    const Service::Answer answer = file.program.write(Code::GetEvent, ucma::GetEvent{});
    if (answer.error != Error::None) return;
    ++events_;
    ucma::EventOut event;
    ASSERT_EQ(answer.data.size(), sizeof event);
    std::memcpy(&event, answer.data.data(), sizeof event);
    if (event.event == Event::MulticastJoin || event.event == Event::MulticastError) return;
    const ucma::Query query{0, event.id};
    EXPECT_EQ(file.program.write(Code::Query, query).error, Error::None)
        << "event " << static_cast<unsigned>(event.event) << " of id " << event.id;
  }
  void migrate(Open& file) {
    const Open& from = any_file();
    ucma::MigrateId in;
    in.id = any_id();
    const Service::Answer answer = file.program.write(Code::MigrateId, in, {}, from.program.file);
    if (answer.error != Error::None) return;
    ++moved_;
    EXPECT_EQ(from.program.pid, file.program.pid) << "another process's id has moved";
  }

  // The next step of a program that means well: more connections come about so.
  void go_on(Open& file) {
    for (const Listing& one : w_.service.list()) {
      if (one.pid != file.program.pid || !happens(30)) continue;
      const std::string state = one.state;
      if (state == "idle") return resolve(file, one.id);
      if (state == "address resolved") {
        return write(file, Code::ResolveRoute, ucma::ResolveRoute{one.id, 0});
      }
      if (state == "route resolved") return connect(file, one.id);
      if (state == "REQ received") return accept(file, one.id, true);
      if (state == "REP received") return accept(file, one.id, false);
    }
    create(file);
  }
  void create(Open& file) {
    constexpr PortSpace kSpaces[] = {PortSpace::Tcp, PortSpace::Tcp, PortSpace::Udp, PortSpace::Ib};
    ucma::CreateId in;
    in.uid = number(20);  // 0: it gets no events
    in.ps = static_cast<std::uint16_t>(kSpaces[number(4)]);
    in.qp_type = static_cast<std::uint8_t>(verbs::QpType::Rc);
    write(file, Code::CreateId, in);
  }
  void resolve(Open& file, std::uint32_t id) {
    ucma::ResolveIp in;
    in.id = id;
    write_address(any_address(), in.dst_addr);
    write(file, Code::ResolveIp, in);
  }
  void connect(Open& file, std::uint32_t id) {
    ucma::Connect in;
    in.id = id;
    in.conn_param = Program::param(number(4), std::string(number(80), 'x'));
    write(file, Code::Connect, in);
  }
  void accept(Open& file, std::uint32_t id, bool valid) {
    ucma::Accept in;
    in.id = id;
    in.uid = 1 + number(20);
    in.conn_param = Program::param(number(4), std::string(number(220), 'x'));
    in.conn_param.valid = valid ? 1 : 0;
    write(file, Code::Accept, in);
  }

  void command(Open& file) {
    const std::uint32_t id = any_id();
    switch (number(15)) {
      case 0: return create(file);
      case 1: return destroy(file, id);
      case 2: {
        ucma::BindIp in;
        in.id = id;
        write_address(any_address(), in.addr);
        return write(file, Code::BindIp, in);
      }
      case 3: return resolve(file, id);
      case 4: return write(file, Code::ResolveRoute, ucma::ResolveRoute{id, number(1000)});
      case 5: return write(file, Code::QueryRoute, ucma::Query{0, id});
      case 6: return connect(file, id);
      case 7: return write(file, Code::Listen, ucma::Listen{id, number(4)});
      case 8: return accept(file, id, happens(60));
      case 9: {
        ucma::Reject in;
        in.id = id;
        return write(file, Code::Reject, in);
      }
      case 10: return write(file, Code::Disconnect, ucma::Disconnect{id});
      case 11: {
        constexpr auto kCommEst = static_cast<std::uint32_t>(verbs::EventType::CommEst);
        return write(file, Code::Notify, ucma::Notify{id, kCommEst});
      }
      case 12: {
        ucma::JoinIpMcast in;
        in.id = id;
        in.uid = number(3);
        write_address(Program::at(verbs::ipv4_gid(0xef010200 + number(3)), 0), in.addr);
        return write(file, Code::JoinIpMcast, in);
      }
      case 13: {
        ucma::WriteCmEvent in;
        in.id = id;
        in.event = happens(50) ? ucma::Event::User : ucma::Event::Internal;
        return write(file, Code::WriteCmEvent, in);
      }
      default: {
        ucma::DestroyId in;
        in.id = 1 + number(20);
        return write(file, Code::LeaveMcast, in);
      }
    }
  }
  void destroy(Open& file, std::uint32_t id) {
    ucma::DestroyId in;
    in.id = id;
    write(file, Code::DestroyId, in);
  }

  // Now and then as another process that has the number of the file.
  template <class Body>
  void write(Open& file, Code code, const Body& body) {
    Program& program = file.program;
    if (happens(3)) {
      const std::size_t before = w_.service.id_count();
      program.pid += 100;
      EXPECT_EQ(program.write(code, body).error, Error::Access);
      program.pid -= 100;
      EXPECT_EQ(w_.service.id_count(), before);
      ++foreign_;
      return;
    }
    program.offer = happens(70) ? &file.word : nullptr;
    const Service::Answer answer = program.write(code, body);
    program.offer = nullptr;
    note_offer(file, answer.ahead);
  }
  static void note_offer(Open& file, const AnswersAhead& ahead) {
    verbs::control::RdmaCmAhead head;
    if (ahead.size() < sizeof head) return;
    std::memcpy(&head, ahead.data(), sizeof head);
    if (head.code == verbs::control::kRdmaCmGetEvent) file.last_offer = head.id;
  }

  std::mt19937 random_;
  World w_;
  std::vector<std::unique_ptr<Open>> files_;
  std::size_t events_ = 0;
  std::size_t moved_ = 0;
  std::size_t foreign_ = 0;
};

unsigned setting(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
}

TEST(RdmaCmRandom, NoOrderOfCommandsBreaksTheService) {
  const unsigned first = setting("SOFTIB_FIRST_SEED", 1);
  const unsigned seeds = setting("SOFTIB_SEEDS", IB_ADDRESS_SANITIZER != 0 ? 100 : 1000);
  std::size_t events = 0;
  std::size_t moved = 0;
  std::size_t foreign = 0;
  for (unsigned seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("repeat with SOFTIB_FIRST_SEED=" + std::to_string(seed) + " SOFTIB_SEEDS=1");
    RandomCommands commands(
        seed, seed % 2 == 0 ? verbs::LinkLayer::Ethernet : verbs::LinkLayer::InfiniBand);
    commands.run(400);
    events += commands.events();
    moved += commands.moved();
    foreign += commands.foreign();
  }
  EXPECT_GT(events, seeds) << "hardly anything has happened";
  EXPECT_GT(moved, seeds);
  EXPECT_GT(foreign, seeds);
}

}  // namespace
}  // namespace ib::services::rdma_cm
