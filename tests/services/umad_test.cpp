// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Open umad files over the real queue pairs 1 of two nodes, and queue pairs 0 that the test has.
#include "mad/mgmt_class.h"
#include "services/umad/umad_device.h"
#include "services_world.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;
using verbs::control::UmadCode;
using verbs::control::UmadDone;

constexpr std::uint8_t kClass = 0x09;

// Queue pairs 0: keeps what is sent.
class KeptSmps final : public UmadSubnet {
 public:
  void send(const GsiAddress& to, const mad::Mad& mad) override {
    sent.emplace_back(to, mad);
    if (answers != nullptr) answer(to, mad);
  }
  // In the call, as softib's subnet answers.
  void answer(const GsiAddress& to, const mad::Mad& mad) {
    mad::MadHeader header = header_of(mad);
    header.method = mad::method::kGetResp;
    EXPECT_TRUE(answers->on_smp(to, mad_of(header)));
  }

  std::vector<std::pair<GsiAddress, mad::Mad>> sent;
  UmadService* answers = nullptr;
};

// A program with an open file.
class Program final : public UmadReader {
 public:
  Program(UmadService& service, std::uint32_t port)
      : file(std::make_unique<UmadFile>(service, *this, port, UmadOpener{"program", 1})) {
    EXPECT_EQ(status_of(file->enable_pkey()), Status::Ok);
  }
  static Status status_of(const UmadDone& done) { return static_cast<Status>(done.status); }

  // UmadReader
  bool has_room() const override { return got.size() < room; }
  void deliver(UmadItem item) override { got.push_back(std::move(item)); }
  bool has_gone() const override { return gone; }
  void end() override { ended = true; }

  UmadDone add(std::uint8_t mgmt_class, std::initializer_list<std::uint8_t> methods,
               bool rmpp = false, std::uint8_t qpn = 1) {
    UmadRegisterIn in;
    in.qpn = qpn;
    in.mgmt_class = mgmt_class;
    in.class_version = mgmt_class == mad::mgmt_class::kSubnAdm ? 2 : 1;
    in.oui = {0, 0x14, 5};
    in.rmpp_version = rmpp ? 1 : 0;
    for (const std::uint8_t method : methods) in.methods[method / 32] |= 1u << method % 32;
    return file->add_agent(in);
  }
  Status write(const UmadDone& agent, const GsiAddress& to, std::span<const std::byte> mad,
               std::uint32_t timeout_ms = 0, std::uint32_t retries = 0) {
    UmadHeader header;
    header.id = agent.id;
    header.timeout_ms = timeout_ms;
    header.retries = retries;
    header.qpn = to.remote.qpn;
    header.qkey = verbs::kGsiQkey;
    header.lid = to.remote.lid;
    std::vector<std::byte> bytes(sizeof header + mad.size());
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, mad.data(), mad.size());
    return status_of(file->write(bytes));
  }
  void send(const UmadDone& agent, const GsiAddress& to, std::span<const std::byte> mad,
            std::uint32_t timeout_ms = 0) {
    EXPECT_EQ(write(agent, to, mad, timeout_ms), Status::Ok);
  }
  UmadHeader header(std::size_t i = 0) const {
    UmadHeader header;
    std::memcpy(&header, got.at(i).bytes.data(), sizeof header);
    return header;
  }
  std::span<const std::byte> mad(std::size_t i = 0) const {
    return std::span(got.at(i).bytes).subspan(sizeof(UmadHeader));
  }

  std::unique_ptr<UmadFile> file;
  std::deque<UmadItem> got;
  std::size_t room = 1000;
  bool gone = false;
  bool ended = false;
};

mad::Mad get(std::uint64_t tid = 0x1111'2222, std::uint8_t mgmt_class = kClass,
             std::uint8_t method = mad::method::kGet) {
  const std::uint8_t version = mgmt_class == mad::mgmt_class::kSubnAdm ? 2 : 1;
  return mad_of({1, mgmt_class, version, method, 0, 0, tid, 0x12, 0, 0});
}

class UmadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::uint8_t used : {kClass, mad::mgmt_class::kSubnAdm}) w.emitted.leave_out(used);
    ASSERT_EQ(w.ensure("node0"), Status::Ok);
    ASSERT_EQ(w.ensure("node1"), Status::Ok);
    service.emplace(w.bench.executor, w.bench.fabric, *w.gsi);
    service->set_subnet(&smps);
  }
  void TearDown() override {
    w.run(1ms);
    service.reset();
  }

  ServicesWorld w;
  KeptSmps smps;
  std::optional<UmadService> service;
};

TEST_F(UmadTest, ARequestComesToTheAgentOfItsClassAndTheResponseBack) {
  Program client(*service, w.index(0)), server(*service, w.index(1));
  const UmadDone asking = client.add(kClass, {}), answering = server.add(kClass, {1});
  ASSERT_EQ(client.write(asking, w.address(0, 1), get(), 1000), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return !server.got.empty(); }));
  EXPECT_EQ(server.header().id, answering.id);
  EXPECT_EQ(server.header().status, 0u);
  EXPECT_EQ(server.header().length, 320u);
  EXPECT_EQ(server.header().lid, w.port(0).lid);
  EXPECT_EQ(server.header().qpn, 1u);
  mad::MadHeader header = header_of(server.mad());
  EXPECT_EQ(static_cast<std::uint32_t>(header.transaction_id), 0x1111'2222u);
  header.method = mad::method::kGetResp;
  ASSERT_EQ(server.write(answering, w.address(1, 0), mad_of(header)), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return !client.got.empty(); }));
  EXPECT_EQ(header_of(client.mad()).method, mad::method::kGetResp);
  EXPECT_EQ(client.header().id, asking.id);
  EXPECT_EQ(service->under_way(), 0u);
  server.send(answering, w.address(1, 0), mad_of(header));
  w.run(100ms);
  EXPECT_EQ(client.got.size(), 1u) << "nobody waits for a second response";
}

TEST_F(UmadTest, ARequestWithoutAnAnswerComesBackAsTimedOut) {
  Program client(*service, w.index(0)), server(*service, w.index(1));
  const UmadDone asking = client.add(kClass, {});
  server.add(kClass, {1});
  ASSERT_EQ(client.write(asking, w.address(0, 1), get(), 100, 2), Status::Ok);
  EXPECT_EQ(client.write(asking, w.address(0, 1), get(), 100, 2), Status::InvalidParameter);
  w.run(299ms);
  EXPECT_TRUE(client.got.empty());
  w.run(2ms);
  ASSERT_EQ(client.got.size(), 1u);
  EXPECT_EQ(server.got.size(), 3u) << "it was sent again";
  EXPECT_EQ(client.header().status, kUmadTimedOut);
  EXPECT_EQ(client.mad().size(), sizeof(mad::MadHeader));
  EXPECT_EQ(client.write(asking, w.address(0, 1), get(), 100, 0), Status::Ok);
}

TEST_F(UmadTest, MessagesOfSeveralPacketsAreCutAndPutTogether) {
  Program client(*service, w.index(0)), server(*service, w.index(1));
  const std::uint8_t sa = mad::mgmt_class::kSubnAdm;
  const UmadDone asking = client.add(sa, {}, true);
  const UmadDone answering = server.add(sa, {mad::method::kGetTable}, true);
  ASSERT_EQ(client.write(asking, w.address(0, 1), get(5, sa, mad::method::kGetTable), 1000),
            Status::Ok);
  ASSERT_TRUE(w.comes([&] { return !server.got.empty(); }));
  mad::MadHeader header = header_of(server.mad());
  header.method = mad::method::kGetTableResp;
  mad::Mad first = mad_of(header);
  mad::RmppHeader rmpp;
  rmpp.version = 1;
  rmpp.type = 1;
  rmpp.time_flags = mad::rmpp_flag::kActive;
  mad::set_rmpp_header(first, rmpp);
  std::vector<std::byte> message(first.begin(), first.begin() + 56);
  for (int i = 0; i < 5000; ++i) message.push_back(static_cast<std::byte>(i));
  ASSERT_EQ(server.write(answering, w.address(1, 0), message), Status::Ok);
  ASSERT_TRUE(w.comes([&] { return !client.got.empty(); }));
  EXPECT_EQ(client.header().length, sizeof(UmadHeader) + message.size());
  EXPECT_TRUE(std::ranges::equal(client.mad().subspan(56), std::span(message).subspan(56)));
  w.run(60s);
  EXPECT_EQ(service->under_way(), 0u);
}

TEST_F(UmadTest, OwnRmppOfAProgramPassesAsItIs) {
  Program client(*service, w.index(0)), server(*service, w.index(1));
  const std::uint8_t sa = mad::mgmt_class::kSubnAdm;
  const UmadDone asking = client.add(sa, {});
  server.add(sa, {mad::method::kGetTable});
  mad::Mad packet = get(5, sa, mad::method::kGetTable);
  mad::RmppHeader rmpp;
  rmpp.version = 1;
  rmpp.type = 1;
  rmpp.time_flags = mad::rmpp_flag::kActive;
  rmpp.segment = 2;
  mad::set_rmpp_header(packet, rmpp);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(client.write(asking, w.address(0, 1), packet, 500), Status::Ok) << "no duplicate";
  }
  w.run(100ms);
  ASSERT_EQ(server.got.size(), 2u);
  EXPECT_EQ(mad::rmpp_header_of(server.mad()).segment, 2u);
}

TEST_F(UmadTest, SmpsGoByQueuePairZeroAndMayBeAnsweredInTheCall) {
  Program client(*service, w.index(0));
  const std::uint8_t directed = mad::mgmt_class::kSubnDirected;
  const UmadDone asking = client.add(directed, {}, false, 0);
  GsiAddress to{w.index(0), {}};
  to.remote.lid = 0xffff;
  to.remote.qpn = 0;
  ASSERT_EQ(client.write(asking, to, get(9, directed), 100, 1), Status::Ok);
  EXPECT_EQ(smps.sent.size(), 1u);
  w.run(250ms);
  EXPECT_EQ(smps.sent.size(), 2u);
  ASSERT_EQ(client.got.size(), 1u);
  EXPECT_EQ(client.header().status, kUmadTimedOut);
  smps.answers = &*service;
  ASSERT_EQ(client.write(asking, to, get(9, directed), 100, 1), Status::Ok);
  ASSERT_EQ(client.got.size(), 2u);
  EXPECT_EQ(client.header(1).status, 0u);
  EXPECT_EQ(client.header(1).lid, 0xffffu);
  EXPECT_EQ(service->under_way(), 0u);
}

TEST_F(UmadTest, AnSmpOfAnotherPortIsNobodys) {
  Program manager(*service, w.index(0));
  manager.add(mad::mgmt_class::kSubnLid, {mad::method::kTrap}, false, 0);
  const mad::Mad trap = get(1, mad::mgmt_class::kSubnLid, mad::method::kTrap);
  EXPECT_FALSE(service->on_smp({w.index(1), {}}, trap));
  EXPECT_TRUE(service->on_smp({w.index(0), {}}, trap));
  ASSERT_EQ(manager.got.size(), 1u);
  EXPECT_EQ(manager.header().qpn, 0u);
  mad::Mad response = get(1, mad::mgmt_class::kSubnLid, mad::method::kGetResp);
  EXPECT_FALSE(service->on_smp({w.index(0), {}}, response)) << "no agent has such an id";
}

TEST_F(UmadTest, AgentsOfSoftibdGiveWayToThoseOfAProgram) {
  GsiAgent own;
  own.name = "softibd's";
  own.mgmt_class = kClass;
  own.methods = {mad::method::kGet, mad::method::kSet};
  int served = 0;
  own.on_message = [&](const GsiMessage&) { ++served; };
  std::string reason;
  ASSERT_TRUE(w.gsi->add_agent(std::move(own), reason)) << reason;
  Program client(*service, w.index(0));
  const UmadDone asking = client.add(kClass, {});
  client.send(asking, w.address(0, 1), get());
  w.run(10ms);
  EXPECT_EQ(served, 1);
  {
    Program server(*service, w.index(1));
    server.add(kClass, {mad::method::kGet});
    client.send(asking, w.address(0, 1), get());
    client.send(asking, w.address(0, 1), get(2, kClass, mad::method::kSet), 1000);
    w.run(10ms);
    EXPECT_EQ(server.got.size(), 1u);
    EXPECT_EQ(served, 1);
    ASSERT_EQ(client.got.size(), 1u);
    EXPECT_EQ(header_of(client.mad()).status, mad::mad_status::kMethodNotSupported);
  }
  client.send(asking, w.address(0, 1), get());
  w.run(10ms);
  EXPECT_EQ(served, 2) << "softibd's serves again";
}

TEST_F(UmadTest, WhatDoesNotFitWaitsInOrderAndWhatIsPutBackComesFirst) {
  Program client(*service, w.index(0)), server(*service, w.index(1));
  const UmadDone asking = client.add(kClass, {});
  server.add(kClass, {1});
  server.room = 1;
  for (std::uint64_t tid = 1; tid <= 3; ++tid) client.send(asking, w.address(0, 1), get(tid));
  w.run(10ms);
  ASSERT_EQ(server.got.size(), 1u);
  EXPECT_EQ(server.file->unread(), 2u);
  UmadItem first = std::move(server.got.front());
  server.got.clear();
  server.room = 0;
  server.file->put_back(std::move(first));
  EXPECT_EQ(server.file->unread(), 3u);
  server.room = 3;
  server.file->deliver();
  ASSERT_EQ(server.got.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(static_cast<std::uint32_t>(header_of(server.mad(i)).transaction_id), i + 1);
  }
}

TEST_F(UmadTest, ThoseOfAnAgentThatIsRemovedEndSilently) {
  Program client(*service, w.index(0));
  const UmadDone asking = client.add(kClass, {});
  client.send(asking, w.address(0, 1), get(), 100);
  EXPECT_EQ(service->under_way(), 1u);
  EXPECT_EQ(Program::status_of(client.file->remove_agent(asking.id)), Status::Ok);
  EXPECT_EQ(service->under_way(), 0u);
  w.run(1s);
  EXPECT_TRUE(client.got.empty());
  EXPECT_EQ(Program::status_of(client.file->remove_agent(asking.id)), Status::InvalidParameter);
}

TEST_F(UmadTest, AFileThatIsBeingClosedIsInNobodysWay) {
  Program old(*service, w.index(0)), next(*service, w.index(0));
  old.add(kClass, {1});
  EXPECT_EQ(Program::status_of(next.add(kClass, {1})), Status::InvalidParameter);
  old.gone = true;
  EXPECT_EQ(Program::status_of(next.add(kClass, {1})), Status::Ok);
  EXPECT_TRUE(old.ended);
}

TEST_F(UmadTest, AnHcaThatIsRemovedSafelyEndsTheFilesOfItsPorts) {
  Program there(*service, w.index(1));
  ASSERT_EQ(w.remove(1), Status::Ok);
  w.run(10ms);
  EXPECT_TRUE(there.ended);
}

TEST_F(UmadTest, AnHcaThatGoesEndsTheFilesOfItsPorts) {
  Program here(*service, w.index(0)), there(*service, w.index(1));
  const UmadDone agent = there.add(kClass, {1});
  ASSERT_EQ(w.eject(1), Status::Ok);
  w.run(10ms);
  EXPECT_TRUE(there.ended);
  EXPECT_FALSE(here.ended);
  EXPECT_EQ(there.write(agent, w.address(1, 0), get()), Status::NotFound);
  EXPECT_EQ(Program::status_of(there.add(kClass, {2})), Status::DeviceRemoved);
}

// Requests of random codes and bytes to the device: each ends at once, and nothing is left.
TEST_F(UmadTest, RandomRequestsToTheDevice) {
  UmadDevice device(*service, *w.gsi, w.bench.fabric,
                    [](io::IrpRef irp) { std::move(irp).complete(Status::Ok); });
  std::mt19937 random(20);  // NOLINT(cert-msc51-cpp): the same each time
  const auto any = [&random](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random()) % limit;
  };
  io::Client client{1, 1, 0, {}};
  for (int round = 0; round < 40; ++round) {
    io::FileObject file(device.device(), 1, client, nullptr);
    Program reader(*service, w.index(0));
    verbs::control::OpenUmadIn open;
    open.unit = any(4) == 0 ? 9 : 0;
    open.kind = any(8) == 0 ? verbs::control::UmadKind::Issm : verbs::control::UmadKind::Umad;
    Outcome opened;
    opened.irp.file = &file;
    opened.irp.major = io::Major::Create;
    opened.irp.in = std::as_bytes(std::span(&open, 1));
    opened.irp.parameters.set<UmadReader>(&reader);
    io::call_driver(device.device(), opened.start());
    ASSERT_TRUE(w.comes([&] { return opened.is_done(); }));
    if (opened.irp.status != Status::Ok) continue;
    for (int i = 0; i < 200; ++i) {
      std::vector<std::byte> input(any(3) == 0 ? any(700) : any(2) == 0 ? 28 : 320);
      for (std::byte& byte : input) {
        byte = static_cast<std::byte>(any(3) == 0 ? random() : any(4));
      }
      std::array<std::byte, 64> output{};
      Outcome request;
      request.irp.file = &file;
      request.irp.code = 96 + any(9);
      request.irp.in = input;
      request.irp.out = output;
      io::call_driver(device.device(), request.start());
      EXPECT_TRUE(request.is_done());
    }
    w.run(10ms);
    Outcome closed;
    closed.irp.file = &file;
    closed.irp.major = io::Major::Close;
    io::call_driver(device.device(), closed.start());
    EXPECT_TRUE(closed.is_done());
  }
  w.run(60s);
  EXPECT_EQ(service->under_way(), 0u);
  EXPECT_TRUE(service->files().all().empty());
  EXPECT_EQ(w.port(0).capability_mask & 2, 0u);
}

}  // namespace
}  // namespace ib::services::test
