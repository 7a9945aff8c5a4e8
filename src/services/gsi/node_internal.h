// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiNode: a client of the access layer on one virtual host, which keeps all HCAs that are there
// open (GsiHca).
//
//   open() -> Attaching -> Open -> (close()) -> Closing -> Closed
//
// An HCA is opened when it is there and closed when it goes; if it went and came in between, the
// old file is closed first; so it is when one of its queue pairs 1 breaks. An HCA that sleeps stays
// open: its requests wait until it wakes.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/al.h"
#include "fabric/model.h"
#include "services/gsi/gsi.h"
#include "services/gsi/hca_internal.h"
#include "services/gsi/held_hcas_internal.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ib::services {

class GsiNode final : public GsiHca::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // All HCAs and ports have been opened, or not: is_settled() was false before.
    virtual void on_settled(GsiNode& node) = 0;
    virtual void on_closed(GsiNode& node) = 0;
  };

  GsiNode(al::System& system, io::DriverObject& driver, const fabric::Fabric& fabric,
          const fabric::Node& node, Owner& owner, GsiReceiver& receiver);
  ~GsiNode() override;
  GsiNode(const GsiNode&) = delete;
  GsiNode& operator=(const GsiNode&) = delete;

  const fabric::Node& node() const { return node_; }
  // Opens what is not open; also again.
  void open();
  // Nothing is under way but waits for HCAs that come.
  bool is_settled() const;
  // Ok, or why the first one that could not be opened was not.
  GsiOutcome first_problem() const;
  void list(std::vector<GsiPort>& ports) const;
  // Returns nullptr if its HCA is not open.
  PortQueue* find(std::uint32_t port) const;
  // Takes all down without waiting for an HCA that sleeps; ends with Owner::on_closed. Once.
  void close();

  // Closes an HCA that is to be removed, and opens none with this GUID until let_back().
  void let_go(std::uint64_t guid, std::function<void()> done);
  void let_back(std::uint64_t guid);

 private:
  enum class State : std::uint8_t { New, Attaching, Open, Detaching, Closed };

  // GsiHca::Owner
  void on_hca_changed() override;
  void on_hca_closed(GsiHca& hca) override;

  void attached();
  void reconcile();
  void on_event(const verbs::control::EventOut& event);
  void detach();
  void end();
  GsiHca* find_hca(std::uint64_t guid) const;

  const fabric::Fabric& fabric_;
  const fabric::Node& node_;
  Owner& owner_;
  GsiReceiver& receiver_;
  al::Al al_;
  State state_ = State::New;
  GsiOutcome attached_;  // of attaching
  io::Irp irp_;          // of al_
  std::vector<std::unique_ptr<GsiHca>> hcas_;
  HeldHcas held_;  // let_go()
  std::unique_ptr<platform::Timer> settling_;
  bool closing_ = false;
};

}  // namespace ib::services
