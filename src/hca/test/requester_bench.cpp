// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The cost of executing a work request in instructions and cache hits, without a second core: one
// thread plays both processes over private memory. End-to-end figures are bench/run's business.
#include "hca/layout/flow.h"
#include "hca/memory/op_scope.h"
#include "hca/poster/requester.h"
#include "hca/queues/cq_producer.h"

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

namespace ib::hca {
namespace {

class QuietHost final : public PosterHost {
 public:
  Instant now() override { return Instant{}; }
  void relax(std::uint32_t) override {}
  Status read_process(const platform::ProcessName&, std::uint64_t, void*, std::size_t) override {
    return Status::AccessDenied;
  }
  Status write_process(const platform::ProcessName&, std::uint64_t, const void*,
                       std::size_t) override {
    return Status::AccessDenied;
  }
  platform::OwnCopy copy_own(void*, const void*, std::size_t) override {
    return platform::OwnCopy::NotNow;
  }
  bool is_accessible(const void*, std::size_t, bool) override { return true; }
  std::byte* map_backing(std::uint32_t, std::uint32_t, std::uint64_t&) override { return nullptr; }
  void kick(std::uint32_t) override {}
  platform::Barriers& barriers() override { return barriers_; }
  void serve_bounces() override {}
  void notify(std::uint32_t) override {}
  void raise(const verbs::control::RaiseEventIn&) override {}
  void trace(const verbs::control::TraceErrorIn&) override {}

 private:
  platform::FullBarriers barriers_;
};

class EndlessFile final : public ArenaFile {
  std::uint64_t query_size() override { return kArenaSpace; }
};

// Queue pair 2 of slot 0 sends to queue pair 3 of slot 1. Buffers are device memory: the "mapped"
// path.
class Pair {
 public:
  Pair() {
    void* space = ::mmap(nullptr, kArenaSpace, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    IB_ASSERT(space != MAP_FAILED);
    base_ = static_cast<std::byte*>(space);
    arena_ = Arena(base_, file_);
    arena_.port(0)->state = verbs::PortState::Active;
    for (std::uint32_t slot : {0u, 1u}) arena_.slot(slot)->live = 1;
    make_cq(0);
    make_cq(1);
    make_qp(2, 0, 3, 0);
    make_qp(3, 1, 2, 1);
    KeyEntry& key = *arena_.key(1);
    key.id.key = 0x100;
    key.id.state = KeyState::Valid;
    key.id.access = 0xf;
    key.id.length = 1 << 20;
    key.id.address = place::kHeap + (8 << 20);
    key.id.owner_slot = 1;
    key.id.kind = KeyKind::DeviceMemory;
    plane_ = std::make_unique<MemoryPlane>(arena_, host_, 0, Path::Auto);
    LocalKey& local = plane_->local_keys().at(2);
    local.length = sizeof buffer_;
    local.address = buffer_;
    local.access = 1;
    local.key = 0x200;
    RequesterConfig config;
    config.qp = 2;
    config.send_cq = 0;
    config.max_wr = 128;
    config.max_sge = 1;
    config.max_inline = 64;
    config.signal_all = true;
    requester_ = std::make_unique<Requester>(*plane_, config);
  }
  ~Pair() { ::munmap(base_, kArenaSpace); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void post(verbs::WrOpcode opcode, std::uint32_t bytes) {
    const Sge sge{0, bytes, 0x200};
    SendWqe wqe;
    wqe.opcode = opcode;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    wqe.rkey = 0x100;
    OpScope scope(*plane_);
    IB_ASSERT(requester_->post(wqe) == Status::Ok);
  }
  void poll(std::uint32_t cq) {
    CqEntry& entry = *arena_.cq(cq);
    const auto* ring = reinterpret_cast<const Cqe*>(base_ + entry.id.ring);
    const std::uint64_t position = entry.consumer.consumer;
    const Cqe& cqe = ring[RingOrder(entry.id.slots).slot(position)];
    IB_ASSERT(cqe.seq == static_cast<std::uint32_t>(position / entry.id.slots) + 1 &&
              cqe.status == 0);
    std::uint64_t wr_id = 0;
    if (cq == 0) (void)requester_->polled(cqe.wqe, wr_id);
    entry.consumer.consumer = position + 1;
  }
  void post_receive(std::uint32_t bytes) {
    QpEntry& qp = *arena_.qp(3);
    const std::uint64_t tail = qp.owner.rq_tail;
    std::byte* at =
        base_ + qp.geometry.rq_ring + std::uint64_t{RingOrder(128).slot(tail)} * receive_stride(1);
    const ReceiveWqe wqe{static_cast<std::uint32_t>(tail & 127), 1, 0};
    const Sge sge{0, bytes, 0x100};
    std::memcpy(at, &wqe, sizeof wqe);
    std::memcpy(at + sizeof wqe, &sge, sizeof sge);
    qp.owner.rq_tail.store(tail + 1, std::memory_order_release);
  }

 private:
  void make_cq(std::uint32_t index) {
    CqEntry& cq = *arena_.cq(index);
    cq.id.generation = 1;
    cq.id.slots = 256;
    cq.id.cqe = 255;
    cq.id.channel = kNone;
    cq.id.ring = place::kHeap + index * (1 << 20);
  }
  void make_qp(std::uint32_t index, std::uint32_t slot, std::uint32_t peer, std::uint32_t cq) {
    auto* qp = new (arena_.qp(index)) QpEntry;
    qp->id.qpn = index;
    qp->id.state = verbs::QpState::Rts;
    qp->id.type = verbs::QpType::Rc;
    qp->id.owner_slot = slot;
    qp->id.access = 0xf;
    qp->connection.dest_qpn = peer;
    qp->connection.dest_port = 0;
    qp->connection.flow = flow::kMemory;
    qp->id.recv_cq = cq;
    qp->id.pkey = 0xffff;
    qp->id.max_dest_rd_atomic = 1;
    qp->geometry.rq_ring = place::kHeap + (4 << 20) + index * (1 << 16);
    qp->geometry.rq_slots = 128;
    qp->geometry.rq_stride = receive_stride(1);
  }

  std::byte* base_ = nullptr;
  EndlessFile file_;
  Arena arena_;
  QuietHost host_;
  std::unique_ptr<MemoryPlane> plane_;
  std::unique_ptr<Requester> requester_;
  std::byte buffer_[65536] = {};
};

void write_and_poll(benchmark::State& state) {
  Pair pair;
  for (auto _ : state) {
    pair.post(verbs::WrOpcode::RdmaWrite, static_cast<std::uint32_t>(state.range(0)));
    pair.poll(0);
  }
}
BENCHMARK(write_and_poll)->Arg(8)->Arg(4096)->Arg(65536);

void read_and_poll(benchmark::State& state) {
  Pair pair;
  for (auto _ : state) {
    pair.post(verbs::WrOpcode::RdmaRead, static_cast<std::uint32_t>(state.range(0)));
    pair.poll(0);
  }
}
BENCHMARK(read_and_poll)->Arg(8);

void send_and_poll(benchmark::State& state) {
  Pair pair;
  const auto bytes = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    pair.post_receive(bytes);
    pair.post(verbs::WrOpcode::Send, bytes);
    pair.poll(0);
    pair.poll(1);
  }
}
BENCHMARK(send_and_poll)->Arg(8);

}  // namespace
}  // namespace ib::hca
