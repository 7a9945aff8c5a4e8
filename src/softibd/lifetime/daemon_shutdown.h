// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DaemonShutdown: the end of softibd, in order: the sessions, the services, the devices; with
// --verify a look for what is left. A driver that keeps requests delays it by some seconds.
//
// Thread rule: the loop's thread.
#pragma once

#include "io/irp.h"
#include "platform/executor.h"
#include "softibd/daemon_clients.h"
#include "softibd/daemon_devices.h"
#include "softibd/daemon_log.h"
#include "softibd/daemon_options.h"
#include "softibd/daemon_verify.h"

#include <memory>

namespace ib::softib {

class DaemonShutdown {
 public:
  // `verify`: nullptr without --verify.
  DaemonShutdown(os::EventLoop& loop, DaemonLog& log, DaemonClients& clients,
                 DaemonDevices& devices, DaemonVerify* verify)
      : loop_(loop), log_(log), clients_(clients), devices_(devices), verify_(verify) {}
  DaemonShutdown(const DaemonShutdown&) = delete;
  DaemonShutdown& operator=(const DaemonShutdown&) = delete;

  // Once. Stops the loop at the end.
  void begin();
  bool has_begun() const { return begun_; }
  // No session is left.
  void on_no_clients();
  DaemonExit exit() const { return exit_; }

 private:
  void close_services();
  void power_off();
  void look_for_leftovers();
  void give_up();

  os::EventLoop& loop_;
  DaemonLog& log_;
  DaemonClients& clients_;
  DaemonDevices& devices_;
  DaemonVerify* verify_;
  bool begun_ = false;
  io::Irp closing_services_;
  DaemonExit exit_ = DaemonExit::Ended;
  std::unique_ptr<platform::Timer> time_limit_;
};

}  // namespace ib::softib
