// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CmService: the communication managers of the fabric. Each HCA has one (HcaCm), an engine
// (cm/engine.h) whose MADs the GSI carries, from the first request on that it sends or gets.
//
// Those that make connections in softibd are its *consumers*: the rdma_cm service, and the device
// of kernel clients (cm_device.h). They share the service IDs, the queue pairs and the limits of an
// HCA; each gets the events of what it has made itself.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "base/result.h"
#include "cm/engine.h"
#include "fabric/model.h"
#include "platform/executor.h"
#include "services/cm/drop_reports.h"
#include "services/cm/node_openings.h"
#include "services/cm/shared_ports.h"
#include "services/gsi/gsi.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::services {

class CmService;
class HcaCm;

class CmConsumer {
 public:
  virtual ~CmConsumer() = default;
  // An HCA has its communication manager: the time for listeners that every HCA has.
  virtual void on_manager(HcaCm& manager) = 0;
  // May come from inside a call that the consumer makes. It may call anything of `manager`.
  virtual void on_event(HcaCm& manager, const cm::Event& event) = 0;
  virtual void on_hca_gone(const fabric::Hca& hca) = 0;  // pulled out; may come more than once
  virtual void on_ports_changed(const fabric::Hca&) {}   // states or addresses
};

// The communication manager of one HCA.
class HcaCm {
 public:
  HcaCm(CmService& service, const fabric::Hca& hca, std::uint64_t seed);
  HcaCm(const HcaCm&) = delete;
  HcaCm& operator=(const HcaCm&) = delete;

  const fabric::Hca& hca() const { return hca_; }
  // To look at; what changes something goes through the calls below.
  const cm::Engine& engine() const { return engine_; }

  // As of the engine. A connection that a listener gets belongs to the consumer of the listener.
  Result<cm::ListenerId> listen(CmConsumer& consumer, const cm::Listen& listen);
  Result<cm::ConnectionId> connect(CmConsumer& consumer, const cm::ConnectRequest& request);
  Result<cm::SidrId> resolve_sidr(CmConsumer& consumer, const cm::SidrRequest& request);
  void destroy(cm::ListenerId id);
  void destroy(cm::ConnectionId id);
  void destroy(cm::SidrId id);
  // Any other call of the engine: `call(engine, now)` returns a Status.
  template <class Call>
  Status act(const Call& call) {
    const Status status = call(engine_, now());
    pump();
    return status;
  }

 private:
  friend class CmService;

  Instant now() const;
  void set_ports();
  void receive(const mad::Mad& mad, const cm::MadAddress& from);
  void forget(const CmConsumer& consumer);
  void pump();
  void deliver(const cm::Event& event);
  void send_mads();
  void wake_at(std::optional<Instant> due);
  Status send(const cm::OutgoingMad& mad);

  CmService& service_;
  const fabric::Hca& hca_;
  cm::Engine engine_;
  bool is_pumping_ = false;
  std::unique_ptr<platform::Timer> timer_;
  Instant timer_due_;                   // if there is a timer
  std::deque<cm::OutgoingMad> unsent_;  // the queue of the port was full
  std::unordered_map<std::uint32_t, CmConsumer*> listeners_;
  std::unordered_map<std::uint32_t, CmConsumer*> connections_;
  std::unordered_map<std::uint32_t, CmConsumer*> datagrams_;
};

class CmService {
 public:
  // `random` gives the engines their seeds; `limits` are those of each.
  CmService(platform::Executor& executor, const fabric::Fabric& fabric, Gsi& gsi,
            std::function<std::uint32_t()> random, const cm::Limits& limits = {});
  CmService(const CmService&) = delete;
  CmService& operator=(const CmService&) = delete;
  ~CmService();

  void add(CmConsumer& consumer);
  // Its listeners end, and its connections as by destroy().
  void remove(CmConsumer& consumer);

  HcaCm& manager_of(const fabric::Hca& hca);

  // For those that listen without being programs. May be null.
  void set_ports(CmPorts* ports) { ports_.set_ports(ports); }
  // Takes a port for a listener of the node; several may have it. Returns false if a program has
  // it.
  bool take_port(const fabric::Node& node, std::uint64_t service_id) {
    return ports_.take(node, service_id);
  }
  void give_back_port(const fabric::Node& node, std::uint64_t service_id) {
    ports_.give_back(node, service_id);
  }

  // A line for people about MADs that were dropped: `times` of this kind since the last line
  // (verbs/report_count.h).
  using OnDrop = DropReports::OnDrop;
  void set_on_drop(OnDrop on_drop) { drops_.set_on_drop(std::move(on_drop)); }

  // Opens queue pairs 1 of a node, and calls `then` at once or later; if they could not be opened,
  // with the error: then no MAD gets through. Not called after the service has gone.
  using OnOpen = NodeOpenings::OnOpen;
  void open(const fabric::Node& node, OnOpen then) { openings_.open(node, std::move(then)); }
  // The same for both ends of a path. NotFound: it leads to no port of the fabric.
  Status open(const fabric::Hca& hca, const cm::Path& path, OnOpen then);

  const fabric::Fabric& fabric() const { return fabric_; }
  platform::Executor& executor() const { return executor_; }

 private:
  friend class HcaCm;

  void on_message(const GsiMessage& message);
  void on_port(const GsiPortEvent& event);

  platform::Executor& executor_;
  const fabric::Fabric& fabric_;
  Gsi& gsi_;
  std::function<std::uint32_t()> random_;
  cm::Limits limits_;
  AgentId agent_ = 0;
  std::vector<CmConsumer*> consumers_;
  std::map<std::uint32_t, std::unique_ptr<HcaCm>> managers_;  // by index of the HCA
  NodeOpenings openings_;
  SharedPorts ports_;
  DropReports drops_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ib::services
