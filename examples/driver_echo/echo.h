// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Echo: a server inside softibd. It listens on a port of the RDMA IP service, so programs connect
// to it by librdmacm, and sends back each message that comes.
//
// Thread rule: the executor's thread, as for all that a driver does.
#pragma once

#include "al/cm.h"
#include "al/sa.h"
#include "al/verbs.h"
#include "driver_parts/requests.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace echo {

namespace al = ib::al;
using ib::Status;

class Echo {
 public:
  static constexpr const char* kName = "echo";
  using Where = std::map<std::string, std::string>;  // io::DeviceIds::properties of the child
  static constexpr std::uint16_t kPort = 7471;

  Echo(ib::io::DriverObject& driver, al::System& system, Where where);
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  void begin();
  // Everything ends with the Cm and the Sa: peers get DREQ, the service is deleted. Then `done`.
  void end(std::function<void()> done);
  std::string note() const;

 private:
  static constexpr std::uint32_t kSlot = 4096;  // a message
  static constexpr std::uint32_t kSlots = 64;   // connections

  struct Connection {
    Echo& echo;
    std::uint32_t slot;
    al::Qp qp{};
    al::CmQueryIn state{};
    al::CmQueryOut attributes{};
    al::CmAcceptIn accept{};
    al::CmHandleIn name{};
    al::CmMessageIn confirm{};
    al::CmEvent event{};
    ib::io::Irp irp{};  // accept(), then wait_event()
    bool is_leaving = false;
  };

  void listen();
  void register_service();
  void wait_for_request();
  void take_request();
  void accept(Connection& connection);
  void wait_for_event(Connection& connection);
  void drop(Connection& connection);
  void take_completions();
  void receive(Connection& connection);

  al::System& system_;
  Where where_;
  al::Al al_;
  al::Ca ca_;
  al::Cm cm_;
  al::Sa sa_;
  parts::Requests requests_;
  std::string problem_;
  bool ending_ = false;
  al::Pd pd_;
  al::Cq cq_;
  ib::verbs::control::AllocDmIn room_{std::uint64_t{kSlot} * kSlots, 12, 0};
  al::DeviceMemory memory_;
  al::Region region_;
  al::CmListenIn listen_in_;
  al::CmHandleIn listener_;
  al::SaServiceIn service_;
  ib::io::Irp service_irp_;
  bool is_registered_ = false;
  al::CmRequest request_;
  ib::io::Irp request_irp_;  // listen(), then get_request()
  std::map<std::uint32_t, std::unique_ptr<Connection>> connections_;  // by slot
  std::uint64_t served_ = 0;
  std::uint64_t echoed_ = 0;
};

}  // namespace echo
