// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the random test of this folder: processes with random actions: open, send requests, close,
// end, and die at any point.
#pragma once

#include "drivers/test/child_driver_test.h"
#include "drivers/test/client_sessions_test.h"
#include "drivers/test/world_chaos_test.h"

#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace ib::drivers::test {

class RandomProcesses {
 protected:
  using Client = Sessions::Client;
  using File = Sessions::File;

  explicit RandomProcesses(unsigned seed)
      : random_(seed),
        drivers_([this] { return pick(8); }),
        bench_(0, drivers_.options()),
        sessions_(bench_),
        memory_(bench_, [this](unsigned n) { return pick(n); }) {
    drivers_.load_on(bench_.executor);
    tool_ = &sessions_.connect();
    for (int i = 0; i < 3; ++i) begin_process();
  }

  // --- chance and time ---

  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  template <class T>
  T* one_of(const std::vector<T*>& all) {
    return all.empty() ? nullptr : all[pick(static_cast<unsigned>(all.size()))];
  }

  void run(Duration span) {
    constexpr int kMostSteps = 1'000'000;
    const Instant until = bench_.executor.now() + span;
    int steps = 0;
    while (steps < kMostSteps && bench_.executor.step(until)) ++steps;
    ASSERT_LT(steps, kMostSteps) << "something goes round and round";
    bench_.executor.advance(until - bench_.executor.now());
  }
  void pass_time() {
    static constexpr unsigned kMost[] = {100, 100, 3000, 3000, 100'000, 3'000'000};
    run(std::chrono::microseconds(pick(kMost[pick(6)])));
  }
  // --- processes ---

  Client* some_process() {
    std::vector<Client*> all;
    for (const auto& client : sessions_.clients) {
      if (client->is_open() && client.get() != tool_) all.push_back(client.get());
    }
    return one_of(all);
  }
  File* some_file(Client& client) {
    std::vector<File*> all;
    client.for_files([&](File& file) {
      if (file.is_open()) all.push_back(&file);
    });
    return one_of(all);
  }
  static bool has_room(const Client& client) { return client.flights.size() < 60; }

  void begin_process() {
    if (sessions_.clients.size() > 6) return;
    Client& client = sessions_.connect();
    if (pick(8) == 0) return;  // a tool, or a connection that only waits for events
    control::AttachIn in;
    put_text(in.node, pick(2) == 0 ? "node0" : "node1");
    put_text(in.program, "random");
    sessions_.send(client, *client.zero, {Code::Attach}, bytes_of(in));
    open_in(client);
  }
  void open_file() {
    if (Client* client = some_process(); client != nullptr) open_in(*client);
  }
  void open_in(Client& client) {
    const fabric::Node* node = bench_.fabric.find_node(client.who.node);
    if (client.who.node.empty() || client.files.size() > 4 || !has_room(client)) return;
    const fabric::Hca& hca = node->hcas[pick(static_cast<unsigned>(node->hcas.size()))];
    std::string reason;
    const auto device = bench_.tree->resolve(node->name, "\\Device\\" + hca.name, reason);
    if (device) sessions_.open(client, **device, hca, pulling_[&hca] > 0);
  }
  void close_file() {
    Client* client = some_process();
    File* file = client != nullptr ? some_file(*client) : nullptr;
    if (file != nullptr) sessions_.close(*client, *file);
  }
  void end_process() {
    if (Client* client = some_process(); client != nullptr) end(*client);
  }
  void kill_process() {
    if (Client* client = some_process(); client != nullptr) kill(*client);
  }
  // In order: its threads may finish their work requests.
  void end(Client& client) { sessions_.end(client); }
  void kill(Client& client) {
    memory_.die_in_the_middle(client);
    bench_.host.alive.erase(client.who.pid);
    sessions_.end(client);
    memory_.expect_no_lock_of(client);
  }
  void cancel_request() {
    std::vector<Sessions::Flight*> all;
    for (const auto& client : sessions_.clients) {
      for (Sessions::Flight& flight : client->flights) {
        if (flight.irp.major != io::Major::Close) all.push_back(&flight);
      }
    }
    if (Sessions::Flight* flight = one_of(all); flight != nullptr) flight->irp.cancel();
  }
  void enter_or_leave() {
    if (Client* client = some_process(); client != nullptr && client->attached && pick(2) == 0) {
      memory_.enter(*client);
    } else {
      memory_.leave_some();
    }
  }

  // --- requests ---

  // Mostly about objects that the file has.
  template <std::size_t N>
  void ask(Client& client, File& file, const Shape (&shapes)[N]) {
    if (!has_room(client)) return;
    Shape shape = shapes[pick(N)];
    for (int i = 0; i < 3 && shape.named != kNone; ++i) {
      if (!book_of(client, file, shape.named).all(shape.named, true).empty()) break;
      shape = shapes[pick(N)];
    }
    send(client, file, shape);
  }
  void ask_hca() {
    Client* client = some_process();
    File* file = client != nullptr ? some_file(*client) : nullptr;
    if (file != nullptr) ask(*client, *file, kHcaRequests);
  }
  void ask_root() {
    Client* client = some_process();
    if (client == nullptr) return;
    ask(*client, *client->zero, kRootRequests);
  }
  void send(Client& client, File& file, const Shape& shape) {
    std::array<std::uint8_t, 96> bytes;
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    FuzzInput in(bytes.data(), bytes.size());
    const Choice choose{in, [&](Kind kind) { return some_handle(client, file, kind, shape.code); },
                        [&] { return some_qpn(shape.code); }};
    const bool of_root = &file == client.zero;
    auto buffer = of_root ? sensible_root_request(shape, choose) : sensible_request(shape, choose);
    if (shape.code == Code::ModifyQp && pick(4) == 0) {
      auto modify = read_as<control::ModifyQpIn>(buffer);
      modify.attr.pkey_index = 1;  // perhaps that of a partition
      buffer = bytes_of(modify);
    } else if (shape.code == Code::RegMr && pick(4) != 0) {
      auto region = read_as<control::RegMrIn>(buffer);
      region.access |= verbs::access::kLocalWrite;  // remote access needs it
      buffer = bytes_of(region);
    } else if (shape.code == Code::DetachMcast) {
      leave_a_group(file, buffer);
    }
    sessions_.send(client, file, shape, std::move(buffer));
  }
  static void leave_a_group(const File& file, std::vector<std::byte>& buffer) {
    auto detach = read_as<control::McastIn>(buffer);
    for (const std::uint32_t qp : file.book.all(Kind::Qp, true)) {
      const Held& held = *file.book.find({Kind::Qp, qp});
      if (held.groups.empty()) continue;
      detach.qp = qp;
      std::tie(detach.mgid, detach.mlid) = *held.groups.begin();
    }
    buffer = bytes_of(detach);
  }
  static const Book& book_of(const Client& client, const File& file, Kind kind) {
    return kind == kChannel || kind == kBacking ? client.zero->book : file.book;
  }
  // Returns mostly a handle that the file has; else one that it had, perhaps one of another file,
  // or none.
  std::uint32_t some_handle(const Client& client, const File& file, Kind kind, Code code) {
    const Book& book = book_of(client, file, kind);
    const unsigned dice = pick(40);
    if (dice > 37) return dice == 38 ? control::kNoIndex : pick(12);
    std::vector<std::uint32_t> own = book.all(kind, dice != 0);
    if (code == Code::AttachMcast || code == Code::DetachMcast) {
      std::erase_if(own, [&](std::uint32_t handle) { return !may_join_group(handle); });
    }
    if (own.empty()) return control::kNoIndex;
    return own[pick(static_cast<unsigned>(own.size()))];
  }
  bool may_join_group(std::uint32_t handle) {
    const Qp* qp = bench_.core().qps.find_handle(handle);
    return qp != nullptr && qp->type == verbs::QpType::Ud;
  }
  std::uint32_t some_qpn(Code code) {
    std::vector<Qp*> all;
    bench_.core().qps.for_each([&](Qp& qp) {
      if (code != Code::OpenQp || qp.type == verbs::QpType::XrcRecv) all.push_back(&qp);
    });
    const Qp* qp = one_of(all);
    return qp != nullptr ? qp->qpn : 0x123456;
  }
  // The first requests of a program.
  void populate() {
    Client* client = some_process();
    File* file = client != nullptr ? some_file(*client) : nullptr;
    if (file == nullptr) return;
    if (pick(3) == 0) send(*client, *client->zero, shape_of(Code::CreateChannel));
    static constexpr Code kCodes[] = {Code::AllocPd,   Code::CreateCq,   Code::CreateCq,
                                      Code::RegMr,     Code::AllocDm,    Code::OpenXrcd,
                                      Code::CreateSrq, Code::CreateQp,   Code::CreateQp,
                                      Code::CreateQp,  Code::AttachMcast};
    for (const Code code : kCodes) {
      if (has_room(*client) && file->is_open() && pick(5) != 0) {
        send(*client, *file, shape_of(code));
      }
    }
  }

  struct Place {
    Client* client = nullptr;
    File* file = nullptr;
    std::uint32_t qp = 0;
    std::uint32_t qpn = 0;
  };
  Place some_connectable() {
    Place place;
    place.client = some_process();
    place.file = place.client != nullptr ? some_file(*place.client) : nullptr;
    if (place.file == nullptr) return place;
    for (const std::uint32_t handle : place.file->book.all(Kind::Qp, true)) {
      const Qp& qp = *bench_.core().qps.find_handle(handle);
      if (qp.type != verbs::QpType::Rc && qp.type != verbs::QpType::Uc) continue;
      place.qp = handle;
      place.qpn = qp.qpn;
      if (pick(2) == 0) break;
    }
    return place;
  }
  void connect_pair() {
    const Place a = some_connectable();
    const Place b = some_connectable();
    if (a.qpn == 0 || b.qpn == 0) return;
    connect(a, b);
    connect(b, a);
  }
  void connect(const Place& from, const Place& to) {
    namespace m = verbs::qp_attr;
    control::ModifyQpIn in;
    in.index = from.qp;
    in.attr.port = 1;
    in.attr.dest_qpn = to.qpn;
    in.attr.av.dlid = to.file->hca->ports[0].lid;
    in.attr.av.port = 1;
    in.attr.path_mtu = verbs::Mtu::B4096;
    in.attr.timeout = static_cast<std::uint8_t>(pick(20));
    const auto go = [&](verbs::QpState state, std::uint32_t mask) {
      if (!has_room(*from.client) || !from.file->is_open()) return;
      in.attr.state = state;
      in.mask = m::kState | mask;
      sessions_.send(*from.client, *from.file, shape_of(Code::ModifyQp), bytes_of(in));
    };
    const bool rc = bench_.core().qps.find_handle(from.qp)->type == verbs::QpType::Rc;
    go(verbs::QpState::Reset, 0);
    go(verbs::QpState::Init, m::kPort | m::kPkeyIndex | m::kAccessFlags);
    go(verbs::QpState::Rtr, m::kAv | m::kPathMtu | m::kDestQpn | m::kRqPsn |
                                (rc ? m::kMaxDestRdAtomic | m::kMinRnrTimer : 0));
    go(verbs::QpState::Rts,
       m::kSqPsn | (rc ? m::kTimeout | m::kRetryCnt | m::kRnrRetry | m::kMaxQpRdAtomic : 0));
  }

  std::mt19937 random_;
  ChildDrivers drivers_;
  Bench bench_;
  Sessions sessions_;
  Chaos memory_;
  Client* tool_ = nullptr;                     // sends the requests about devices
  std::map<const fabric::Hca*, int> pulling_;  // requests under way
};

}  // namespace ib::drivers::test
