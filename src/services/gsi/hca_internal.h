// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// GsiHca: an HCA of a node that Gsi has opened, with queue pair 1 of each port.
//
//   open() -> Opening -> Open -> (drop()) -> Closing -> closed
//                     -> Failed
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/al.h"
#include "fabric/model.h"
#include "services/gsi/gsi.h"
#include "services/gsi/port_queue_internal.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ib::services {

// Of opening something.
struct GsiOutcome {
  Status status = Status::Pending;
  std::string reason;
};

// Where MADs and events of ports go.
class GsiReceiver {
 public:
  virtual ~GsiReceiver() = default;
  virtual void on_mad(std::uint32_t port, const al::MadAddress& from, const mad::Mad& mad) = 0;
  virtual void on_port(const GsiPortEvent& event) = 0;
};

class GsiHca {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The HCA, or one of its ports, has been opened, or could not be.
    virtual void on_hca_changed() = 0;
    // It is no more, and may be destroyed in the call.
    virtual void on_hca_closed(GsiHca& hca) = 0;
  };

  GsiHca(al::Al& al, const fabric::Fabric& fabric, const fabric::Hca& hca, Owner& owner,
         GsiReceiver& receiver)
      : fabric_(fabric), hca_(hca), owner_(owner), receiver_(receiver), ca_(al) {}
  GsiHca(const GsiHca&) = delete;
  GsiHca& operator=(const GsiHca&) = delete;

  const fabric::Hca& hca() const { return hca_; }
  // Once.
  void open();
  // Opens those that are not open.
  void open_ports();
  // Ends what is under way at the HCA, and then closes it.
  void drop();

  bool is_open() const { return state_ == State::Open; }
  bool has_failed() const { return state_ == State::Failed; }
  bool is_wanted() const { return is_wanted_; }  // drop() was not called
  // Nothing is being opened or closed.
  bool is_settled() const;
  // Ok, or why it could not be opened, or else its first port that could not.
  GsiOutcome first_problem() const;
  void list(std::vector<GsiPort>& ports) const;
  // Returns nullptr if it has no such port that is open.
  PortQueue* find(std::uint32_t port) const;

  bool is_of(const verbs::control::EventOut& event) const { return ca_.file() == event.file; }
  void on_port_event(const verbs::control::EventOut& event);

 private:
  enum class State : std::uint8_t { Opening, Open, Failed, Closing };

  void opened();
  void close_if_idle();

  const fabric::Fabric& fabric_;
  const fabric::Hca& hca_;
  Owner& owner_;
  GsiReceiver& receiver_;
  State state_ = State::Opening;
  bool is_wanted_ = true;
  GsiOutcome outcome_;  // of opening it
  al::Ca ca_;
  io::Irp irp_;  // of the CA
  std::vector<std::unique_ptr<PortQueue>> ports_;
};

}  // namespace ib::services
