// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A queue pair with the memory of its messages: receives that are always posted, and a few sends.
#pragma once

#include "al/verbs.h"
#include "driver_parts/requests.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ping {

namespace control = ib::verbs::control;
using ib::Status;
using parts::Requests;

// The address of a queue pair, which instances exchange out of band.
struct Address {
  std::uint16_t lid = 0;
  std::uint32_t qpn = 0;
};

class Endpoint {
 public:
  Endpoint(ib::al::Ca& ca, ib::al::Pd& pd, ib::al::Cq& cq, ib::verbs::QpType type,
           std::uint8_t port)
      : ca_(ca), pd_(pd), cq_(cq), type_(type), port_(port) {}

  // Requests that make it, up to Init; that connect it (`remote` is for RC only), after which it
  // can send; and that destroy it in any state.
  std::vector<Requests::Issue> make();
  std::vector<Requests::Issue> connect(const Address& remote);
  std::vector<Requests::Issue> take_away();

  std::uint32_t qpn() const { return qp_.made.qpn; }
  void post_receives();
  // One more than there is room for is not sent, as on a busy wire. `to` is for UD only.
  void send(std::string_view text, const Address& to = {});
  // A completion of this queue pair was polled. The message, if it is a receive: a copy, made once,
  // since the sender can reach the memory; the receive is posted again.
  std::optional<std::string> take(const ib::hca::Completion& got);

 private:
  bool is_datagram() const { return type_ == ib::verbs::QpType::Ud; }
  void post_receive(std::uint32_t slot);
  void modify(ib::verbs::QpState to, std::uint32_t mask, ib::io::IrpRef irp);

  ib::al::Ca& ca_;
  ib::al::Pd& pd_;
  ib::al::Cq& cq_;
  ib::verbs::QpType type_;
  std::uint8_t port_;
  Address remote_;
  control::AllocDmIn room_;
  control::QpAttr change_;
  ib::al::DeviceMemory memory_;
  ib::al::Region region_;
  ib::al::Qp qp_;
  std::uint32_t next_send_ = 0;
  std::uint32_t sending_ = 0;  // sends whose memory is in use
};

}  // namespace ping
