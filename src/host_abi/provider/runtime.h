// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Runtime: the one connection of this process to its fabric, shared by all contexts, and the HCAs
// that are open on it. Created at the first ibv_open_device and never destroyed: threads of the
// engine run until the process ends, so no destructor may run under them.
//
// After fork() the child has none of those threads. Inherited objects are dead for it (as with a
// kernel adapter, only the process that made an object may use it): it gets a new Runtime and can
// open devices itself. Destroying inherited objects must do nothing; `fork_epoch` identifies them.
#pragma once

#include "host_abi/provider/async_queue.h"
#include "host_abi/provider/event_hub.h"
#include "user/hca.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace ib::host_abi {

// Changes in the child at every fork().
unsigned fork_epoch();

// The data of a registered region that advise_mr and import_mr need.
struct RegionRecord {
  std::weak_ptr<user::MemoryRegion> region;
  std::uint32_t pd = 0;
  std::uint32_t access = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint64_t iova = 0;
};

struct DeviceMemoryRecord {
  std::weak_ptr<user::DeviceMemory> memory;
  std::uint64_t length = 0;  // as requested
};

// An opened HCA: owned by the context that opened it and those that imported it.
struct DeviceFile {
  std::unique_ptr<user::Hca> hca;
  AsyncQueue async;
  std::string name;
  std::mutex mutex;              // of what follows
  std::vector<int> command_fds;  // of the contexts that share it
  // Handles, for import.
  std::unordered_map<std::uint32_t, std::weak_ptr<user::ProtectionDomain>> domains;
  std::unordered_map<std::uint32_t, DeviceMemoryRecord> device_memories;
  std::unordered_map<std::uint32_t, RegionRecord> regions;  // by index, which keys have in them
};

class Runtime {
 public:
  static Runtime& instance();

  EventHub& events() { return events_; }

  // Opens the HCA behind `device`; `fd` is the uverbs file of its context.
  Result<std::shared_ptr<DeviceFile>> open(const ibv_device& device, int fd);
  // The open HCA whose uverbs file `fd` is a duplicate of, for one more context.
  Result<std::shared_ptr<DeviceFile>> share(const std::string& name, int fd);
  void forget(const std::shared_ptr<DeviceFile>& file, int fd);

  // Completion channels; the descriptor belongs to the application, which closes it.
  Result<int> create_channel();
  Result<std::uint32_t> channel_handle(int fd);
  void channel_closed(int fd);
  // After each read from one: there may be room for events that had none.
  void channel_read();
  // Returns the ibv_cq for a record of a channel, or null if it is gone.
  void* deliver_completion(std::uint64_t cq_index);
  // Returns this process at its fabric, or null if it is not attached. It stays until the process
  // ends. Takes no lock, allocates nothing.
  static user::Process* attached();

 private:
  Result<user::Process*> process();
  Result<user::Process*> attach();

  EventHub events_;
  std::mutex mutex_;
  std::atomic<user::Process*> process_{nullptr};
  std::vector<std::shared_ptr<DeviceFile>> files_;
  std::unordered_map<int, std::unique_ptr<user::CompletionChannel>> channels_;
};

}  // namespace ib::host_abi
