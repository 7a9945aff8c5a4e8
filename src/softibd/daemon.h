// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Daemon: a whole softibd but for the process around it: fabric, devices, server and sessions, and
// the decision when to end. daemon_main.cpp gives it a process, in_process_daemon.h a thread.
#pragma once

#include "io/verifier.h"
#include "linux/server/event_loop.h"
#include "linux/server/module_host.h"
#include "linux/server/server_device_memory.h"
#include "linux/server/server_directory.h"
#include "linux/server/server_socket.h"
#include "setup/fabric_config.h"
#include "softibd/daemon_devices.h"
#include "softibd/daemon_log.h"
#include "softibd/daemon_options.h"
#include "softibd/daemon_session.h"
#include "softibd/verifying_memory.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace ib::softib {

class Daemon : public SessionHost {
 public:
  // Claims its place in the runtime directory and builds everything; clients can connect when it
  // returns and are served by run(). AlreadyExists: the fabric is up. Passive level.
  static Result<std::unique_ptr<Daemon>> create(const DaemonOptions& options, DaemonLog& log,
                                                std::string& reason);
  ~Daemon() override;

  // Until the end, on the calling thread. Once.
  DaemonExit run();
  // Begins the end; `why` is for the log. Any thread.
  void stop(const std::string& why);

  os::EventLoop& loop() { return loop_; }
  DaemonDevices& devices() { return *devices_; }  // the loop's thread
  const std::string& socket_path() const { return directory_->socket_path(); }

 private:
  Daemon(const DaemonOptions& options, DaemonLog& log) : options_(options), log_(log) {}
  Status build(std::string& reason);
  Status in_config(Status status, std::string& reason) const;
  Status make_tree_options(const FabricConfig& config, drivers::FabricTreeOptions& options,
                           std::string& reason);
  Status add_partitions(const FabricConfig& config, std::string& reason);
  void start_server();

  // SessionHost
  io::DeviceObject& root_device() override { return devices_->root().device(); }
  Result<io::DeviceObject*> resolve(const std::string& node, const std::string& path,
                                    std::string& reason) override;
  Result<os::NativeHandle> make_status(std::string& reason) override;
  DaemonRdmaCm* rdma_cm() override { return rdma_cm_.get(); }
  void disconnect(io::FileObject& process) override;
  void send_down(io::IrpRef irp) override;
  void on_close_asked(const io::FileObject& file) override { report_leftovers(file); }
  void keep(bool on) override;
  std::string needed_by() const override;
  void shut_down(const std::string& who) override;
  void on_attached() override { had_client_ = true; }
  void on_over(DaemonSession& session) override;

  void add_session(std::unique_ptr<os::ServerConnection> connection);
  void consider_idleness();
  void on_ready();
  void begin_end(const std::string& why);
  void close_services();
  void power_off();
  void give_up();

  // daemon_verify.cpp
  void build_verifier(drivers::SoftHcaOptions& options);
  platform::DeviceMemoryHost& memory_host();
  void report_leftovers(const io::FileObject& file);
  void look_for_leftovers(int tries);

  DaemonOptions options_;
  DaemonLog& log_;
  os::EventLoop loop_;
  std::optional<fabric::Fabric> fabric_;
  os::ServerDeviceMemory memory_;
  std::unique_ptr<os::ServerDirectory> directory_;
  os::DlopenHost modules_{loop_};
  std::unique_ptr<io::Verifier> verifier_;  // null: off
  std::unique_ptr<VerifyingMemory> verifying_memory_;
  std::unique_ptr<DaemonDevices> devices_;
  std::unique_ptr<DaemonRdmaCm> rdma_cm_;
  std::unique_ptr<os::ServerSocket> server_;
  std::map<std::uint64_t, std::unique_ptr<DaemonSession>> sessions_;
  std::uint64_t last_session_ = 0;
  Instant started_{};
  bool had_client_ = false;  // some process has attached
  bool ending_ = false;
  io::Irp closing_services_;
  DaemonExit exit_ = DaemonExit::Ended;
  std::unique_ptr<platform::Timer> idle_timer_;
  std::unique_ptr<platform::Timer> end_timer_;
};

}  // namespace ib::softib
