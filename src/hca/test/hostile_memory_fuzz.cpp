// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Garbage in device memory: between any two work requests of a process, another one writes anything
// anywhere into the tables and rings. The process may get wrong answers; it must not crash, hang or
// touch its own memory outside of its registered regions.
//
// The first byte of the input chooses the path into the other process's memory, the link layer, and
// whether datagrams may have several packets.
// Each further byte (or a few) is a step: a scribble, a post, progress, serving bounces.
#include "base/fuzz_input.h"
#include "hca/test/poster_bench_test.h"
#include "verbs/gid.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace {

using namespace ib;
using namespace ib::hca;
using verbs::QpType;
using verbs::WrOpcode;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// The memory of a process: a region in the middle of pages that must not be touched, between pages
// that cannot be touched. That of the other process is here too, since what it serves for this one
// must not leave its regions either.
class GuardedMemory {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kRegion = 6000;
  static constexpr std::size_t kBefore = 1000;

  GuardedMemory() {
    void* space = ::mmap(nullptr, 4 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(space != MAP_FAILED, "mmap");
    base_ = static_cast<std::byte*>(space);
    require(::mprotect(base_ + kPage, 2 * kPage, PROT_READ | PROT_WRITE) == 0, "mprotect");
    std::memset(base_ + kPage, kCanary, 2 * kPage);
  }
  ~GuardedMemory() { (void)::munmap(base_, 4 * kPage); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* region() const { return base_ + kPage + kBefore; }
  void check() const {
    for (std::size_t i = 0; i < 2 * kPage; ++i) {
      if (i >= kBefore && i < kBefore + kRegion) continue;
      require(base_[kPage + i] == std::byte{kCanary}, "memory outside of the region was written");
    }
  }

 private:
  static constexpr unsigned char kCanary = 0xc5;
  std::byte* base_;
};

// The choices of the first byte.
struct Setup {
  Path path = Path::Auto;
  verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
  bool takes_large = false;

  static Setup read(FuzzInput& in) {
    const std::uint8_t byte = in.byte();
    return {static_cast<Path>(byte & 3),
            (byte & 4) != 0 ? verbs::LinkLayer::Ethernet : verbs::LinkLayer::InfiniBand,
            (byte & 8) != 0};
  }
  bool is_ethernet() const { return link_layer == verbs::LinkLayer::Ethernet; }
};

class World {
 public:
  explicit World(const Setup& setup)
      : setup_(setup),
        plane_(memory_.arena(), host_, 0, setup.path),
        peer_plane_(memory_.arena(), host_, 1, setup.path) {
    make_port();
    for (const std::uint32_t cq : {0u, 1u, 2u}) memory_.make_cq(cq, cq == 0 ? 0 : 1, 64, 60);
    const QpType types[] = {QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcSend};
    for (std::uint32_t i = 0; i < 4; ++i) make_pair(2 + 2 * i, types[i]);
    make_srq();
    make_keys();
    // The other process's service thread, for as long as this one waits.
    host_.on_relax = [this] { peer_plane_.serve_bounces(); };
    list_targets();
  }

  void step(FuzzInput& in) {
    const std::uint8_t dice = in.byte();
    if (dice < 130) return scribble(in);
    if (dice < 220) return post(in);
    if (dice < 240) return progress(in);
    if (dice < 250) return serve();
    poll();
  }
  void check() const {
    mine_.check();
    theirs_.check();
  }

 private:
  static constexpr std::uint16_t kLid = 7;
  static constexpr std::uint16_t kGroupLid = 0xc001;
  static constexpr std::uint8_t kIpGid = 2;  // where an Ethernet port has its IPv4 address
  static constexpr std::uint32_t kDatagramPeer = 7;

  static std::uint64_t at(const std::byte* p) { return std::bit_cast<std::uint64_t>(p); }

  // The way to the port itself, or to a group.
  verbs::AddressVector way(bool by_gid, bool by_ip, bool to_group) const {
    verbs::AddressVector av;
    const auto lid = to_group ? kGroupLid : kLid;
    av.dlid = setup_.is_ethernet() ? std::uint16_t{0} : lid;
    av.is_global = by_gid;
    av.sgid_index = by_ip ? kIpGid : std::uint8_t{0};
    av.dgid = to_group ? group_ : verbs::Gid(memory_.arena().port(0)->gids[av.sgid_index]);
    return av;
  }

  void make_port() {
    const Arena& arena = memory_.arena();
    PortEntry& port = *arena.port(0);
    port.link_layer.store(setup_.link_layer);
    if (setup_.takes_large) port.mtu.store(verbs::Mtu::B256);
    port.pkeys[0].store(0xffff);
    port.gids[0] = verbs::make_gid(0xfe80000000000000, 0x1112131415161718);
    if (setup_.is_ethernet()) {
      port.lid = 0;
      port.gids[kIpGid] = verbs::ipv4_gid(0x0a000001);
    } else {
      arena.lid(kLid)->store(1);
    }
    for (const std::uint8_t place : {std::uint8_t{0}, kIpGid}) {
      const verbs::Gid gid = port.gids[place];
      if (!verbs::is_zero(gid)) arena.gid_head(gid_chain(gid)).store(1 + gid_entry(0, place));
    }
    auto* member = new (arena.mcast(0)) McastEntry;
    member->mgid = group_;
    member->mlid = kGroupLid;
    member->qpn.store(kDatagramPeer);
    arena.mcast_by_gid(mcast_chain(group_)).store(1);
    arena.mcast_by_lid(mcast_chain(kGroupLid)).store(1);
    arena.mcast_count().store(1);
  }

  // A queue pair of this process and, with the next number, that of the other one.
  void make_pair(std::uint32_t qpn, QpType type) {
    const bool is_xrc = type == QpType::XrcSend;
    QpEntry& own = memory_.make_qp(qpn, 0, qpn + 1, 0, type);
    QpEntry& peer = memory_.make_qp(qpn + 1, 1, qpn, 1, is_xrc ? QpType::XrcRecv : type);
    for (QpEntry* each : {&own, &peer}) {
      each->id.lid = setup_.is_ethernet() ? std::uint16_t{0} : kLid;
      each->connection.address = way(setup_.is_ethernet(), setup_.is_ethernet(), false);
    }
    if (is_xrc) peer.id.xrcd = 4;
    const bool takes_large = setup_.takes_large && type == QpType::Ud;
    peer.id.takes_large = takes_large;
    for (std::uint32_t r = 0; r < 8; ++r) {
      memory_.post_receive(peer, r,
                           {{at(theirs_.region()), 2000, 0x300}, {at(theirs_.region()), 9, 0x300}});
    }
    RequesterConfig config;
    config.qp = qpn;
    config.type = type;
    config.pd = 1;
    config.send_cq = 0;
    config.max_wr = 8;
    config.max_sge = 4;
    config.max_inline = 128;
    config.takes_large = takes_large;
    requesters_.push_back(std::make_unique<Requester>(plane_, config));
    requesters_.back()->set_limits({8, 1, 1, 16});
  }

  void make_srq() {
    auto* srq = new (memory_.arena().srq(1)) SrqEntry;
    srq->id.owner_slot = 1;
    srq->id.pd = 1;
    srq->id.slots = 16;
    srq->id.stride = receive_stride(4);
    srq->id.ring = memory_.allocate(16ull * srq->id.stride);
    srq->id.xrcd = 4;
    srq->id.cq = 2;
    srq->id.srqn = 1;
    srq->id.generation.store(1);
    srq->producer.tail.store(10);
  }

  void make_keys() {
    constexpr std::uint64_t kBytes = GuardedMemory::kRegion;
    BenchArena::cache_key(plane_, 0x200, mine_.region(), kBytes);
    memory_.make_key(0x200, 0, mine_.region(), kBytes);
    for (const std::uint32_t key : {0x300u, 0x400u}) {
      BenchArena::cache_key(peer_plane_, key, theirs_.region(), kBytes);
      memory_.make_key(key, 1, theirs_.region(), kBytes);
    }
    auto* window = new (memory_.arena().key(5)) KeyEntry;
    window->id.key.store(0x500);
    window->id.pd = 1;
    window->id.kind = KeyKind::Window2;
    host_.reach.accessible.push_back({at(theirs_.region()), kBytes});
    if (setup_.path == Path::ProcessVm || setup_.path == Path::Bounce) return;
    host_.backing = theirs_.region();
    host_.backing_size = kBytes;
    adopt(0x300);
    // With Auto a process meets both kinds.
    if (setup_.path == Path::Adopted) adopt(0x400);
  }
  void adopt(std::uint32_t key) {
    auto& adopted = memory_.arena().key(key_index(key))->adopted;
    adopted.address = at(theirs_.region());
    adopted.length = GuardedMemory::kRegion;
    adopted.backing = 3;
    adopted.backing_generation = 1;
  }

  void add(void* from, std::size_t bytes) {
    targets_.push_back({static_cast<std::byte*>(from), bytes});
  }
  void list_targets() {
    const Arena& arena = memory_.arena();
    for (std::uint32_t qp = 2; qp < 10; ++qp) add(arena.qp(qp), sizeof(QpEntry));
    for (std::uint32_t cq = 0; cq < 3; ++cq) {
      add(arena.cq(cq), sizeof(CqEntry));
      add(arena.heap(arena.cq(cq)->id.ring, 64 * sizeof(Cqe)), 64 * sizeof(Cqe));
    }
    add(arena.srq(1), sizeof(SrqEntry));
    for (std::uint32_t key = 2; key < 6; ++key) add(arena.key(key), sizeof(KeyEntry));
    for (std::uint32_t qp = 3; qp < 10; qp += 2) {
      add(arena.heap(arena.qp(qp)->geometry.rq_ring, 16ull * receive_stride(4)),
          16ull * receive_stride(4));
    }
    for (const std::uint32_t slot : {0u, 1u}) {
      add(arena.slot(slot), 256);
      for (std::uint32_t i = 0; i < 3; ++i) add(arena.bounce(slot, i), 64);
    }
    add(arena.port(0), sizeof(PortEntry));
    add(arena.mcast(0), 2 * sizeof(McastEntry));
    add(&arena.mcast_count(), 4);
    add(&arena.header(), sizeof(ArenaHeader));
  }

  void scribble(FuzzInput& in) {
    const std::span<std::byte>& target = targets_[in.byte() % targets_.size()];
    const std::size_t offset = in.number(2) % target.size();
    const std::uint8_t kind = in.byte();
    const std::uint64_t values[] = {
        0,     1,       2,     ~std::uint64_t{0},  place::kHeap,
        0x300, 0x200,   0x500, at(mine_.region()), at(mine_.region()) - 64,
        kNone, 1u << 31};
    const std::uint64_t value =
        (kind & 0x80) != 0 ? in.number(8) : values[(kind >> 3 & 15) % std::size(values)];
    const std::size_t width =
        std::min<std::size_t>(std::size_t{1} << (kind & 3), target.size() - offset);
    std::memcpy(target.data() + offset, &value, width);
  }

  void post(FuzzInput& in) {
    static constexpr WrOpcode kOpcodes[] = {WrOpcode::Send,           WrOpcode::SendWithImm,
                                            WrOpcode::RdmaWrite,      WrOpcode::RdmaWriteWithImm,
                                            WrOpcode::RdmaRead,       WrOpcode::AtomicCmpSwap,
                                            WrOpcode::AtomicFetchAdd, WrOpcode::LocalInv,
                                            WrOpcode::BindMw,         WrOpcode::SendWithInv,
                                            WrOpcode::AtomicWrite,    WrOpcode::Flush};
    const std::uint8_t which = in.byte();
    const std::uint8_t shape = in.byte();
    SendWqe wqe;
    wqe.opcode = kOpcodes[in.byte() % std::size(kOpcodes)];
    Sge sge[2] = {
        {at(mine_.region()) + shape % 64, static_cast<std::uint32_t>(in.number(2) % 3000), 0x200},
        {at(mine_.region()) + 3000, static_cast<std::uint32_t>(in.byte()), 0x200}};
    const bool is_atomic =
        wqe.opcode == WrOpcode::AtomicCmpSwap || wqe.opcode == WrOpcode::AtomicFetchAdd;
    if (is_atomic) sge[0].length = 8;
    wqe.sge = sge;
    wqe.num_sge = is_atomic ? 1 : shape % 3;
    wqe.flags = verbs::send_flag::kSignaled;
    wqe.inline_data = shape >= 200 && wqe.opcode != WrOpcode::RdmaRead && !is_atomic;
    wqe.rkey = (which & 0x40) != 0 ? 0x400 : 0x300;
    wqe.imm = 0x500;
    wqe.remote_address = at(theirs_.region()) + (shape & 7) * 8;
    const bool to_group = (which & 0x20) != 0;
    wqe.remote_qpn = to_group ? 0xffffffu : kDatagramPeer;
    wqe.remote_srqn = 1;
    // Without a GID nothing is reached on Ethernet, and that is the rarer case there.
    wqe.av = way(which >> 7 != setup_.is_ethernet(), (which & 0x10) != 0, to_group);
    wqe.window = 5;
    wqe.bind_region = 2;
    wqe.bind_address = at(mine_.region());
    wqe.bind_length = 100;
    wqe.bind_access = verbs::access::kRemoteWrite;
    wqe.bind_rkey = 0x500 | (which & 1);
    const OpScope scope(plane_);
    (void)requesters_[which % 4]->post(wqe);
  }

  void progress(FuzzInput& in) {
    host_.time += std::chrono::milliseconds(in.byte());
    const OpScope scope(plane_);
    for (const auto& requester : requesters_) (void)requester->progress();
  }
  void serve() {
    const OpScope scope(plane_);
    BounceServer server(memory_.arena(), host_, 0, plane_.local_keys());
    for (std::uint32_t i = 0; i < kBouncesPerSlot; ++i) server.serve(*memory_.arena().bounce(0, i));
  }
  void poll() {
    for (const auto& requester : requesters_) {
      std::uint64_t wr_id = 0;
      for (std::uint32_t position = 0; position < 16; ++position) {
        (void)requester->polled(position, wr_id);
      }
    }
  }

  const Setup setup_;
  const verbs::Gid group_ = verbs::make_gid(0xff12601bffff0000, 0x00000001e0000001);
  BenchArena memory_;
  BenchHost host_;
  GuardedMemory mine_;
  GuardedMemory theirs_;
  MemoryPlane plane_;
  MemoryPlane peer_plane_;
  std::vector<std::unique_ptr<Requester>> requesters_;
  std::vector<std::span<std::byte>> targets_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int kSteps = 60;
  FuzzInput in(data, size);
  World world(Setup::read(in));
  for (int i = 0; i < kSteps && !in.is_over(); ++i) world.step(in);
  world.check();
  return 0;
}
