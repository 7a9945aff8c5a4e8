// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamsWorld: an SaWorld with the stream service, an operating system that is made up, and the
// sessions of programs.
#pragma once

#include "hca/layout/shm_lock.h"
#include "sa_world.h"
#include "services/rdma_cm/addresses/sa_routes.h"
#include "services/rdma_cm/connector/cm_connector.h"
#include "services/streams/stream_names.h"
#include "services/streams/stream_service.h"
#include "streams/end_setup.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ib::services::test {

using platform::NativeHandle;
using platform::TcpName;
using verbs::control::StreamAddress;
using verbs::control::StreamCode;

// Descriptors are numbers that are counted.
class FakeStreamHost final : public platform::StreamHost {
 public:
  Result<Links> make_links(std::uint64_t stream, std::string& reason) override {
    if (has_no_descriptors) {
      reason = "no descriptors";
      return Status::TooManyHandles;
    }
    Links links;
    for (std::uint32_t end = 0; end < 2; ++end) {
      links[end] = make();
      names_[links[end].get()] = {stream, end};
    }
    return links;
  }
  bool is_link_open(std::uint64_t stream, std::uint32_t end) override {
    ++looks;
    for (const auto& [handle, name] : names_) {
      if (name == std::pair{stream, end} && open().contains(handle)) return true;
    }
    return false;
  }
  platform::Knock knock(const NativeHandle& tcp, const TcpName& remote,
                        const TcpName& source) override {
    EXPECT_TRUE(tcp.valid());
    platform::Knock knock = next;
    knock.local = source;
    if (source == TcpName{}) knock.local.address = remote.address;
    knock.local.port = ++last_port_;
    knock.remote = remote;
    knock.family = 2;
    return knock;
  }
  std::unique_ptr<Watch> watch(const NativeHandle& tcp, std::function<void()> on_end) override {
    struct One final : Watch {
      One(FakeStreamHost& the_host, int the_handle) : host(the_host), handle(the_handle) {}
      ~One() override { host.watched.erase(handle); }
      One(const One&) = delete;
      One& operator=(const One&) = delete;
      FakeStreamHost& host;
      int handle;
    };
    watched[tcp.get()] = std::move(on_end);
    return std::make_unique<One>(*this, tcp.get());
  }
  std::vector<bool> are_accepted(std::span<const platform::TcpPair> connections) override {
    ++table_reads;
    std::vector<bool> accepted;
    for (const platform::TcpPair& one : connections) {
      accepted.push_back(foreign_ports.contains(one.client.port));
    }
    return accepted;
  }
  void reset(NativeHandle tcp) override {
    EXPECT_TRUE(tcp.valid());
    EXPECT_FALSE(watched.contains(tcp.get()));
    ++resets;
  }
  // The listener of all connections that nobody has claimed is closed.
  void end_tcp() {
    const auto all = watched;
    for (const auto& [handle, on_end] : all) on_end();
  }

  static NativeHandle make() {
    static int last = 5000;
    open().insert(++last);
    return {last, [](int handle) { EXPECT_EQ(open().erase(handle), 1u); }};
  }
  static std::set<int>& open() {
    static std::set<int> all;
    return all;
  }

  platform::Knock next;
  bool has_no_descriptors = false;
  int resets = 0;
  int looks = 0;
  int table_reads = 0;
  std::set<std::uint16_t> foreign_ports;  // of clients whose connection some process has accepted
  std::map<int, std::function<void()>> watched;

 private:
  std::uint16_t last_port_ = 40000;
  std::map<int, std::pair<std::uint64_t, std::uint32_t>> names_;
};

inline TcpName tcp_name(const verbs::Gid& ip, std::uint16_t port) {
  TcpName name;
  name.address = ip;
  name.port = port;
  return name;
}
inline constexpr std::uint16_t kPort = 5000;
inline const TcpName kAnyIpv4 = tcp_name(verbs::ipv4_gid(0), kPort);

class StreamsWorld : public SaWorld {
 public:
  explicit StreamsWorld(verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand)
      : SaWorld(link_layer),
        connector(service, StreamService::service_ids()),
        routes(*client, bench.executor) {
    StreamServiceOptions options;
    options.random = [this] { return ++random_ * 2654435761u; };
    options.on_refused = [this](const StreamRefusal& refusal) { refusals.push_back(refusal); };
    streams.emplace(StreamService::Parts{system, bench.fabric, connector, routes, host},
                    std::move(options));
    bench.core().on_process_ended = [this](std::uint64_t session, std::uint32_t slot) {
      if (streams) streams->on_process_ended(session, slot);
    };
    bench.tree->set_removal_hooks({[this](const fabric::Hca& hca, std::function<void()> go) {
                                     streams->let_go(hca, [this, &hca, go = std::move(go)] {
                                       gsi->let_go(hca, std::move(go));
                                     });
                                   },
                                   [this](const fabric::Hca& hca) {
                                     gsi->let_back(hca);
                                     streams->let_back(hca);
                                   }});
    handles_ = FakeStreamHost::open().size();
  }
  ~StreamsWorld() {
    if (streams) close_streams();
    EXPECT_EQ(FakeStreamHost::open().size(), handles_) << "descriptors were not closed";
    bench.core().on_process_ended = {};
    bench.tree->set_removal_hooks({[this](const fabric::Hca& hca, std::function<void()> go) {
                                     gsi ? gsi->let_go(hca, std::move(go)) : go();
                                   },
                                   [](const fabric::Hca&) {}});
  }
  void close_streams() {
    bool is_closed = false;
    streams->close([&] { is_closed = true; });
    EXPECT_TRUE(comes([&] { return is_closed; }, std::chrono::seconds(5)));
    streams.reset();
  }
  // An address of a node.
  TcpName at(std::size_t i, std::uint16_t port = kPort) {
    return tcp_name(node(i).addresses.front().ip, port);
  }

  FakeStreamHost host;
  rdma_cm::CmConnector connector;
  rdma_cm::SaRoutes routes;
  std::optional<StreamService> streams;
  std::vector<StreamRefusal> refusals;

 private:
  std::uint32_t random_ = 0;
  std::size_t handles_ = 0;
};

// A request of a program that may pend.
template <class In, class Out>
struct StreamRequest {
  In in{};
  Out out{};
  Outcome outcome;
  bool is_done() const { return outcome.is_done(); }
  Status status() const { return outcome.irp.status; }
  const std::string& reason() const { return outcome.irp.reason; }
  NativeHandle take_link() { return std::move(outcome.irp.out_handles[0]); }
};
using ConnectRequest = StreamRequest<verbs::control::StreamConnectIn, verbs::control::StreamOut>;
using AcceptRequest = StreamRequest<verbs::control::StreamAcceptIn, verbs::control::StreamOut>;
using OpenRequest = StreamRequest<verbs::control::StreamNameIn, verbs::control::StreamOut>;
using GrowRequest = StreamRequest<verbs::control::StreamNameIn, verbs::control::StreamRingOut>;
struct Nothing {};

// A process that is attached to node `node`.
class Program {
 public:
  Program(StreamsWorld& w, std::size_t node)
      : world(w),
        client_{++last_session(), static_cast<std::uint32_t>(100 + last_session()), 0, {}},
        zero_(w.bench.root->device(), 0, client_, nullptr) {
    Outcome created;
    io::IrpRef create = created.start();
    zero_.open(created.irp);
    io::call_driver(w.bench.root->device(), std::move(create));
    EXPECT_TRUE(w.comes([&] { return created.is_done(); }));
    zero_.end(created.irp);
    verbs::control::AttachIn in;
    put_text(in.node, w.node(node).name);
    put_text(in.program, "test");
    verbs::control::AttachOut out;
    Outcome attached;
    io::IrpRef attach = attached.start();
    attached.irp.code = static_cast<std::uint32_t>(verbs::control::Code::Attach);
    attached.irp.in = bytes_of(in);
    attached.irp.out = room_of(out);
    EXPECT_TRUE(zero_.begin(attached.irp));
    io::call_driver(w.bench.root->device(), std::move(attach));
    EXPECT_TRUE(attached.is_done());
    EXPECT_EQ(attached.irp.status, Status::Ok) << attached.irp.reason;
    zero_.end(attached.irp);
    slot = out.slot;
  }
  ~Program() { end(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Its connection to softibd closes; what it had open stays open.
  void end() {
    if (std::exchange(is_over_, true)) return;
    world.bench.root->disconnect(zero_.object());
    Outcome closed;
    for (io::Irp* irp : std::exchange(under_way_, {})) irp->cancel();
    settle();
    zero_.close(closed.start());
    auto close = zero_.take_close();
    if (!close) {
      ADD_FAILURE() << "requests are under way";
      std::abort();
    }
    io::call_driver(world.bench.root->device(), *std::move(close));
    EXPECT_TRUE(world.comes([&] { return closed.is_done(); }));
    zero_.end(closed.irp);
  }

  template <class In, class Out>
  void begin(StreamCode code, StreamRequest<In, Out>& request, NativeHandle handle = {}) {
    io::IrpRef irp = request.outcome.start();
    irp->requestor_mode = io::RequestorMode::User;
    irp->code = static_cast<std::uint32_t>(code);
    irp->in = bytes_of(request.in);
    irp->out = room_of(request.out);
    irp->in_handles[0] = std::move(handle);
    EXPECT_TRUE(zero_.begin(request.outcome.irp));
    under_way_.push_back(&request.outcome.irp);
    io::call_driver(world.streams->device(), std::move(irp));
    settle();
  }
  // Waits for it.
  template <class In, class Out>
  Status run(StreamCode code, StreamRequest<In, Out>& request, NativeHandle handle = {}) {
    begin(code, request, std::move(handle));
    EXPECT_TRUE(wait(request)) << "a request is lost";
    return request.status();
  }
  template <class In, class Out>
  bool wait(StreamRequest<In, Out>& request) {
    const bool done = world.comes([&] { return request.is_done(); }, std::chrono::seconds(20));
    settle();
    return done;
  }

  Status listen(const TcpName& name, StreamCode code = StreamCode::Listen) {
    StreamRequest<verbs::control::StreamListenIn, Nothing> request;
    request.in.local = address_of(name);
    return run(code, request);
  }
  Status unlisten(const TcpName& name) { return listen(name, StreamCode::Unlisten); }
  void begin_connect(ConnectRequest& request, const TcpName& to) {
    request.in.remote = address_of(to);
    begin(StreamCode::Connect, request, FakeStreamHost::make());
  }
  Status connect(ConnectRequest& request, const TcpName& to) {
    begin_connect(request, to);
    EXPECT_TRUE(wait(request)) << "a connection is lost";
    return request.status();
  }
  // Accepts the connection that the other program has made.
  void begin_accept(AcceptRequest& request, const TcpName& client, const TcpName& server) {
    request.in.local = address_of(server);
    request.in.remote = address_of(client);
    begin(StreamCode::Accept, request);
  }
  Status accept(AcceptRequest& request, const ConnectRequest& other) {
    begin_accept(request, name_of(other.out.local), name_of(other.out.remote));
    EXPECT_TRUE(wait(request));
    return request.status();
  }

  StreamsWorld& world;
  std::uint32_t slot = 0;

 private:
  static std::uint64_t& last_session() {
    static std::uint64_t last = 0;
    return last;
  }
  // The file is told of those that are back.
  void settle() {
    std::erase_if(under_way_, [this](io::Irp* irp) {
      if (irp->status == Status::Pending) return false;
      zero_.end(*irp);
      return true;
    });
  }

  io::Client client_;
  io::ClientFile zero_;
  std::vector<io::Irp*> under_way_;
  bool is_over_ = false;
};

// Both programs of a stream, and their links.
struct Connected {
  ConnectRequest connect;
  AcceptRequest accept;
  NativeHandle client_link;
  NativeHandle server_link;
  Connected(Program& client, Program& server, const TcpName& to) {
    EXPECT_EQ(client.connect(connect, to), Status::Ok) << connect.reason();
    client_link = connect.take_link();
    EXPECT_TRUE(client_link.valid());
    EXPECT_EQ(server.accept(accept, connect), Status::Ok) << accept.reason();
    server_link = accept.take_link();
    EXPECT_TRUE(server_link.valid());
  }
  streams::SharedEnd& end(StreamsWorld& w, std::uint32_t which) const {
    const std::uint64_t place = which == 0 ? connect.out.offset : accept.out.offset;
    streams::SharedEnd* found = streams::find_end(w.bench.arena(), place);
    IB_ASSERT(found != nullptr);
    return *found;
  }
  void close() {
    client_link.reset();
    server_link.reset();
  }
};

}  // namespace ib::services::test
