// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For tests and fuzzers: device memory of two processes in one, without softibd. The tables are
// filled in by hand, time stands still until the test moves it, process_vm is a memcpy.
#pragma once

#include "hca/layout/flow.h"
#include "hca/memory/op_scope.h"
#include "hca/poster/requester.h"
#include "hca/test/bench_reach_test.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <vector>

namespace ib::hca {

class BenchHost final : public PosterHost {
 public:
  Instant now() override { return time; }
  void relax(std::uint32_t) override {
    if (relaxing_takes != Duration::zero()) time += relaxing_takes;
    if (on_relax) on_relax();
  }
  Status read_process(const platform::ProcessName& who, std::uint64_t from, void* to,
                      std::size_t n) override {
    return reach.read_process(who, from, to, n);
  }
  Status write_process(const platform::ProcessName& who, std::uint64_t to, const void* from,
                       std::size_t n) override {
    return reach.write_process(who, to, from, n);
  }
  platform::OwnCopy copy_own(void* to, const void* from, std::size_t n) override {
    return reach.copy_own(to, from, n);
  }
  bool is_accessible(const void* at, std::size_t n, bool) override { return !reach.is_gone(at, n); }
  std::byte* map_backing(std::uint32_t, std::uint32_t, std::uint64_t& size) override {
    size = backing_size;
    return backing;
  }
  void kick(std::uint32_t slot) override { kicks.push_back(slot); }
  platform::Barriers& barriers() override { return barriers_; }
  void serve_bounces() override {
    if (on_relax) on_relax();
  }
  void notify(std::uint32_t cq) override {
    notified.push_back(cq);
    if (on_notify) on_notify();
  }
  void raise(const verbs::control::RaiseEventIn& event) override { raised.push_back(event); }
  void trace(const verbs::control::TraceErrorIn& error) override { traced.push_back(error); }

  Instant time{std::chrono::seconds(1)};
  Duration relaxing_takes = std::chrono::microseconds(50);  // zero: for tests with several threads
  BenchReach reach;
  std::function<void()> on_relax;  // what the other process does meanwhile
  std::function<void()> on_notify;
  std::byte* backing = nullptr;  // the only one
  std::uint64_t backing_size = 0;
  std::vector<std::uint32_t> kicks;
  std::vector<std::uint32_t> notified;
  std::vector<verbs::control::RaiseEventIn> raised;
  std::vector<verbs::control::TraceErrorIn> traced;

 private:
  class Counted final : public platform::Barriers {
   public:
    bool join() override { return false; }
    bool joined() const override { return false; }
    void threads() override { std::atomic_thread_fence(std::memory_order_seq_cst); }
    void processes() override {
      std::atomic_thread_fence(std::memory_order_seq_cst);
      count.fetch_add(1);
    }
    std::atomic<std::uint32_t> count{0};
  };
  Counted barriers_;

 public:
  std::uint32_t barriers_passed() const { return barriers_.count.load(); }  // by all processes
};

class BenchFile final : public ArenaFile {
 public:
  explicit BenchFile(std::uint64_t size) : size_(size) {}

 private:
  std::uint64_t query_size() override { return size_; }
  std::uint64_t size_;
};

// Device memory with `heap` bytes of heap; beyond it is nothing, and touching that is a crash.
class BenchArena {
 public:
  static constexpr std::uint64_t kHeapBytes = 16u << 20;

  BenchArena() : file_(place::kHeap + kHeapBytes) {
    void* space =
        ::mmap(nullptr, kArenaSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    IB_ASSERT(space != MAP_FAILED);
    IB_ASSERT(::mprotect(space, place::kHeap + kHeapBytes, PROT_READ | PROT_WRITE) == 0);
    arena_ = Arena(static_cast<std::byte*>(space), file_);
    arena_.header().slots_used.store(2);
    arena_.header().fenced_entries.store(1);
    for (const std::uint32_t slot : {0u, 1u}) {
      arena_.slot(slot)->live.store(1);
      arena_.slot(slot)->words_used.store(
          kThreadsPerSlot);  // tests play threads that are elsewhere
      arena_.slot(slot)->own_pid.store(kBenchPid);
      arena_.slot(slot)->plate_number.store(bench_plate);
      arena_.slot(slot)->plate_address.store(std::bit_cast<std::uint64_t>(&bench_plate));
      arena_.slot(slot)->generation.store(slot + 1);
      arena_.slot(slot)->pid = 100 + slot;
    }
    arena_.port(0)->state.store(verbs::PortState::Active);
    arena_.port(0)->lid = 7;
  }
  ~BenchArena() { (void)::munmap(arena_.base(), kArenaSpace); }
  BenchArena(const BenchArena&) = delete;
  BenchArena& operator=(const BenchArena&) = delete;

  const Arena& arena() const { return arena_; }

  std::uint64_t allocate(std::uint64_t bytes) {
    const std::uint64_t at = next_;
    next_ += (bytes + kLine - 1) / kLine * kLine;
    IB_ASSERT(next_ <= place::kHeap + kHeapBytes);
    return at;
  }
  CqEntry& make_cq(std::uint32_t index, std::uint32_t owner, std::uint32_t slots,
                   std::uint32_t cqe) {
    CqEntry& cq = *new (arena_.cq(index)) CqEntry;
    cq.id.owner_slot = owner;
    cq.id.ring = allocate(std::uint64_t{slots} * sizeof(Cqe));
    cq.id.slots = slots;
    cq.id.cqe = cqe;
    cq.id.generation.store(1);
    return cq;
  }
  QpEntry& make_qp(std::uint32_t qpn, std::uint32_t owner, std::uint32_t peer, std::uint32_t cq,
                   verbs::QpType type = verbs::QpType::Rc) {
    QpEntry& qp = *new (arena_.qp(qp_index(qpn))) QpEntry;
    qp.id.type = type;
    qp.id.pd = 1;
    qp.id.owner_slot = owner;
    qp.id.access = verbs::access::kRemoteAny | verbs::access::kLocalWrite;
    qp.connection.dest_qpn = peer;
    qp.id.recv_cq = cq;
    qp.id.lid = 7;
    qp.connection.address.dlid = 7;
    qp.connection.dest_port = 0;
    qp.connection.flow.store(flow::kMemory);
    qp.id.pkey = 0xffff;
    qp.id.min_rnr_timer = 12;
    qp.id.max_dest_rd_atomic = 16;
    qp.id.generation = 1;
    qp.geometry.rq_slots = 16;
    qp.geometry.rq_stride = receive_stride(4);
    qp.geometry.rq_ring = allocate(16ull * qp.geometry.rq_stride);
    qp.geometry.send_cq = cq;
    qp.id.state.store(verbs::QpState::Rts);
    qp.id.qpn.store(qpn);
    return qp;
  }
  void make_key(std::uint32_t key, std::uint32_t owner, const std::byte* memory,
                std::uint64_t bytes, std::uint32_t access = 0xf) {
    KeyEntry& entry = *new (arena_.key(key_index(key))) KeyEntry;
    entry.id.pd = 1;
    entry.id.access = access;
    entry.id.iova = std::bit_cast<std::uint64_t>(memory);
    entry.id.address = entry.id.iova;
    entry.id.length = bytes;
    entry.id.owner_slot = owner;
    entry.id.kind = KeyKind::Region;
    entry.id.key.store(key);
    entry.id.state.store(KeyState::Valid);
  }
  static void cache_key(MemoryPlane& plane, std::uint32_t key, std::byte* memory,
                        std::uint64_t bytes, std::uint32_t access = 0xf) {
    LocalKey& local = plane.local_keys().at(key_index(key));
    local.pd = 1;
    local.access = access;
    local.iova = std::bit_cast<std::uint64_t>(memory);
    local.length = bytes;
    local.address = memory;
    local.key.store(key);
  }
  // Posts a receive as the owner of a queue pair does.
  void post_receive(QpEntry& qp, std::uint32_t id, const std::vector<Sge>& sge) {
    const std::uint64_t tail = qp.owner.rq_tail.load();
    std::byte* at =
        arena_.heap(qp.geometry.rq_ring, 16ull * qp.geometry.rq_stride) +
        std::uint64_t{RingOrder(qp.geometry.rq_slots).slot(tail)} * qp.geometry.rq_stride;
    const ReceiveWqe wqe{id, static_cast<std::uint32_t>(sge.size()), 0};
    std::memcpy(at, &wqe, sizeof wqe);
    if (!sge.empty()) std::memcpy(at + sizeof wqe, sge.data(), sge.size() * sizeof(Sge));
    qp.owner.rq_tail.store(tail + 1);
  }
  // The completion at a position, or nullptr if it is not there yet.
  const Cqe* completion(std::uint32_t cq, std::uint64_t position) const {
    const CqEntry& entry = *arena_.cq(cq);
    const auto* ring = reinterpret_cast<const Cqe*>(
        arena_.heap(entry.id.ring, std::uint64_t{entry.id.slots} * sizeof(Cqe)));
    const Cqe& cqe = ring[RingOrder(entry.id.slots).slot(position)];
    const auto turn = static_cast<std::uint32_t>(position / entry.id.slots) + 1;
    return cqe.seq.load() == turn ? &cqe : nullptr;
  }

 private:
  BenchFile file_;
  Arena arena_;
  std::uint64_t next_ = place::kHeap + kLine;
};

constexpr std::uint32_t kMine = 2;
constexpr std::uint32_t kPeer = 3;
constexpr std::uint32_t kLkey = 0x200;
constexpr std::uint32_t kRkey = 0x300;

// A requester, queue pair kMine of slot 0, connected to queue pair kPeer of slot 1, and memory of
// both.
struct PairBench {
  explicit PairBench(Path path = Path::ProcessVm, std::size_t bytes = 4096,
                     verbs::QpType type = verbs::QpType::Rc)
      : mine(bytes), theirs(bytes), plane(memory.arena(), host, 0, path) {
    memory.make_cq(0, 0, 64, 63);
    memory.make_cq(1, 1, 64, 63);
    own = &memory.make_qp(kMine, 0, kPeer, 0, type);
    peer = &memory.make_qp(kPeer, 1, kMine, 1, type);
    memory.make_key(kLkey, 0, mine.data(), mine.size());
    memory.make_key(kRkey, 1, theirs.data(), theirs.size());
    BenchArena::cache_key(plane, kLkey, mine.data(), mine.size());
    host.reach.accessible.push_back({std::bit_cast<std::uint64_t>(theirs.data()), theirs.size()});
    for (std::size_t i = 0; i < bytes; ++i) mine[i] = std::byte(i * 3 + i / 251);
    RequesterConfig config;
    config.qp = kMine;
    config.type = type;
    config.pd = 1;
    config.send_cq = 0;
    config.max_wr = 16;
    config.max_sge = 4;
    config.max_inline = 128;
    config.signal_all = true;
    requester = std::make_unique<Requester>(plane, config);
    limits.timeout = 14;
    limits.rnr_retry = 7;
    requester->set_limits(limits);
  }
  Status post(verbs::WrOpcode opcode, std::uint64_t n, std::uint32_t flags = 0) {
    const Sge sge{std::bit_cast<std::uint64_t>(mine.data()), static_cast<std::uint32_t>(n), kLkey};
    SendWqe wqe;
    wqe.wr_id = ++posted;
    wqe.opcode = opcode;
    wqe.flags = flags;
    wqe.inline_data = (flags & verbs::send_flag::kInline) != 0;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    wqe.rkey = kRkey;
    wqe.remote_address = std::bit_cast<std::uint64_t>(theirs.data());
    const OpScope scope(plane);
    return requester->post(wqe);
  }
  bool progress() {
    const OpScope scope(plane);
    return requester->progress() != Requester::Progress::Idle;
  }
  void receive(std::uint32_t id, std::uint32_t n) {
    memory.post_receive(*peer, id, {{std::bit_cast<std::uint64_t>(theirs.data()), n, kRkey}});
  }
  // Status of my next completion; nothing if there is none.
  std::optional<verbs::WcStatus> next() {
    const Cqe* cqe = memory.completion(0, polled);
    if (cqe == nullptr) return std::nullopt;
    ++polled;
    last = {cqe->vendor_err, cqe->byte_len};
    std::uint64_t wr_id = 0;
    (void)requester->polled(cqe->wqe, wr_id);
    return static_cast<verbs::WcStatus>(cqe->status);
  }
  struct Seen {
    std::uint32_t vendor_err;
    std::uint32_t byte_len;
  };
  bool same(std::size_t n) const {
    return std::equal(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(n), theirs.begin());
  }

  BenchArena memory;
  BenchHost host;
  std::vector<std::byte> mine;
  std::vector<std::byte> theirs;
  MemoryPlane plane;
  QpEntry* own = nullptr;
  QpEntry* peer = nullptr;
  RetryLimits limits;
  std::unique_ptr<Requester> requester;
  std::uint64_t posted = 0;
  std::uint64_t polled = 0;
  Seen last{};
};

}  // namespace ib::hca
