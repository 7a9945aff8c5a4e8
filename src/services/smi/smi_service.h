// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SmiService: queue pairs 0 of ports, for the agents of programs, and the traps of agents to the
// master subnet manager [IBA1 14.3.6 to 14.3.13].
//
// Traps of errors that go on are under way once at a time. A trap is repeated until the manager
// represses it, a few times at most. Where softib manages the subnet itself nobody wants one, and
// none is sent.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "fabric/key_violation.h"
#include "fabric/management/smi.h"
#include "fabric/model.h"
#include "platform/executor.h"
#include "sa/records/notice.h"
#include "services/smi/local_manager.h"
#include "services/umad/umad_service.h"

#include <cstdint>
#include <map>
#include <memory>

namespace ib::services {

class SmiService final : public UmadSubnet, private fabric::Smi::Receiver {
 public:
  SmiService(fabric::Smi& smi, fabric::Fabric& fabric, platform::Executor& executor,
             UmadService& umad);
  SmiService(const SmiService&) = delete;
  SmiService& operator=(const SmiService&) = delete;
  ~SmiService() override;

  // It gets SMPs before programs do; nullptr takes it away.
  void set_local_manager(LocalManager* manager) { local_manager_ = manager; }

  // UmadSubnet
  void send(const GsiAddress& to, const mad::Mad& mad) override;

  // Ports have changed: what their managers have to hear of becomes traps.
  void on_changes(const fabric::PortChanges& changes);

  // A port has dropped packets with a wrong P_Key or Q_Key.
  void on_key_violation(const fabric::KeyViolation& violation, const fabric::Port& at);

  std::size_t traps_under_way() const { return traps_.size(); }

 private:
  struct Trap {
    std::uint32_t port = 0;  // that sends it
    std::uint16_t number = 0;
    std::uint32_t about = 0;  // the port that it is about, in the graph
    mad::Mad mad{};
    int sent = 0;
    std::unique_ptr<platform::Timer> timer;
  };

  // fabric::Smi::Receiver
  bool on_smp(std::uint32_t port, const fabric::PacketLids& lids, const mad::Mad& mad) override;
  void on_bad_key(std::uint32_t port, const fabric::PacketLids& lids, const mad::Mad& mad) override;

  void raise(const fabric::Port& from, const sa::Notice& notice);
  // Not while one of this number about this port waits to be repressed: what goes on is one news.
  void raise_once(const fabric::Port& about, const sa::Notice& notice);
  void raise_link_errors(const fabric::Port& port, std::uint32_t what);
  void transmit(std::uint64_t tid);

  fabric::Smi& smi_;
  fabric::Fabric& fabric_;
  platform::Executor& executor_;
  UmadService& umad_;
  LocalManager* local_manager_ = nullptr;
  std::map<std::uint64_t, Trap> traps_;  // by transaction id
  std::uint64_t last_tid_ = 0;
};

}  // namespace ib::services
