// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DaemonVerify: softibd with --verify (docs/design/0007): the I/O verifier, its faults in device
// memory, and the objects that clients and drivers leave behind.
//
// Thread rule: the loop's thread.
#pragma once

#include "io/verifier.h"
#include "platform/device_memory_host.h"
#include "platform/executor.h"
#include "softibd/daemon_devices.h"
#include "softibd/daemon_log.h"
#include "softibd/daemon_options.h"
#include "softibd/verifying_memory.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace ib::softib {

class DaemonVerify {
 public:
  // `memory`: what device memory comes from. Not Verify::Off.
  DaemonVerify(const DaemonOptions& options, platform::Executor& executor,
               platform::DeviceMemoryHost& memory, DaemonLog& log);
  DaemonVerify(const DaemonVerify&) = delete;
  DaemonVerify& operator=(const DaemonVerify&) = delete;

  // For the devices that are made: some calls of their memory, and steps of theirs, fail.
  platform::DeviceMemoryHost& memory() { return memory_; }
  std::function<bool(std::string_view site)> faults();
  // They are made: their requests, and those of the access layer, are looked at.
  void watch(DaemonDevices& devices);

  void send(io::IrpRef irp) { verifier_.send(std::move(irp)); }
  std::uint64_t findings() const { return verifier_.findings(); }
  std::vector<std::string> under_way() const { return verifier_.under_way(); }
  // To the trace: objects of a file that ends. No finding: a program may leave them to softibd.
  void report_leftovers(const io::FileObject& file);
  // All devices are down: waits for what is left, for a while. `done` gets the number of findings.
  void look_for_leftovers(const std::function<void(std::uint64_t findings)>& done);

 private:
  io::VerifierOptions verifier_options(const DaemonOptions& options);
  void look_again(int looks_left, const std::function<void(std::uint64_t findings)>& done);

  platform::Executor& executor_;
  DaemonLog& log_;
  DaemonDevices* devices_ = nullptr;
  io::Verifier verifier_;
  VerifyingMemory memory_;
  std::unique_ptr<platform::Timer> timer_;
};

}  // namespace ib::softib
