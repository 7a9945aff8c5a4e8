// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IpoibDriver: IP over InfiniBand for one node (docs/design/0034): the loop that joins the TAPs of
// the node's network with queue pairs at its HCAs.
//
// One thread waits for frames of the kernel, completions, answers of softibd's services, events of
// HCAs and deadlines, and turns over all interfaces when something came. The threads of the user
// HCA only forward events.
#pragma once

#include "ipoib/adapter.h"
#include "ipoib/event_queue.h"
#include "ipoib/interface_report.h"
#include "linux/net/node_network.h"
#include "user/services/service_channel.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ib::ipoib::driver {

// classes: allow(members) it owns what the loop waits for
class IpoibDriver final : public os::net::NodeDriver {
 public:
  // The mode is that of the network, the capture that of the environment, SOFTIB_IPOIB_CAPTURE.
  static DriverOptions options_of(const os::net::NodePlace& place);

  explicit IpoibDriver(DriverOptions options) : options_(std::move(options)) {}
  ~IpoibDriver() override;

  Status run(os::net::NodeNetwork& network, std::string& reason) override;

 private:
  Status start(os::net::NodeNetwork& network, std::string& reason);
  Status make_poll(std::string& reason);
  void open_adapter(std::uint64_t guid);
  void close_adapter(std::uint32_t file);
  // Returns whether all interfaces have nothing left to do.
  bool serve_interfaces();
  bool watch_taps();
  void wait(Instant now, bool idle);
  void read_completion_events();
  void take_events(Instant now);
  void tell_interfaces();
  void report_when_settled(Instant now);
  // Returns false on Stop.
  bool take_network_events();
  template <class Do>
  void for_each(Do&& what) const;
  Instant now() const;

  DriverOptions options_;
  os::net::NodeNetwork* network_ = nullptr;
  EventQueue events_;
  platform::NativeHandle poll_;
  std::unique_ptr<user::Process> process_;
  std::unique_ptr<user::CompletionChannel> completions_;
  std::unique_ptr<user::ServiceChannel> services_;
  std::vector<std::unique_ptr<Adapter>> adapters_;
  InterfaceReport report_;                              // to softibd
  std::map<std::uint64_t, std::uint32_t> first_ports_;  // by GUID, of HCAs that left, too
  std::uint32_t next_port_ = 0;
  struct Ready {
    bool services = false;
    bool network = false;
  };
  Ready ready_;
  std::map<int, bool> watched_;  // TAPs by descriptor: whether frames are waited for
  Instant started_{};
  bool reported_ready_ = false;
  bool over_ = false;  // softibd is gone
};

}  // namespace ib::ipoib::driver
