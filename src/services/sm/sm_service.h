// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SmService: softib's subnet manager at a port of the fabric. It gives the engine (sm/manager.h)
// SMPs and time, and sends what that wants to send; the port has IsSM as long as it is there.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "fabric/management/smi.h"
#include "fabric/model.h"
#include "platform/executor.h"
#include "services/smi/local_manager.h"
#include "sm/manager.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace ib::services {

class SmService final : public LocalManager {
 public:
  // Sets or clears IsSM in the capability mask of a port, and tells of it.
  using SetIsSm = std::function<void(fabric::Port& port, bool is_sm)>;
  struct Options {
    std::uint32_t port = 0;  // in the graph: of a channel adapter
    sm::Settings settings{};
    std::uint32_t random = 0;
    // SMPs that are sent in one go, before other work has its turn.
    std::uint32_t burst = 4096;
  };
  SmService(fabric::Smi& smi, fabric::Fabric& fabric, platform::Executor& executor,
            SetIsSm set_is_sm, const Options& options);
  SmService(const SmService&) = delete;
  SmService& operator=(const SmService&) = delete;
  ~SmService() override;

  // LocalManager
  bool on_smp(std::uint32_t port, const fabric::PacketLids& lids, const mad::Mad& mad) override;

  void request_sweep(bool is_full);
  void look_at(std::uint64_t switch_guid);  // whose links have changed
  void set_priority(std::uint8_t priority);
  // A settled manager has written the tables when it returns, unless there are very many.
  void set_groups(std::vector<sm::MulticastGroup> groups);
  std::uint32_t port() const { return port_; }  // in the graph
  const sm::Manager& manager() const { return manager_; }

 private:
  void work();
  void work_at(Instant when);

  fabric::Smi& smi_;
  fabric::Fabric& fabric_;
  platform::Executor& executor_;
  SetIsSm set_is_sm_;
  std::uint32_t port_;
  std::uint32_t burst_;
  sm::Manager manager_;
  bool is_working_ = false;
  std::unique_ptr<platform::Timer> timer_;
};

}  // namespace ib::services
