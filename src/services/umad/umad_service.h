// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UmadService: the MADs of programs' agents [IBA1 13.4, 13.5] between the queue pairs 0 and 1 of
// ports and the open files (docs/design/0026-umad-devices.md): it repeats requests until an answer
// comes or the time is up, cuts long messages and puts them together (RMPP), and gives each MAD
// that comes to its agent, before softibd's own agents see it.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "base/result.h"
#include "fabric/model.h"
#include "platform/executor.h"
#include "services/gsi/gsi.h"
#include "services/umad/umad_agents.h"
#include "services/umad/umad_file.h"
#include "services/umad/umad_files.h"
#include "services/umad/umad_sends.h"
#include "services/umad/umad_transfers.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace ib::services {

// Queue pairs 0, as UmadService uses them.
class UmadSubnet {
 public:
  virtual ~UmadSubnet() = default;
  // Sends an SMP out of this port; what comes of it comes by UmadService::on_smp(), maybe in here.
  // One that gets lost is lost.
  virtual void send(const GsiAddress& to, const mad::Mad& mad) = 0;
};

class UmadService final : private GsiFirst, private UmadTransfers::Handler {
 public:
  UmadService(platform::Executor& executor, const fabric::Fabric& fabric, Gsi& gsi);
  UmadService(const UmadService&) = delete;
  UmadService& operator=(const UmadService&) = delete;
  ~UmadService() override;  // no file is left

  // Without one (nullptr) SMPs get lost.
  void set_subnet(UmadSubnet* subnet) { subnet_ = subnet; }
  // An SMP for a client of the port. Returns false if no agent takes it.
  bool on_smp(const GsiAddress& from, const mad::Mad& mad);

  UmadFiles& files() { return files_; }
  const UmadFiles& files() const { return files_; }
  Result<UmadAgentNumber> add_agent(const UmadAgent& agent);
  void remove_agent(UmadAgentNumber number);
  const UmadAgent* find_agent(UmadAgentNumber number) const { return agents_.find(number); }
  // Where a MAD with this header goes.
  static GsiAddress address_of(const UmadAgent& agent, const UmadHeader& header);
  // Whether the own port has the GID of its global route.
  bool has_source(const GsiAddress& to) const;
  // InvalidParameter: the same is under way.
  Status send(UmadSend send);

  // Requests and transfers under way.
  std::size_t under_way() const { return sends_.size() + transfers_.size(); }

 private:
  // GsiFirst
  bool on_mad(const GsiAddress& from, const mad::Mad& mad) override;
  void on_port(const GsiPortEvent& event) override;
  void on_removal_over(const fabric::Hca& hca) override;

  // UmadTransfers::Handler
  void transmit(const GsiAddress& to, const mad::Mad& mad) override;
  void on_sent(UmadSends::Id send) override;
  void on_send_failed(UmadSends::Id send, bool is_late) override;
  void on_message(UmadAgentNumber agent, UmadSends::Id request, const GsiAddress& from,
                  std::span<const std::byte> message) override;
  void on_answer_failed(UmadSends::Id request) override;

  bool take(std::uint32_t qpn, const GsiAddress& from, const mad::Mad& mad);
  void take_packet(UmadAgentNumber number, const GsiAddress& from, const mad::Mad& mad);
  void take_response(UmadAgentNumber number, const GsiAddress& from, const mad::Mad& mad);
  void give(UmadAgentNumber number, const GsiAddress& from, std::span<const std::byte> mad);
  void refuse(const GsiAddress& to, const mad::Mad& request);
  void transmit(const UmadSend& send);
  void time_out(UmadSends::Id id);
  void run();
  void arm_timer();
  void on_timer();

  platform::Executor& executor_;
  const fabric::Fabric& fabric_;
  Gsi& gsi_;
  UmadSubnet* subnet_ = nullptr;
  UmadAgents agents_;
  UmadSends sends_;
  UmadTransfers transfers_;
  UmadFiles files_;
  std::unique_ptr<platform::Timer> timer_;
  std::optional<Instant> timer_due_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ib::services
