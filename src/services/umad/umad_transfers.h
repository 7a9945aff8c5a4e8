// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// UmadTransfers: messages of several packets (RMPP [IBA1 13.6]) of agents of programs that leave
// them to softibd, in both directions.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "base/time.h"
#include "mad/rmpp.h"
#include "services/gsi/gsi.h"
#include "services/umad/umad_agents.h"
#include "services/umad/umad_sends.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace ib::services {

class UmadTransfers {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void transmit(const GsiAddress& to, const mad::Mad& mad) = 0;
    // The receiver has all of it; or the transfer has failed: `is_late` without an answer.
    virtual void on_sent(UmadSends::Id send) = 0;
    virtual void on_send_failed(UmadSends::Id send, bool is_late) = 0;
    // A message has come, for this agent. `request`: that it answers; 0: it is one.
    virtual void on_message(UmadAgentNumber agent, UmadSends::Id request, const GsiAddress& from,
                            std::span<const std::byte> message) = 0;
    // It does not come, or not whole.
    virtual void on_answer_failed(UmadSends::Id request) = 0;
  };

  explicit UmadTransfers(Handler& handler) : handler_(handler), rmpp_(mad::Rmpp::Options{}) {}
  UmadTransfers(const UmadTransfers&) = delete;
  UmadTransfers& operator=(const UmadTransfers&) = delete;

  // Errors as of mad::Rmpp::send.
  Status send(UmadSends::Id send, const UmadSend& what, Instant now);
  // A packet for this agent. `request`: which waits for it; 0: none. Returns true if that request
  // is being answered from now on.
  bool on_packet(UmadAgentNumber agent, UmadSends::Id request, const GsiAddress& from,
                 const mad::Mad& mad, Instant now);
  void cancel(UmadSends::Id send);
  void cancel_all_of_agent(UmadAgentNumber agent);

  void run(Instant now);
  std::optional<Instant> next_deadline() const { return rmpp_.next_deadline(); }
  std::size_t size() const { return transfers_.size(); }

 private:
  struct Transfer {
    GsiAddress address;
    UmadAgentNumber agent = 0;
    UmadSends::Id send = 0;     // that it sends
    UmadSends::Id request = 0;  // that it answers
  };
  void take_output(mad::Rmpp::Output& output);
  void take_failure(Transfer& transfer, const mad::Rmpp::Output& output);

  Handler& handler_;
  mad::Rmpp rmpp_;
  std::map<mad::Rmpp::Id, Transfer> transfers_;
  const GsiAddress* source_ = nullptr;  // of the packet that has just come
  bool runs_ = false;
};

}  // namespace ib::services
