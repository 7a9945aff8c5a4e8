// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the tests and the fuzzer of this folder: a fabric of two nodes in virtual time, over device
// memory that is only address space. Independent of any test framework.
#pragma once

#include "base/buffers.h"
#include "drivers/root/fabric_root.h"
#include "drivers/soft_hca/handlers.h"
#include "drivers/soft_hca/soft_hca.h"
#include "hca/layout/ring_order.h"
#include "platform/virtual_executor.h"

#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ib::drivers::test {

using platform::VirtualExecutor;

class CountingBarriers final : public platform::Barriers {
 public:
  bool join() override { return false; }
  bool joined() const override { return false; }
  void threads() override { std::atomic_thread_fence(std::memory_order_seq_cst); }
  void processes() override {
    ++passed;
    threads();
  }
  int passed = 0;
};

// Device memory without a file: address space of this process with a length that the drivers trust.
class FakeHost final : public platform::DeviceMemoryHost {
 public:
  ~FakeHost() override {
    if (base_ != nullptr) ::munmap(base_, space_);
  }
  platform::Barriers& barriers() override { return every_process; }
  Status create(std::uint64_t size, std::uint64_t space, std::string&) override {
    void* at = ::mmap(nullptr, space, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return Status::IoError;
    base_ = static_cast<std::byte*>(at);
    size_ = size;
    space_ = space;
    return Status::Ok;
  }
  std::byte* base() override { return base_; }
  std::uint64_t space() override { return space_; }
  std::uint64_t size() override { return size_; }
  Status grow(std::uint64_t size, std::string& reason) override {
    if (refuses) return refusal(reason);
    size_ = std::max(size_, size);
    return Status::Ok;
  }
  void punch(std::uint64_t offset, std::uint64_t length) override {
    std::byte* const from = base_ + offset;
    const bool whole_pages = offset % page_size() == 0 && length % page_size() == 0;
    if (whole_pages && ::madvise(from, length, MADV_DONTNEED) == 0) return;
    std::memset(from, 0, length);
  }
  std::uint64_t used_bytes() override { return 0; }
  Result<platform::NativeHandle> device_memory_handle(std::string& reason) override {
    if (refuses) return refusal(reason);
    return handle();
  }
  Result<platform::NativeHandle> duplicate(const platform::NativeHandle&,
                                           std::string& reason) override {
    if (refuses) return refusal(reason);
    return handle();
  }
  Result<platform::NativeHandle> make_text(std::string_view text, std::string& reason) override {
    if (refuses) return refusal(reason);
    last_text = text;
    return handle();
  }
  Result<std::uint64_t> seal_and_measure(const platform::NativeHandle& file,
                                         std::string& reason) override {
    if (refuses) return refusal(reason);
    if (file.valid()) return std::uint64_t{1} << 20;
    reason = "no file";
    return Status::InvalidParameter;
  }
  bool is_pipe_end(const platform::NativeHandle& handle, bool) override { return handle.valid(); }
  bool write_pipe(const platform::NativeHandle&, std::span<const std::byte> bytes) override {
    if (on_pipe) on_pipe();
    if (pipes_are_full) return false;
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    piped.push_back(number);
    return true;
  }
  std::uint64_t unread_bytes(const platform::NativeHandle&) override {
    return piped.size() * sizeof piped[0];
  }
  std::size_t max_handles() override { return 64; }
  std::uint64_t page_size() override { return 4096; }
  std::uint32_t pid() override { return 1; }
  bool is_alive(std::uint32_t pid) override { return alive.contains(pid); }
  void wake(std::atomic<std::uint32_t>&) override { ++wakes; }

  // A number in place of a descriptor; open_handles counts those that were not closed.
  static platform::NativeHandle handle() {
    ++open_handles;
    return {1000, [](int) { --open_handles; }};
  }
  static inline int open_handles = 0;

  CountingBarriers every_process;
  bool refuses = false;  // system calls for softibd fail
  bool pipes_are_full = false;
  std::string last_text;
  std::vector<std::uint64_t> piped;
  std::function<void()> on_pipe;
  std::set<std::uint32_t> alive;
  int wakes = 0;

 private:
  static Status refusal(std::string& reason) {
    reason = "the system refuses";
    return Status::IoError;
  }

  std::byte* base_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t space_ = 0;
};

// A request under way; the test checks whether it is done.
struct Request {
  io::Irp irp;
  std::vector<std::byte> in;
  std::array<std::byte, 4096> out{};
  bool done = false;
  static void on_done(io::Irp&, void* context) { static_cast<Request*>(context)->done = true; }
};

// Checks an entry of device memory: an index out of range is a mistake of the test.
template <class T>
T& sure(T* entry) {
  IB_ASSERT(entry != nullptr);
  return *entry;
}

class Bench {
 public:
  explicit Bench(std::uint64_t max_memory = 0, FabricTreeOptions tree_options = {},
                 verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand,
                 const std::function<void(fabric::Fabric&)>& before_start = {})
      : fabric(*fabric::Fabric::create({{"node0", "node1"}, 1, 2, link_layer})) {
    if (before_start) before_start(fabric);
    std::string reason;
    SoftHcaOptions options;
    options.max_memory = max_memory;
    hcas = *SoftHca::create(executor, fabric, host, std::move(options), reason);
    tree = *FabricTree::create(*hcas, std::move(tree_options), reason);
    root = std::make_unique<FabricRoot>(*tree);
    tree->begin([] {});
    executor.advance(std::chrono::milliseconds(1));
  }
  Core& core() { return hcas->core(); }
  const hca::Arena& arena() { return core().arena(); }
  hca::Cqe& cqe(std::uint64_t ring, std::uint32_t slots, std::uint64_t position) {
    const std::uint64_t slot = hca::RingOrder(slots).slot(position);
    std::byte* bytes = arena().heap(ring + slot * sizeof(hca::Cqe), sizeof(hca::Cqe));
    IB_ASSERT(bytes != nullptr);
    return *reinterpret_cast<hca::Cqe*>(bytes);
  }
  std::string trace() { return core().trace.text_after(0); }
  // Returns the number of objects of all kinds in the whole fabric, and of the resources they use.
  std::size_t objects() {
    Core& c = core();
    return c.pds.count() + c.keys.count() + c.dms.count() + c.ahs.count() + c.cqs.count() +
           c.xrcds.count() + c.srqs.count() + c.qps.count() + c.mcasts.count() +
           c.channels.count() + c.backings.count() + c.memory.heap().pieces();
  }

  VirtualExecutor executor;
  FakeHost host;
  fabric::Fabric fabric;
  std::unique_ptr<SoftHca> hcas;
  std::unique_ptr<FabricTree> tree;
  std::unique_ptr<FabricRoot> root;
};

}  // namespace ib::drivers::test
