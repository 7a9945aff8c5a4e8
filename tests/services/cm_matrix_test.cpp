// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every operation of al/cm.h under every condition that it may meet, at dispatch level. The
// outcomes come from a rule, from which the tables of docs/control_matrix.md are written.
#include "base/test/source_files_test.h"
#include "cm_world.h"
#include "drivers/test/generated_part_test.h"
#include "platform/level.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace ib::services::test {
namespace {

using al::CmCode;
using drivers::test::append_table;

constexpr std::uint8_t kLong = 20;  // 4.3 s

enum class Condition {
  Plain,
  CancelledBefore,
  CancelledAfter,
  WrongInput,
  SmallOutput,
  NothingLeft,
  Removed,
  Asleep,
  Closed,
  // While it waits:
  CancelledWhile,
  RemovedWhile,
  SleepWhile,
  DestroyedWhile,
  ClosedWhile,
};
struct Column {
  Condition condition;
  const char* title;
};
constexpr Column kSent[] = {
    {Condition::Plain, "nothing special"},
    {Condition::CancelledBefore, "cancelled before"},
    {Condition::CancelledAfter, "cancelled after"},
    {Condition::WrongInput, "wrong input size"},
    {Condition::SmallOutput, "output too small"},
    {Condition::NothingLeft, "nothing left"},
    {Condition::Removed, "HCA removed"},
    {Condition::Asleep, "HCA asleep"},
    {Condition::Closed, "file is closed"},
};
constexpr Column kWaiting[] = {
    {Condition::CancelledWhile, "cancelled"}, {Condition::RemovedWhile, "HCA removed"},
    {Condition::SleepWhile, "HCA sleeps"},    {Condition::DestroyedWhile, "object destroyed"},
    {Condition::ClosedWhile, "file closed"},
};

enum Property : unsigned {
  kTakes = 1u << 0,  // uses up a listener, a connection or an exchange
  kWaits = 1u << 1,  // for the other side
  kHasOut = 1u << 2,
  kOwn = 1u << 3,        // makes its object itself: nobody can destroy that before
  kNeedsRoom = 1u << 5,  // the other side takes something up when it ends the wait
  kAwaits = 1u << 4,     // parks without a message: cancelled before, it has had no effect either
};

struct World;
struct Op {
  CmCode code;
  const char* name;
  unsigned is;
  // Makes what it needs, and its input.
  std::vector<std::byte> (*prepare)(World& w);
  // The other side acts, so that its wait ends.
  void (*let_go)(World& w) = nullptr;
};

template <class In>
std::vector<std::byte> bytes(const In& in) {
  const auto view = bytes_of(in);
  return {view.begin(), view.end()};
}

cm::Limits few() {
  cm::Limits limits;
  limits.connections = 12;
  limits.listeners = 12;
  limits.sidr_exchanges = 12;
  return limits;
}

// `client` on node 0 sends the request under test; `peer` is on node 1.
struct World : CmWorld {
  World() : CmWorld(verbs::LinkLayer::InfiniBand, few()), peer(*this, 1) {
    client = std::make_unique<CmClient>(*this, 0);
  }
  ~World() {
    client.reset();
    peer.close();
  }

  Pair pair() {
    const Pair made = connect(*client, peer, 0, 1, 0x100, kLong);
    object = made.active;
    other = made.passive;
    return made;
  }
  // A request of the peer for a listener of the client; the client has fetched it if `fetch`.
  void request(al::CmServices services, bool fetch) {
    object = client->listen(kService, services);
    come(services);
    if (!fetch) return;
    get.begin(*client, object);
    EXPECT_TRUE(comes([&] { return get.is_done(); }));
    object = get.out.handle;
  }
  void come(al::CmServices services) {
    if (services == al::CmServices::Datagrams) {
      resolve.in.service_id = kService;
      resolve.in.path = path(1, 0);
      resolve.begin(peer);
    } else {
      from_peer.in = connect_in(*this, 1, 0, 0x300);
      from_peer.in.remote_response_timeout = from_peer.in.local_response_timeout = kLong;
      from_peer.begin(peer);
    }
    run();
  }
  void serve() { object = listener = peer.listen(kService, al::CmServices::Both); }
  // Fetches what came to the peer.
  al::CmHandle fetch() {
    peer_get.begin(peer, listener);
    EXPECT_TRUE(comes([&] { return peer_get.is_done(); }, std::chrono::seconds(60)));
    return peer_get.out.handle;
  }

  CmClient peer;
  std::unique_ptr<CmClient> client;
  al::CmHandle object = 0;    // of the client, that the request is about
  al::CmHandle other = 0;     // the other end
  al::CmHandle listener = 0;  // of the peer
  Connect from_peer;
  Resolve resolve;
  GetRequest get;
  GetRequest peer_get;
  Accept peer_accept;
  WaitEvent peer_event;
  LoadPath load;
};

al::CmMessageIn message(World& w) {
  al::CmMessageIn in;
  in.handle = w.object;
  in.service_timeout = kLong;
  return in;
}
template <class In>
std::vector<std::byte> about(World& w) {
  In in;
  in.handle = w.object;
  return bytes(in);
}
al::CmLoadPathIn load_in(World& w) {
  al::CmLoadPathIn in;
  in.handle = w.object;
  in.path = w.path(0, 1);
  in.path.port = 2;
  in.path.sgid = w.hca(0).ports[1].gid();
  in.path.slid = w.hca(0).ports[1].lid;
  return in;
}
void peer_loads(World& w) {
  al::CmAnswerPathIn in;
  in.handle = w.other;
  w.run();
  EXPECT_EQ(w.peer.run([&](io::IrpRef irp) { w.peer.cm.answer_path(in, std::move(irp)); }),
            Status::Ok);
}
void peer_confirms(World& w) {
  w.run();
  EXPECT_EQ(w.peer.confirm(w.other), Status::Ok);
}

constexpr Op kOps[] = {
    {CmCode::Listen, "Listen", kTakes,
     [](World&) {
       al::CmListenIn in;
       in.service_id = kService;
       return bytes(in);
     }},
    {CmCode::GetRequest, "GetRequest (none yet)", kNeedsRoom | kWaits | kAwaits | kHasOut,
     [](World& w) {
       w.object = w.client->listen(kService);
       return about<al::CmHandleIn>(w);
     },
     [](World& w) { w.come(al::CmServices::Connections); }},
    {CmCode::GetRequest, "GetRequest (one came)", kHasOut | kAwaits,
     [](World& w) {
       w.request(al::CmServices::Connections, false);
       return about<al::CmHandleIn>(w);
     }},
    {CmCode::Connect, "Connect", kTakes | kWaits | kHasOut | kOwn | kAwaits,
     [](World& w) {
       w.serve();
       auto in = connect_in(w, 0, 1);
       in.remote_response_timeout = kLong;
       return bytes(in);
     },
     [](World& w) {
       w.peer_accept.in.handle = w.fetch();
       w.peer_accept.in.qpn = 0x500;
       w.peer_accept.begin(w.peer);
     }},
    {CmCode::Establish, "Establish", 0,
     [](World& w) {
       w.serve();
       w.from_peer.in = connect_in(w, 0, 1);
       w.from_peer.begin(*w.client);
       w.run();
       w.peer_accept.in.handle = w.fetch();
       w.peer_accept.in.qpn = 0x500;
       w.peer_accept.begin(w.peer);
       EXPECT_TRUE(w.comes([&] { return w.from_peer.is_done(); }, std::chrono::seconds(60)));
       w.object = w.from_peer.out.handle;
       return about<al::CmMessageIn>(w);
     }},
    {CmCode::Accept, "Accept", kWaits | kHasOut,
     [](World& w) {
       w.request(al::CmServices::Connections, true);
       al::CmAcceptIn in;
       in.handle = w.object;
       in.qpn = 0x500;
       return bytes(in);
     },
     [](World& w) {
       EXPECT_TRUE(w.comes([&] { return w.from_peer.is_done(); }, std::chrono::seconds(60)));
       EXPECT_EQ(w.peer.establish(w.from_peer.out.handle), Status::Ok);
     }},
    {CmCode::Reject, "Reject", 0,
     [](World& w) {
       w.request(al::CmServices::Connections, true);
       return about<al::CmRejectIn>(w);
     }},
    {CmCode::Delay, "Delay", 0,
     [](World& w) {
       w.request(al::CmServices::Connections, true);
       return bytes(message(w));
     }},
    {CmCode::Disconnect, "Disconnect", kWaits | kHasOut,
     [](World& w) {
       w.pair();
       return about<al::CmMessageIn>(w);
     },
     peer_confirms},
    {CmCode::ConfirmDisconnect, "ConfirmDisconnect", 0,
     [](World& w) {
       const Pair pair = w.pair();
       w.peer_event.in.handle = pair.passive;
       al::CmMessageIn in;
       in.handle = pair.passive;
       w.peer.cm.disconnect(in, w.peer_event.out, w.peer_event.outcome.start());
       w.run();
       return about<al::CmMessageIn>(w);
     }},
    {CmCode::WaitEvent, "WaitEvent (none yet)", kWaits | kAwaits | kHasOut,
     [](World& w) {
       w.pair();
       return about<al::CmHandleIn>(w);
     },
     [](World& w) { EXPECT_EQ(w.peer.destroy(w.other), Status::Ok); }},
    {CmCode::WaitEvent, "WaitEvent (one came)", kHasOut | kAwaits,
     [](World& w) {
       w.pair();
       EXPECT_EQ(w.peer.destroy(w.other), Status::Ok);
       w.run();
       return about<al::CmHandleIn>(w);
     }},
    {CmCode::LoadPath, "LoadPath", kWaits | kHasOut,
     [](World& w) {
       w.pair();
       return bytes(load_in(w));
     },
     peer_loads},
    {CmCode::AnswerPath, "AnswerPath", 0,
     [](World& w) {
       // The client is the passive side here, and the peer offers a path.
       const Pair pair = connect(w.peer, *w.client, 1, 0, 0x600, kLong);
       w.load.in.handle = pair.active;
       w.load.in.path = w.path(1, 0);
       w.load.in.path.port = 2;
       w.load.in.path.sgid = w.hca(1).ports[1].gid();
       w.load.in.path.slid = w.hca(1).ports[1].lid;
       w.load.begin(w.peer);
       w.run();
       w.object = pair.passive;
       return about<al::CmAnswerPathIn>(w);
     }},
    {CmCode::PathMigrated, "PathMigrated", 0,
     [](World& w) {
       w.pair();
       w.load.in = load_in(w);
       w.load.begin(*w.client);
       peer_loads(w);
       EXPECT_TRUE(w.comes([&] { return w.load.is_done(); }));
       return about<al::CmHandleIn>(w);
     }},
    {CmCode::Query, "Query", kHasOut,
     [](World& w) {
       w.pair();
       return about<al::CmQueryIn>(w);
     }},
    {CmCode::Resolve, "Resolve", kTakes | kWaits | kHasOut | kOwn | kAwaits,
     [](World& w) {
       w.serve();
       al::CmResolveIn in;
       in.service_id = kService;
       in.path = w.path(0, 1);
       in.response_timeout = kLong;
       return bytes(in);
     },
     [](World& w) {
       al::CmRespondIn in;
       in.handle = w.fetch();
       EXPECT_EQ(w.peer.run([&](io::IrpRef irp) { w.peer.cm.respond(in, std::move(irp)); }),
                 Status::Ok);
     }},
    {CmCode::Respond, "Respond", 0,
     [](World& w) {
       w.request(al::CmServices::Datagrams, true);
       return about<al::CmRespondIn>(w);
     }},
    {CmCode::Destroy, "Destroy", 0,
     [](World& w) {
       w.pair();
       return about<al::CmHandleIn>(w);
     }},
};

// Of the statuses that there are here.
std::string name_of(Status status) {
  if (status == Status::Ok) return "Ok";
  if (status == Status::Cancelled) return "Cancelled";
  if (status == Status::InvalidParameter) return "InvalidParameter";
  if (status == Status::InvalidState) return "InvalidState";
  if (status == Status::InsufficientResources) return "InsufficientResources";
  return status == Status::DeviceRemoved ? "DeviceRemoved" : status_text(status);
}

std::string expected(const Op& op, Condition condition) {
  const bool waits = (op.is & kWaits) != 0;
  const bool destroys = op.code == CmCode::Destroy;
  const std::string usual = waits ? "waits, Ok" : "Ok";
  switch (condition) {
    case Condition::Plain:
    case Condition::CancelledAfter: return usual;
    // A request that sends a message does not begin; one that is answered at once goes on.
    case Condition::CancelledBefore: return waits || (op.is & kAwaits) != 0 ? "Cancelled" : "Ok";
    case Condition::WrongInput: return "InvalidParameter";
    case Condition::SmallOutput: return (op.is & kHasOut) != 0 ? "InvalidParameter" : "-";
    case Condition::NothingLeft:
      if ((op.is & kNeedsRoom) != 0) return "-";
      return (op.is & kTakes) != 0 ? "InsufficientResources" : usual;
    case Condition::Removed: return destroys ? "Ok" : "DeviceRemoved";
    // The communication manager is awake; its messages get through when the HCA is.
    case Condition::Asleep: return usual;
    case Condition::Closed: return "InvalidState";
    case Condition::CancelledWhile: return waits ? "Cancelled" : "-";
    case Condition::RemovedWhile: return waits ? "later DeviceRemoved" : "-";
    case Condition::SleepWhile: return waits ? "waits, Ok" : "-";
    case Condition::DestroyedWhile: return waits && (op.is & kOwn) == 0 ? "Cancelled" : "-";
    case Condition::ClosedWhile: return waits ? "Cancelled" : "-";
  }
  return "?";
}

// Takes what is left of the client's engine.
void use_up(World& w) {
  for (std::uint64_t id = 0x2000;; ++id) {
    al::CmListenIn in;
    in.service_id = id;
    if (w.client->run([&](io::IrpRef irp) { w.client->cm.listen(in, std::move(irp)); }) !=
        Status::Ok) {
      break;
    }
  }
}

struct Others {
  std::array<Connect, 16> connects;
  std::array<Resolve, 16> resolves;
  void use_up(World& w) {
    for (std::uint32_t i = 0; i < connects.size(); ++i) {
      connects[i].in = connect_in(w, 0, 1, 0x800 + i, kService + 9);
      connects[i].in.remote_response_timeout = 24;
      w.set_port(1, false);
      connects[i].begin(*w.client);
      resolves[i].in.service_id = kService + 9;
      resolves[i].in.path = w.path(0, 1);
      resolves[i].in.response_timeout = 24;
      resolves[i].begin(*w.client);
    }
    w.set_port(1, true);
  }
};

std::string run(const Op& op, Condition condition, bool is_unaligned) {
  Others others;
  World w;
  std::vector<std::byte> in = op.prepare(w);
  alignas(8) std::array<std::byte, 1024> out{};
  if (condition == Condition::NothingLeft) {
    use_up(w);
    others.use_up(w);
  }
  if (condition == Condition::Removed) {
    EXPECT_EQ(w.eject(0), Status::Ok);
  }
  if (condition == Condition::Asleep) w.power(0, io::SystemPower::Sleep);
  if (condition == Condition::Closed) w.client->close();
  if (condition == Condition::WrongInput) in.push_back({});
  std::vector<std::byte> shifted(in.size() + 1);
  std::copy(in.begin(), in.end(), shifted.begin() + 1);
  const auto input = is_unaligned ? std::span<const std::byte>(shifted).subspan(1)
                                  : std::span<const std::byte>(in);
  const std::size_t room = condition == Condition::SmallOutput ? 3 : out.size() - 1;
  const auto output = std::span(out).subspan(is_unaligned ? 1 : 0, room);

  Outcome outcome;
  {
    const LevelGuard dispatch(Level::Dispatch);
    io::IrpRef irp = outcome.start();
    if (condition == Condition::CancelledBefore) irp->cancel();
    w.client->cm.send(op.code, input, output, std::move(irp));
  }
  const bool waited = !outcome.is_done();
  Outcome closed;
  const bool is_while = condition >= Condition::CancelledWhile;
  if (is_while && !waited) return "-";
  if (condition == Condition::CancelledWhile) outcome.irp.cancel();
  if (condition == Condition::SleepWhile) w.power(0, io::SystemPower::Sleep);
  if (condition == Condition::DestroyedWhile) {
    if ((op.is & kOwn) != 0) {
      outcome.irp.cancel();
      return "-";
    }
    EXPECT_EQ(w.client->destroy(w.object), Status::Ok);
  }
  if (condition == Condition::ClosedWhile) {
    w.client->cm.close(closed.start());
    EXPECT_TRUE(closed.is_done());
  }
  std::string how;
  if (condition == Condition::RemovedWhile) {
    EXPECT_FALSE(outcome.is_done());
    EXPECT_EQ(w.eject(0), Status::Ok);
    w.run();
    how = "later ";
  } else if (!outcome.is_done()) {
    w.run(std::chrono::milliseconds(2));
    how = outcome.is_done() ? "later " : "waits, ";
  }
  const bool slept = condition == Condition::Asleep || condition == Condition::SleepWhile;
  if (slept) w.power(0, io::SystemPower::Working);
  if (!outcome.is_done() && op.let_go != nullptr) {
    w.run(std::chrono::seconds(slept ? 6 : 2));  // what was lost is sent again
    op.let_go(w);
  }
  EXPECT_TRUE(w.comes([&] { return outcome.is_done(); }, std::chrono::seconds(60))) << op.name;
  EXPECT_EQ(outcome.times, 1);
  const Status status = outcome.irp.status;
  EXPECT_EQ(outcome.irp.reason.empty(), status == Status::Ok) << outcome.irp.reason;
  EXPECT_TRUE(status == Status::Ok || outcome.irp.out_size == 0);
  if (condition == Condition::CancelledAfter) {
    outcome.irp.cancel();
    EXPECT_EQ(outcome.irp.status, status);
    EXPECT_EQ(outcome.times, 1);
  }
  // Nothing is left when both clients have gone.
  w.client->close();
  w.peer.close();
  EXPECT_TRUE(w.comes([&] { return w.is_over(); }, std::chrono::minutes(5)))
      << w.connections() << " connections are left";
  return how + name_of(status);
}

std::vector<std::string> tables() {
  std::vector<std::string> lines;
  append_table(lines, "### When it is sent", kOps, kSent, expected);
  append_table(lines, "### While it waits", kOps, kWaiting, expected);
  lines.emplace_back();
  return lines;
}

TEST(KernelCmMatrix, OutcomesAreThoseOfTheRule) {
  for (const Op& op : kOps) {
    for (const auto columns : {std::span<const Column>(kSent), std::span<const Column>(kWaiting)}) {
      for (const Column& column : columns) {
        const std::string cell = expected(op, column.condition);
        if (cell == "-") continue;
        SCOPED_TRACE(fmt::format("{}: {}", op.name, column.title));
        EXPECT_EQ(run(op, column.condition, false), cell);
        EXPECT_EQ(run(op, column.condition, true), cell);
      }
    }
  }
}

TEST(KernelCmMatrix, TheDocumentSaysTheSameAsTheRule) {
  drivers::test::GeneratedPart(ib::test::kControlMatrix, "<!-- generated, connections: begin -->",
                               "<!-- generated, connections: end -->",
                               "SOFTIB_WRITE_MATRIX=1 build/dev/test-bin/kernel_cm_test "
                               "--gtest_filter=KernelCmMatrix.TheDocument*")
      .expect(tables());
}

}  // namespace
}  // namespace ib::services::test
