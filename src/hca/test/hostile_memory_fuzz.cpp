// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Garbage in device memory: between any two work requests of a process, another one writes anything
// anywhere into the tables and rings. The process may get wrong answers; it must not crash, hang or
// touch its own memory outside of its registered regions.
//
// Of the input each byte (or a few) is a step: a scribble, a post, progress, serving bounces.
#include "base/fuzz_input.h"
#include "hca/test/poster_bench_test.h"

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

// The process's own memory: a region in the middle of pages that must not be touched, between pages
// that cannot be touched.
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

class World {
 public:
  World() : theirs_(8192), plane_(memory_.arena(), host_, 0, Path::Auto) {
    for (const std::uint32_t cq : {0u, 1u, 2u}) memory_.make_cq(cq, cq == 0 ? 0 : 1, 64, 60);
    const QpType types[] = {QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcSend};
    for (std::uint32_t i = 0; i < 4; ++i) {
      const QpType other = types[i] == QpType::XrcSend ? QpType::XrcRecv : types[i];
      memory_.make_qp(2 + 2 * i, 0, 3 + 2 * i, 0, types[i]);
      QpEntry& peer = memory_.make_qp(3 + 2 * i, 1, 2 + 2 * i, 1, other);
      if (types[i] == QpType::XrcSend) peer.id.xrcd = 4;
      for (std::uint32_t r = 0; r < 8; ++r) {
        memory_.post_receive(peer, r,
                             {{at(theirs_.data()), 2000, 0x300}, {at(theirs_.data()), 9, 0x300}});
      }
      RequesterConfig config;
      config.qp = 2 + 2 * i;
      config.type = types[i];
      config.pd = 1;
      config.send_cq = 0;
      config.max_wr = 8;
      config.max_sge = 4;
      config.max_inline = 128;
      requesters_.push_back(std::make_unique<Requester>(plane_, config));
      requesters_.back()->set_limits({8, 1, 1, 16});
    }
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
    BenchArena::cache_key(plane_, 0x200, mine_.region(), GuardedMemory::kRegion);
    memory_.make_key(0x200, 0, mine_.region(), GuardedMemory::kRegion);
    memory_.make_key(0x300, 1, theirs_.data(), theirs_.size());
    memory_.make_key(0x400, 1, theirs_.data(), theirs_.size());
    auto* window = new (memory_.arena().key(5)) KeyEntry;
    window->id.key.store(0x500);
    window->id.pd = 1;
    window->id.kind = KeyKind::Window2;
    host_.accessible.push_back({at(theirs_.data()), theirs_.size()});
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
  void check() const { mine_.check(); }

 private:
  static std::uint64_t at(const std::byte* p) { return std::bit_cast<std::uint64_t>(p); }

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
                                            WrOpcode::AtomicWrite};
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
    wqe.remote_address = at(theirs_.data()) + (shape & 7) * 8;
    wqe.remote_qpn = (which & 0x20) != 0 ? 0xffffffu : 7;
    wqe.remote_srqn = 1;
    wqe.av.dlid = 7;
    wqe.av.is_global = which >> 7;
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
    for (std::uint32_t i = 0; i < kBouncesPerSlot; ++i)
      plane_.serve_bounce(*memory_.arena().bounce(0, i));
  }
  void poll() {
    for (const auto& requester : requesters_) {
      std::uint64_t wr_id = 0;
      for (std::uint32_t position = 0; position < 16; ++position) {
        (void)requester->polled(position, wr_id);
      }
    }
  }

  BenchArena memory_;
  BenchHost host_;
  GuardedMemory mine_;
  std::vector<std::byte> theirs_;
  MemoryPlane plane_;
  std::vector<std::unique_ptr<Requester>> requesters_;
  std::vector<std::span<std::byte>> targets_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr int kSteps = 60;
  FuzzInput in(data, size);
  World world;
  for (int i = 0; i < kSteps && !in.is_over(); ++i) world.step(in);
  world.check();
  return 0;
}
