// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Smi: the subnet management interface of all ports [IBA1 14.2.2, 14.3]: carries an SMP from the
// port that sends it to its end, where an agent answers it or a client of that port gets it, and
// carries the answer back. All of it happens inside of the call.
//
// Thread rule: as the fabric's.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "fabric/management/walk.h"
#include "fabric/model.h"
#include "fabric/port_states.h"
#include "mad/header.h"

#include <cstdint>
#include <functional>
#include <string>

namespace ib::fabric {

class Smi {
 public:
  // Gets what is not for agents.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // A response, or a request to a subnet manager, has come to a port (its index in the graph).
    // Returns false if nobody there takes it. May send in the call.
    virtual bool on_smp(std::uint32_t port, const PacketLids& lids, const mad::Mad& mad) = 0;
    // An agent has seen a wrong M_Key.
    virtual void on_bad_key(std::uint32_t port, const PacketLids& lids, const mad::Mad& mad) = 0;
  };
  struct Hooks {
    std::function<Instant()> now;
    // Of Sets that were carried out; before their answers go out.
    std::function<void(const PortChanges& changes)> on_changes;
  };

  Smi(Fabric& fabric, Hooks hooks) : fabric_(fabric), hooks_(std::move(hooks)) {}

  void set_receiver(Receiver* receiver) { receiver_ = receiver; }

  // Sends an SMP of a client of the port. Nobody hears of one that is lost, as on a cable.
  void send(std::uint32_t port, const PacketLids& lids, const mad::Mad& mad);

  // Sends a request of a client that waits for the response. InvalidParameter, and why: there is
  // none.
  Status exchange(std::uint32_t port, const mad::Mad& request, mad::Mad& response,
                  std::string& reason);

 private:
  // An SMP at its end.
  struct Parcel {
    Port* at = nullptr;  // nullptr: lost
    PacketLids lids;
    mad::Mad mad{};
    std::string reason;
  };
  static Parcel nothing(std::string reason);
  Parcel carry(Port& from, const PacketLids& lids, const mad::Mad& mad);
  // Returns the answer, under way from where it came; nothing is under way if there is none.
  Parcel answer(const Parcel& parcel);
  bool hand_over(const Parcel& parcel);

  Fabric& fabric_;
  Hooks hooks_;
  Receiver* receiver_ = nullptr;
};

}  // namespace ib::fabric
