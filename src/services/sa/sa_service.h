// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaService: the subnet administrator of the fabric (sa/server/server.h) as an agent of Gsi, on the
// ports of the subnet managers: one for all ports without a link, one for the two ends of each
// link. And the one that hears of changes of the fabric, for the server and for clients in softibd.
//
// It takes requests on a port once the port's node is open in Gsi, for which open() or its clients
// see. While its port is down or its HCA sleeps, requests get no answer; what it holds for other
// ports stays.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "fabric/model.h"
#include "platform/executor.h"
#include "sa/server/server.h"
#include "services/gsi/gsi.h"
#include "services/sa/fabric_topology.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ib::services {

class SaService {
 public:
  struct Options {
    // The SM_Key is the one that OpenSM and its tools start with. It is no secret: it lets a tool
    // of an administrator see all partitions, as it would with OpenSM.
    sa::ServerOptions server{.sm_key = 1};
    Duration report_timeout = std::chrono::seconds(1);  // of one try
    std::uint32_t report_retries = 3;
  };
  // A port of the fabric that came into service or has other P_Keys, or is out of service. Called
  // soon after the change, not from inside it.
  using OnPort = std::function<void(const fabric::Port& port, const verbs::Gid& gid, bool is_up)>;

  // Hears of the fabric's changes from now on (Fabric::set_on_change).
  SaService(Gsi& gsi, fabric::Fabric& fabric, platform::Executor& executor, const Options& options);
  SaService(const SaService&) = delete;
  SaService& operator=(const SaService&) = delete;
  ~SaService();

  // Opens the node of the first port's manager and takes requests; Ok at once if that has been
  // done. NotFound: the fabric has no InfiniBand port; errors of Gsi::ensure() and add_agent().
  void open(io::IrpRef irp);
  // Takes requests on the ports of all nodes that are or will be open.
  Status start(std::string& reason);
  void set_on_port(OnPort on_port) { listeners_.on_port = std::move(on_port); }
  // Hears that groups have other members, before the request that did it is answered.
  void set_on_members(std::function<void(const sa::Groups&)> on_members) {
    listeners_.on_members = std::move(on_members);
  }

  // See FabricTopology::set_manager_view().
  void set_manager_view(const ManagerView* view) { topology_.set_manager_view(view); }

  const FabricTopology& topology() const { return topology_; }
  const sa::Server& server() const { return server_; }

 private:
  // A port in service, as it was when it was last looked at.
  struct Known {
    verbs::Gid gid{};
    std::uint16_t lid = 0;
    std::vector<std::uint16_t> pkeys{};
    std::uint32_t capabilities = 0;
  };
  struct Change {
    std::uint32_t port = 0;
    verbs::Gid gid{};
    bool is_up = false;
  };

  void on_message(const GsiMessage& message);
  void respond(const GsiMessage& request, const sa::Answer& answer);
  void look_at(std::uint32_t index);
  void tell_later();
  void tell();
  void send_reports();
  void arm();
  void tell_members();

  Gsi& gsi_;
  fabric::Fabric& fabric_;
  platform::Executor& executor_;
  Options options_;
  FabricTopology topology_;
  sa::Server server_;
  std::vector<std::optional<Known>> known_;  // by index of the port
  AgentId agent_ = 0;
  struct {
    OnPort on_port;
    std::function<void(const sa::Groups&)> on_members;
    std::uint64_t members_told = 0;  // version of the groups
  } listeners_;
  std::vector<Change> changes_;  // not told yet
  std::unique_ptr<platform::Timer> telling_;
  std::unique_ptr<platform::Timer> timer_;  // of leases
};

}  // namespace ib::services
