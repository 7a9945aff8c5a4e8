// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Daemon: a whole softibd but for the process around it: it owns fabric, devices and clients, in
// the order in which they end. daemon_main.cpp gives it a process, in_process_daemon.h a thread.
#pragma once

#include "linux/server/event_loop.h"
#include "linux/server/server_device_memory.h"
#include "linux/server/server_directory.h"
#include "linux/server/stream_sockets.h"
#include "setup/fabric_config.h"
#include "softibd/daemon_clients.h"
#include "softibd/daemon_devices.h"
#include "softibd/daemon_log.h"
#include "softibd/daemon_options.h"
#include "softibd/daemon_session.h"
#include "softibd/daemon_setup.h"
#include "softibd/daemon_verify.h"
#include "softibd/lifetime/daemon_shutdown.h"
#include "softibd/lifetime/idle_exit.h"
#include "softibd/lifetime/manager_program.h"

#include <memory>
#include <optional>
#include <string>

namespace ib::softib {

// classes: allow(members) the parts of a softibd, one each
class Daemon : public SessionHost {
 public:
  // Claims its place in the runtime directory and builds everything; clients can connect when it
  // returns and are served by run(). AlreadyExists: the fabric is up. Passive level.
  static Result<std::unique_ptr<Daemon>> create(const DaemonOptions& options, DaemonLog& log,
                                                std::string& reason);
  ~Daemon() override;

  // Until the end, on the calling thread. Once.
  DaemonExit run();
  // A child of the process has ended. The loop's thread.
  void on_child_ended();
  // Begins the end; `why` is for the log. Any thread.
  void stop(const std::string& why);

  os::EventLoop& loop() { return loop_; }
  DaemonDevices& devices() { return *devices_; }  // the loop's thread
  const std::string& socket_path() const { return directory_->socket_path(); }

 private:
  Daemon(const DaemonOptions& options, DaemonLog& log);
  Status build(std::string& reason);
  Status build_devices(const FabricConfig& config, std::string& reason);

  // SessionHost
  io::DeviceObject& root_device() override { return devices_->root().device(); }
  Result<io::DeviceObject*> resolve(const std::string& node, const std::string& path,
                                    std::string& reason) override;
  Result<os::NativeHandle> make_status(const verbs::control::StatusIn* part,
                                       std::string& reason) override;
  Result<os::NativeHandle> subnet_managers(const verbs::control::SmIn& in,
                                           std::string& reason) override;
  io::DeviceObject* rdma_cm_device() override { return &devices_->rdma_cm_device().device(); }
  io::DeviceObject* umad_device() override { return &devices_->umad_device().device(); }
  io::DeviceObject* stream_device() override { return &devices_->streams().device(); }
  Result<ProgramService> service(const verbs::control::OpenServiceIn& in, const io::Client& client,
                                 std::string& reason) override;
  void disconnect(io::FileObject& process) override;
  void send_down(io::IrpRef irp) override;
  void on_close_asked(const io::FileObject& file) override;
  void keep(bool on) override;
  std::string needed_by() const override;
  void shut_down(const std::string& who) override;
  void on_attached() override { idle_.on_attached(); }
  void on_over(DaemonSession& session) override;

  void on_clients_changed();
  void on_ready();
  void start_opensm();
  void begin_end(const std::string& why);

  const DaemonOptions options_;
  DaemonLog& log_;
  os::EventLoop loop_;
  OwnFabric fabric_;
  os::ServerDeviceMemory memory_;
  os::StreamSockets stream_sockets_;
  std::unique_ptr<os::ServerDirectory> directory_;
  std::unique_ptr<DaemonVerify> verify_;  // null: off
  std::unique_ptr<DaemonDevices> devices_;
  DaemonClients clients_;
  std::unique_ptr<DaemonShutdown> shutdown_;
  IdleExit idle_;
  std::unique_ptr<ManagerProgram> opensm_;  // null: there is none
  // Looks at the subnet managers, each after a millisecond or more, before clients are served.
  struct {
    int left = 20'000;
    std::unique_ptr<platform::Timer> timer{};
  } setup_;
};

}  // namespace ib::softib
