// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiNode: a client of the access layer on one virtual host, which keeps all HCAs that are there
// open, with queue pair 1 of each port.
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
#include "services/gsi/port_queue_internal.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ib::services {

class GsiNode {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_mad(std::uint32_t port, const al::MadAddress& from, const mad::Mad& mad) = 0;
    virtual void on_port(const GsiPortEvent& event) = 0;
    // All HCAs and ports have been opened, or not: settled() was false before.
    virtual void on_settled(GsiNode& node) = 0;
    virtual void on_closed(GsiNode& node) = 0;
  };

  GsiNode(al::System& system, io::DriverObject& driver, const fabric::Fabric& fabric,
          const fabric::Node& node, Owner& owner);
  ~GsiNode();
  GsiNode(const GsiNode&) = delete;
  GsiNode& operator=(const GsiNode&) = delete;

  const fabric::Node& node() const { return node_; }
  // Opens what is not open; also again.
  void open();
  // Nothing is under way but waits for HCAs that come.
  bool is_settled() const;
  // Ok, or why the first one that could not be opened was not.
  Status first_problem(std::string& reason) const;
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
  struct Hca {
    enum class State : std::uint8_t { Opening, Open, Failed, Closing };

    Hca(GsiNode& n, const fabric::Hca& h) : node(n), hca(h), ca(n.al_) {}
    GsiNode& node;
    const fabric::Hca& hca;
    State state = State::Opening;
    bool is_wanted = true;
    Status status = Status::Pending;  // of opening it
    std::string reason;
    al::Ca ca;
    io::Irp irp;  // of the CA
    std::vector<std::unique_ptr<PortQueue>> ports;
  };

  void attached();
  void reconcile();
  void open_hca(const fabric::Hca& hca);
  void hca_opened(Hca& hca);
  void open_ports(Hca& hca);
  void drop(Hca& hca);
  void close_if_idle(Hca& hca);
  void hca_closed(Hca& hca);
  void on_event(const verbs::control::EventOut& event);
  void settle();
  void detach();
  void end();
  Hca* find_hca(std::uint64_t guid) const;
  bool is_held(std::uint64_t guid) const;

  const fabric::Fabric& fabric_;
  const fabric::Node& node_;
  Owner& owner_;
  al::Al al_;
  State state_ = State::New;
  Status status_ = Status::Pending;  // of attaching
  std::string reason_;
  io::Irp irp_;  // of al_
  std::vector<std::unique_ptr<Hca>> hcas_;
  std::vector<std::uint64_t> held_;  // GUIDs that are not to be opened
  std::vector<std::pair<std::uint64_t, std::function<void()>>> waiting_;  // let_go()
  std::unique_ptr<platform::Timer> settling_;
  bool closing_ = false;
};

}  // namespace ib::services
