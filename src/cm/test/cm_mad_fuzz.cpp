// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Any MAD in any state: two communication managers whose consumers make any call, whose MADs are
// delivered, lost, repeated or changed, and a stranger that sends what it likes.
//
// Each step takes a byte of the input or a few. Nobody gets more than the limits; events belong to
// connections that exist; when all is destroyed, nothing is left after a while.
#include "base/fuzz_input.h"
#include "cm/engine.h"
#include "cm/messages/format.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace ib::cm {
namespace {

constexpr std::uint64_t kService = 0x0000'0000'0106'1d2f;
constexpr std::size_t kKeptMads = 32;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

Config config_of(std::uint64_t guid) {
  Config config;
  config.ca_guid = guid;
  config.seed = guid;
  config.limits.connections = 64;
  config.limits.connections_of_peer = 48;
  config.limits.pending = 16;
  config.limits.pending_of_peer = 8;
  config.limits.backlog = 8;
  config.limits.sidr_exchanges = 16;
  config.limits.kept_answers = 4;
  config.limits.longest_wait = std::chrono::seconds(1);
  return config;
}

Gid gid_of(unsigned side) {
  return verbs::make_gid(0xfe80'0000'0000'0000, side + 1);
}

struct Side {
  explicit Side(unsigned n) : number(n), engine(config_of(n + 1)) {
    const auto listener = engine.listen({.service_id = kService});
    require(listener.has_value(), "nobody else listens");
    PortFacts facts;
    facts.lid = static_cast<std::uint16_t>(n + 1);
    facts.gids = {gid_of(n)};
    engine.set_port(facts);
  }
  unsigned number;
  Engine engine;
  std::vector<ConnectionId> connections;  // that the consumer has
  std::vector<SidrId> sidr;
};

class Storm {
 public:
  explicit Storm(FuzzInput& input) : input_(input), sides_{{Side(0), Side(1)}} {}

  void run() {
    for (unsigned steps = 0; steps < 400 && !input_.is_over(); ++steps) {
      Side& side = sides_[input_.byte() & 1];
      switch (input_.byte() % 8) {
        case 0: connect(side); break;
        case 1:
        case 2: call(side); break;
        case 3:
        case 4: deliver(); break;
        case 5: change(side); break;
        case 6: invent(side); break;
        case 7: pass(std::chrono::microseconds(std::int64_t{1} << input_.byte() % 21)); break;
      }
      collect();
      check(side);
    }
    finish();
  }

 private:
  struct Sent {
    unsigned to = 0;
    mad::Mad mad{};
  };

  MadAddress address(unsigned local) const {
    MadAddress address;
    address.local_lid = static_cast<std::uint16_t>(local + 1);
    address.remote_lid = static_cast<std::uint16_t>(2 - local);
    return address;
  }
  Path path_from(unsigned side) {
    Path path;
    path.sgid = gid_of(side);
    path.dgid = gid_of(1 - side);
    path.slid = static_cast<std::uint16_t>(side + 1);
    path.dlid = static_cast<std::uint16_t>(2 - side);
    path.packet_lifetime = input_.byte() % 16;
    return path;
  }

  void connect(Side& side) {
    ConnectRequest request;
    request.service_id = kService + input_.byte() % 2;
    request.primary = path_from(side.number);
    if (input_.byte() % 4 == 0) request.alternate = path_from(side.number);
    request.qpn = input_.byte();
    request.max_cm_retries = input_.byte() % 4;
    request.remote_cm_response_timeout = input_.byte() % 32;
    request.local_cm_response_timeout = input_.byte() % 32;
    request.peer_to_peer = input_.byte() % 4 == 0;
    const auto id = side.engine.connect(request, now_);
    if (id) side.connections.push_back(*id);
    if (input_.byte() % 4 != 0) return;
    SidrRequest sidr;
    sidr.service_id = kService;
    sidr.path = path_from(side.number);
    const auto asked = side.engine.resolve_sidr(sidr, now_);
    if (asked) side.sidr.push_back(*asked);
  }

  void call(Side& side) {
    if (side.connections.empty()) return;
    const std::size_t index = input_.byte() % side.connections.size();
    const ConnectionId id = side.connections[index];
    Engine& engine = side.engine;
    Status status = Status::Ok;
    switch (input_.byte() % 12) {
      case 0: status = engine.accept(id, {.qpn = 0x100u + input_.byte()}, now_); break;
      case 1: status = engine.establish(id, {}, now_); break;
      case 2: status = engine.reject(id, {}, now_); break;
      case 3: status = engine.delay(id, input_.byte() % 34, {}, now_); break;
      case 4: status = engine.disconnect(id, {}, now_); break;
      case 5: status = engine.confirm_disconnect(id, {}, now_); break;
      case 6: status = engine.data_has_arrived(id, now_); break;
      case 7: status = engine.load_alternate_path(id, path_from(side.number), {}, now_); break;
      case 8: status = engine.answer_alternate_path(id, {}, now_); break;
      case 9: status = engine.path_has_migrated(id); break;
      case 10:
        engine.destroy(id, now_);
        side.connections.erase(side.connections.begin() + static_cast<std::ptrdiff_t>(index));
        break;
      case 11:
        for (const SidrId each : std::exchange(side.sidr, {})) {
          if (input_.byte() % 2 == 0) status = engine.answer_sidr(each, {.qpn = 7}, now_);
          engine.destroy(each, now_);
        }
        break;
    }
    require(status != Status::NotFound, "what the consumer has not destroyed exists");
  }

  void deliver() {
    if (mads_.empty()) return;
    const std::size_t index = input_.byte() % mads_.size();
    const Sent sent = mads_[index];
    if (input_.byte() % 4 != 0) mads_.erase(mads_.begin() + static_cast<std::ptrdiff_t>(index));
    if (input_.byte() % 8 == 0) return;  // lost
    sides_[sent.to].engine.receive(sent.mad, address(sent.to), now_);
  }
  // A copy with a few other bytes.
  void change(Side& side) {
    if (mads_.empty()) return;
    Sent sent = mads_[input_.byte() % mads_.size()];
    for (unsigned i = 0; i < 1u + input_.byte() % 4; ++i) {
      sent.mad[input_.byte()] = static_cast<std::byte>(input_.byte());
    }
    side.engine.receive(sent.mad, address(side.number), now_);
  }
  // The header is right, the rest is the input's; IDs may be those of a connection.
  void invent(Side& side) {
    mad::MadHeader header;
    header.base_version = 1;
    header.mgmt_class = kCmClass;
    header.class_version = input_.byte() % 16 == 0 ? input_.byte() : kCmClassVersion;
    header.method = input_.byte() % 16 == 0 ? input_.byte() : kSend;
    header.transaction_id = input_.byte();
    header.attribute = static_cast<std::uint16_t>(0x10 + input_.byte() % 12);
    mad::Mad mad{};
    std::memcpy(mad.data(), &header, sizeof header);
    for (std::size_t at = sizeof header; at < sizeof header + 110; ++at) {
      mad[at] = static_cast<std::byte>(input_.byte());
    }
    if (!side.connections.empty()) {
      const ConnectionId id = side.connections[input_.byte() % side.connections.size()];
      const auto info = side.engine.query(id);
      require(info.has_value(), "a consumer's connection exists");
      const std::array<Be32, 2> ids{info->remote_comm_id, info->local_comm_id};
      std::memcpy(mad.data() + sizeof header, &ids, sizeof ids);
      const Be24 qpn = info->local_qpn;
      std::memcpy(mad.data() + sizeof header + 8, &qpn, sizeof qpn);
    }
    side.engine.receive(mad, address(side.number), now_);
  }

  void pass(Duration time) {
    now_ += time;
    for (Side& side : sides_) side.engine.on_time(now_);
    for (Side& side : sides_) {
      const auto deadline = side.engine.deadline();
      require(!deadline || *deadline > now_, "on_time() leaves no deadline behind");
    }
  }

  void collect() {
    for (Side& side : sides_) {
      while (const auto mad = side.engine.poll_mad()) {
        if (mads_.size() == kKeptMads) mads_.erase(mads_.begin());
        mads_.push_back({mad->to.remote_lid == 1 ? 0u : 1u, mad->mad});
      }
      while (const auto event = side.engine.poll_event()) take(side, *event);
    }
  }
  void take(Side& side, const Event& event) {
    if (const auto* request = std::get_if<RequestReceived>(&event)) {
      if (request->listener) side.connections.push_back(request->id);
    } else if (const auto* sidr = std::get_if<SidrRequested>(&event)) {
      side.sidr.push_back(sidr->id);
    }
  }
  void check(Side& side) {
    require(side.engine.connection_count() <= 64, "connections have a limit");
    require(side.engine.sidr_count() <= 16, "exchanges have a limit");
    for (const ConnectionId id : side.connections) {
      const auto info = side.engine.query(id);
      require(info.has_value(), "a consumer's connection exists until it is destroyed");
      require(info->local_comm_id == static_cast<std::uint32_t>(id), "an ID stays the same");
    }
  }

  void finish() {
    for (Side& side : sides_) {
      for (const ConnectionId id : side.connections) side.engine.destroy(id, now_);
      for (const SidrId id : side.sidr) side.engine.destroy(id, now_);
      side.connections.clear();
      side.sidr.clear();
    }
    for (unsigned i = 0; i < 200; ++i) pass(std::chrono::seconds(1));
    for (Side& side : sides_) {
      require(!side.engine.poll_event().has_value(), "nobody has anything");
      require(side.engine.connection_count() == 0, "no connection is left");
      require(side.engine.sidr_count() == 0, "no exchange is left");
      require(!side.engine.deadline().has_value(), "no deadline is left");
    }
  }

  FuzzInput& input_;
  std::array<Side, 2> sides_;
  std::vector<Sent> mads_;
  Instant now_{std::chrono::hours(1)};
};

}  // namespace
}  // namespace ib::cm

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ib::FuzzInput input(data, size);
  const auto storm = std::make_unique<ib::cm::Storm>(input);
  storm->run();
  return 0;
}
