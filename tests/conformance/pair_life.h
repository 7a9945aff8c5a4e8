// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PairLife: one life of two processes that make objects, connect a pair of queue pairs, exchange
// messages and end, with or without cleaning up, whatever happens to their HCAs meanwhile.
#pragma once

#include "test_host.h"
#include "user/completion_queue.h"
#include "user/hca.h"
#include "user/queue_pair.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ib::conformance {

namespace control = verbs::control;

// Memory of processes that ended without cleaning up, until softibd has repaired their objects.
class Memories {
 public:
  static constexpr std::size_t kBytes = 64 * 1024;
  Memories() = default;
  Memories(const Memories&) = delete;
  Memories& operator=(const Memories&) = delete;
  ~Memories();
  std::uint64_t add();

 private:
  std::vector<void*> all_;
};

class PairLife {
 public:
  PairLife(std::string socket, std::uint64_t seed, Memories& memories)
      : socket_(std::move(socket)), random_(seed), memories_(memories) {}
  void run();
  static std::uint64_t messages() { return messages_.load(); }  // received by all pairs

 private:
  class Events final : public user::EventSink {
    void on_event(const control::EventOut&) override { ++count_; }
    std::atomic<int> count_ = 0;
  };
  struct Process {
    std::unique_ptr<TestHost> host;
    Events events;
    std::unique_ptr<user::Process> process;
    std::unique_ptr<user::Hca> hca;
    std::unique_ptr<user::ProtectionDomain> pd;
    std::unique_ptr<user::MemoryRegion> region;
    std::unique_ptr<user::CompletionChannel> channel;
    std::unique_ptr<user::CompletionQueue> cq;
    std::unique_ptr<user::SharedReceiveQueue> srq;
    std::unique_ptr<user::AddressHandle> address;
    std::unique_ptr<user::DeviceMemory> device_memory;
    std::unique_ptr<user::QueuePair> qp;
    std::uint64_t memory = 0;
    verbs::AddressVector way;  // by which others reach its port
    bool connected = false;
    unsigned outstanding = 0;  // requests that complete even if the queue pair breaks
  };

  bool find_way(Process& self);
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  bool begin(Process& self);
  bool make_objects(Process& self);
  bool connect(Process& self, const Process& peer);
  void exchange();
  void post(Process& self, const Process& peer);
  void poll(Process& self);
  void flush(Process& self);
  void end_in_order(Process& self);
  void vanish(Process& self);

  std::string socket_;
  std::mt19937_64 random_;
  Memories& memories_;
  verbs::QpType type_ = verbs::QpType::Rc;
  bool is_ethernet_ = false;
  std::array<Process, 2> sides_;
  static inline std::atomic<std::uint64_t> messages_ = 0;
};

}  // namespace ib::conformance
