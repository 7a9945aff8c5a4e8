// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Kernel clients of the subnet administrator: each operation of al/sa.h, clients that leave, HCAs
// that do; and every request under every condition, as docs/control_matrix.md has it.
#include "base/test/source_files_test.h"
#include "sa_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

namespace ib::services::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(KernelSa, APathIsQueriedOnceAndThenComesFromTheCache) {
  SaWorld w;
  SaClientOf client(w, 0);
  const al::SaPathIn by_gid{1, w.gid(1)};
  ASSERT_EQ(client.query(by_gid), Status::Ok) << client.last_reason;
  EXPECT_FALSE(client.was_at_once);
  EXPECT_EQ(client.path.path.sgid, w.gid(0));
  EXPECT_EQ(client.path.path.dgid, w.gid(1));
  EXPECT_EQ(client.path.path.slid, w.port(0).lid);
  EXPECT_EQ(client.path.path.dlid, w.port(1).lid);
  EXPECT_EQ(client.path.path.port, 1);
  EXPECT_EQ(client.path.mtu, verbs::Mtu::B4096);
  const std::uint64_t sent = w.gsi->counters().sent;
  client.path = {};
  ASSERT_EQ(client.query(by_gid), Status::Ok);
  EXPECT_TRUE(client.was_at_once);
  EXPECT_EQ(client.path.path.dlid, w.port(1).lid);
  EXPECT_EQ(w.gsi->counters().sent, sent);

  al::SaPathIn by_lid;
  by_lid.dlid = w.port(1).lid;
  ASSERT_EQ(client.query(by_lid), Status::Ok) << client.last_reason;
  EXPECT_FALSE(client.was_at_once);
  EXPECT_EQ(client.path.path.dgid, w.gid(1));
  ASSERT_EQ(client.query(by_lid), Status::Ok);
  EXPECT_TRUE(client.was_at_once);
  // The port changes: both are queried again, and the client is told why there is none.
  w.set_port(1, false);
  EXPECT_EQ(client.query(by_gid), Status::NotFound);
  EXPECT_EQ(client.query(by_lid), Status::NotFound);
  EXPECT_THAT(client.last_reason, HasSubstr("node1"));
  w.set_port(1, true);
  EXPECT_EQ(client.query(by_lid), Status::Ok);
}

TEST(KernelSa, AConnectionTakesItsPathAsItComes) {
  SaWorld w;
  CmClient server(w, 1);
  CmClient client(w, 0);
  al::Sa sa(client.ca);
  EXPECT_EQ(client.run([&](io::IrpRef irp) { sa.open(std::move(irp)); }), Status::Ok);
  const al::SaPathIn where{1, w.gid(1)};
  al::SaPath path;
  ASSERT_EQ(client.run([&](io::IrpRef irp) { sa.query_path(where, path, std::move(irp)); }),
            Status::Ok)
      << client.last_reason;
  GetRequest request;
  request.begin(server, server.listen(kService));
  Connect connect;
  connect.in = connect_in(w, 0, 1);
  connect.in.path = path.path;
  connect.in.path_mtu = path.mtu;
  connect.begin(client);
  ASSERT_TRUE(w.comes([&] { return request.is_done(); })) << connect.reason();
  EXPECT_EQ(request.out.path.dlid, w.port(0).lid);
  EXPECT_EQ(request.out.path.rate, path.path.rate);
  EXPECT_EQ(request.out.path_mtu, path.mtu);
  EXPECT_EQ(client.run([&](io::IrpRef irp) { sa.close(std::move(irp)); }), Status::Ok);
  client.close();
}

TEST(KernelSa, AServiceLeadsToItsPortWhileItIsRegistered) {
  SaWorld w;
  SaClientOf server(w, 1);
  SaClientOf client(w, 0);
  al::SaServiceIn in;
  in.service_id = 0x1000'0000'0000'0077;
  ASSERT_EQ(server.register_service(in), Status::Ok) << server.last_reason;
  const al::SaHandle registered = server.last_handle;
  al::SaPathIn where;
  where.service_id = in.service_id;
  ASSERT_EQ(client.query(where), Status::Ok) << client.last_reason;
  EXPECT_EQ(client.path.path.dgid, w.gid(1));
  w.run(5min);  // the lease is renewed
  EXPECT_EQ(client.query(where), Status::Ok);
  EXPECT_FALSE(client.was_at_once);
  EXPECT_EQ(server.destroy(registered), Status::Ok);
  w.run(1s);
  EXPECT_EQ(client.query(where), Status::NotFound);
  EXPECT_THAT(client.last_reason, HasSubstr("no port that is reached"));
  EXPECT_EQ(server.destroy(registered), Status::NotFound);
}

TEST(KernelSa, ADestinationHasOneName) {
  SaWorld w;
  SaClientOf client(w, 0);
  EXPECT_EQ(client.query({}), Status::InvalidParameter);
  EXPECT_EQ(client.query({1, w.gid(1), 5}), Status::InvalidParameter);
  EXPECT_EQ(client.query({3, w.gid(1)}), Status::InvalidParameter);
  EXPECT_THAT(client.last_reason, HasSubstr("no port 3"));
}

TEST(KernelSa, AnEthernetPortHasNoSubnetAdministrator) {
  SaWorld w(verbs::LinkLayer::Ethernet);
  SaClientOf client(w, 0);
  EXPECT_EQ(client.query({1, w.gid(1)}), Status::InvalidParameter);
  EXPECT_THAT(client.last_reason, HasSubstr("InfiniBand port"));
}

TEST(KernelSa, ReportsComeAsEventsAndAreKept) {
  SaWorld w;
  SaClientOf client(w, 0);
  ASSERT_EQ(client.subscribe(), Status::Ok) << client.last_reason;
  const al::SaHandleIn in{client.last_handle};
  Outcome waiting;
  al::SaEvent event;
  client.sa.wait_event(in, event, waiting.start());
  w.run(1s);
  EXPECT_FALSE(waiting.is_done());
  w.set_port(1, false);
  ASSERT_TRUE(w.comes([&] { return waiting.is_done(); }));
  EXPECT_EQ(event.kind, al::SaEventKind::Report);
  EXPECT_EQ(event.trap, 65);  // GID out of service
  EXPECT_EQ(event.subject, w.gid(1));
  w.set_port(1, true);
  w.run(1s);
  EXPECT_EQ(client.run([&](io::IrpRef irp) { client.sa.wait_event(in, event, std::move(irp)); }),
            Status::Ok);
  EXPECT_TRUE(client.was_at_once);
  EXPECT_EQ(event.trap, 64);
  for (int i = 0; i < 200; ++i) {
    w.set_port(1, false);
    w.set_port(1, true);
    w.run(1s);
  }
  int reports = 0;
  while (event.kind == al::SaEventKind::Report) {
    ASSERT_EQ(client.run([&](io::IrpRef irp) { client.sa.wait_event(in, event, std::move(irp)); }),
              Status::Ok);
    ++reports;
  }
  EXPECT_EQ(event.kind, al::SaEventKind::EventsLost);
  EXPECT_EQ(reports, 256);
}

TEST(KernelSa, APortLeavesItsGroupWithTheLastOfAllShares) {
  SaWorld w;
  SaClientOf one(w, 0), other(w, 0);
  ASSERT_EQ(one.join(w.mgid()), Status::Ok) << one.last_reason;
  EXPECT_NE(one.group.handle, 0u);
  EXPECT_GE(one.group.mlid, 0xc000);
  EXPECT_EQ(one.group.qkey, 0x1234567u);
  ASSERT_EQ(one.join(w.mgid()), Status::Ok);
  ASSERT_EQ(other.join(w.mgid()), Status::Ok);
  EXPECT_EQ(other.group.mlid, one.group.mlid);
  EXPECT_EQ(w.held(), 1u);
  EXPECT_EQ(one.destroy(one.group.handle), Status::Ok);
  one.close();
  w.run(1s);
  EXPECT_EQ(w.held(), 1u) << "the other client's share";
  EXPECT_EQ(other.destroy(other.group.handle), Status::Ok);
  w.run(1s);
  EXPECT_EQ(w.held(), 0u);
}

TEST(KernelSa, AClientHasALimitOfWhatItHolds) {
  SaWorld w;
  SaClientOf one(w, 0), other(w, 0);
  Status status = Status::Ok;
  std::size_t joined = 0;
  for (; status == Status::Ok && joined < 5000; ++joined) status = one.join(w.mgid());
  EXPECT_EQ(status, Status::InsufficientResources);
  EXPECT_EQ(joined, 4097u);
  EXPECT_EQ(one.last_reason, "this client has 4096 requests and objects");
  EXPECT_EQ(other.join(w.mgid()), Status::Ok) << other.last_reason;
  EXPECT_EQ(one.destroy(one.group.handle), Status::Ok);
  EXPECT_EQ(one.join(w.mgid()), Status::Ok) << one.last_reason;
}

TEST(KernelSa, APortThatGoesDownLosesItsMembership) {
  SaWorld w;
  SaClientOf client(w, 1);
  ASSERT_EQ(client.join(w.mgid()), Status::Ok) << client.last_reason;
  const al::SaHandleIn in{client.group.handle};
  w.set_port(1, false);
  al::SaEvent event;
  EXPECT_EQ(client.run([&](io::IrpRef irp) { client.sa.wait_event(in, event, std::move(irp)); }),
            Status::Ok);
  EXPECT_EQ(event.kind, al::SaEventKind::MembershipLost);
  EXPECT_EQ(client.destroy(in.handle), Status::Ok);
}

TEST(KernelSa, AClosedClientLeavesNothing) {
  SaWorld w;
  SaClientOf client(w, 1);
  al::SaServiceIn in;
  in.service_id = 0x1000'0000'0000'0077;
  ASSERT_EQ(client.register_service(in), Status::Ok);
  ASSERT_EQ(client.subscribe(sa::trap::kCapabilitiesChanged), Status::Ok);  // none comes
  const al::SaHandleIn subscription{client.last_handle};
  ASSERT_EQ(client.join(w.mgid()), Status::Ok);
  EXPECT_EQ(w.held(), 3u);
  Outcome waiting, asking, joining;
  al::SaEvent event;
  client.sa.wait_event(subscription, event, waiting.start());
  const al::SaPathIn where{1, w.gid(0)};
  al::SaPath path;
  client.sa.query_path(where, path, asking.start());
  al::SaJoinIn join;
  join.mgid = w.mgid(2);
  join.may_create = true;
  al::SaGroup group;
  client.sa.join(join, group, joining.start());
  EXPECT_EQ(client.run([&](io::IrpRef irp) { client.ca.close(std::move(irp)); }),
            Status::DeviceBusy);
  client.close();
  for (const Outcome* each : {&waiting, &asking, &joining}) {
    EXPECT_EQ(each->times, 1);
    EXPECT_TRUE(each->irp.status == Status::Cancelled || each->irp.status == Status::Ok);
  }
  EXPECT_EQ(waiting.irp.status, Status::Cancelled);
  w.run(10s);
  EXPECT_EQ(w.held(), 0u);
}

// --- every request under every condition ---

struct MatrixWorld : SaWorld {
  MatrixWorld() { client = std::make_unique<SaClientOf>(*this, 1); }
  std::unique_ptr<SaClientOf> client;
  al::SaHandle object = 0;
  al::SaPath path;
  al::SaGroup group;
  al::SaEvent event;

  // A report of a port that is not the subnet administrator's.
  void report() {
    for (const bool up : {false, true}) {
      drivers::set_port_state(bench.core(), hca(0).ports[1], up);
      run(1s);
    }
  }
  void subscribed() {
    EXPECT_EQ(client->subscribe(), Status::Ok);
    object = client->last_handle;
  }
};

struct Request {
  al::SaCode code;
  const char* name;
  bool has_out;
  bool needs_object;
  void (*prepare)(MatrixWorld& w);  // may be null
};
constexpr Request kRequests[] = {
    {al::SaCode::QueryPath, "QueryPath (not in the cache)", true, false, nullptr},
    {al::SaCode::QueryPath, "QueryPath (in the cache)", true, false,
     [](MatrixWorld& w) {
       EXPECT_EQ(w.client->query({1, w.gid(0)}), Status::Ok);
     }},
    {al::SaCode::Register, "Register", false, false, nullptr},
    {al::SaCode::Subscribe, "Subscribe", false, false, nullptr},
    {al::SaCode::Join, "Join", true, false, nullptr},
    {al::SaCode::WaitEvent, "WaitEvent (none yet)", true, true,
     [](MatrixWorld& w) { w.subscribed(); }},
    {al::SaCode::WaitEvent, "WaitEvent (one came)", true, true,
     [](MatrixWorld& w) {
       w.subscribed();
       w.report();
     }},
    {al::SaCode::Destroy, "Destroy", false, true, [](MatrixWorld& w) { w.subscribed(); }},
};

// The input of a request. It lives as long as the world.
struct Buffers {
  al::SaPathIn path;
  al::SaServiceIn service;
  al::SaSubscribeIn subscribe;
  al::SaJoinIn join;
  al::SaHandleIn handle;
};

struct Condition {
  const char* title;
  bool while_waiting;
  void (*before)(MatrixWorld& w, Outcome& outcome);  // may be null
  std::size_t cut_in = 0;                            // bytes that the input lacks
  bool small_out = false;
};
void cancel(MatrixWorld&, Outcome& outcome) {
  outcome.irp.cancel();
}
void down(MatrixWorld& w, Outcome&) {
  w.set_port(1, false);
}
void eject(MatrixWorld& w, Outcome&) {
  EXPECT_EQ(w.eject(1), Status::Ok);
}
void close(MatrixWorld& w, Outcome&) {
  EXPECT_EQ(w.client->run([&](io::IrpRef irp) { w.client->sa.close(std::move(irp)); }), Status::Ok);
}
void destroy(MatrixWorld& w, Outcome&) {
  EXPECT_EQ(w.client->destroy(w.object), Status::Ok);
}
constexpr Condition kConditions[] = {
    {"nothing special", false, nullptr},
    {"wrong input size", false, nullptr, 1},
    {"output too small", false, nullptr, 0, true},
    {"port down", false, &down},
    {"HCA removed", false, &eject},
    {"file is closed", false, &close},
    {"cancelled while it waits", true, &cancel},
    {"HCA removed while it waits", true, &eject},
    {"object destroyed while it waits", true, &destroy},
    {"file closed while it waits", true, &close},
};

std::span<const std::byte> input(const Request& request, const MatrixWorld& w, Buffers& buffers) {
  switch (request.code) {
    case al::SaCode::QueryPath:
      buffers.path.dgid = w.bench.fabric.nodes()[0].hcas[0].ports[0].gid();
      return bytes_of(buffers.path);
    case al::SaCode::Register:
      buffers.service.service_id = 0x1000'0000'0000'0077;
      return bytes_of(buffers.service);
    case al::SaCode::Subscribe: return bytes_of(buffers.subscribe);
    case al::SaCode::Join:
      buffers.join.mgid = SaWorld::mgid();
      buffers.join.may_create = true;
      return bytes_of(buffers.join);
    case al::SaCode::WaitEvent:
    case al::SaCode::Destroy: break;
  }
  buffers.handle.handle = w.object;
  return bytes_of(buffers.handle);
}

std::span<std::byte> output(const Request& request, MatrixWorld& w) {
  switch (request.code) {
    case al::SaCode::QueryPath: return room_of(w.path);
    case al::SaCode::Join: return room_of(w.group);
    case al::SaCode::WaitEvent: return room_of(w.event);
    case al::SaCode::Register:
    case al::SaCode::Subscribe:
    case al::SaCode::Destroy: break;
  }
  return {};
}

std::string name_of(Status status) {
  if (status == Status::Ok) return "Ok";
  if (status == Status::Cancelled) return "Cancelled";
  if (status == Status::InvalidParameter) return "InvalidParameter";
  if (status == Status::InvalidState) return "InvalidState";
  return status == Status::DeviceRemoved ? "DeviceRemoved" : status_text(status);
}

std::string outcome_of(const Request& request, const Condition& condition) {
  MatrixWorld w;
  Buffers buffers;
  Outcome outcome;
  if (request.prepare != nullptr) request.prepare(w);
  if (condition.small_out && !request.has_out) return "-";
  if (condition.before == &destroy && !request.needs_object) return "-";
  if (!condition.while_waiting && condition.before != nullptr) condition.before(w, outcome);
  auto in = input(request, w, buffers);
  auto out = output(request, w);
  in = in.first(in.size() - condition.cut_in);
  if (condition.small_out) out = out.first(out.size() - 1);
  w.client->sa.send(request.code, in, out, outcome.start());
  const bool waits = !outcome.is_done();
  if (condition.while_waiting && !waits) return "-";
  if (condition.while_waiting) {
    condition.before(w, outcome);
  } else if (waits && request.code == al::SaCode::WaitEvent) {
    w.set_port(1, true);
    w.run(1s);
    w.report();
  }
  EXPECT_TRUE(w.comes([&] { return outcome.is_done(); }, 60s));
  EXPECT_EQ(outcome.times, 1);
  const std::string status = name_of(outcome.irp.status);
  w.client->close();
  w.run(30s);
  EXPECT_EQ(w.held(), 0u) << "something is left";
  return waits && !condition.while_waiting ? "waits, " + status : status;
}

std::string table() {
  std::string text = "| request |";
  std::string line = "|---|";
  for (const Condition& condition : kConditions) {
    text += fmt::format(" {} |", condition.title);
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const Request& request : kRequests) {
    text += fmt::format("| {} |", request.name);
    for (const Condition& condition : kConditions) {
      SCOPED_TRACE(fmt::format("{}, {}", request.name, condition.title));
      text += fmt::format(" {} |", outcome_of(request, condition));
    }
    text += "\n";
  }
  return text;
}

TEST(KernelSaMatrix, EveryRequestUnderEveryCondition) {
  std::ifstream file(ib::test::kControlMatrix);
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  const std::string actual = table();
  EXPECT_NE(document.find(actual), std::string::npos)
      << "docs/control_matrix.md has other outcomes than these:\n"
      << actual;
}

}  // namespace
}  // namespace ib::services::test
