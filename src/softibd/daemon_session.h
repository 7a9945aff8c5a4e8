// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DaemonSession: one client, that is one connection to softibd. Turns messages into IRPs and
// completed IRPs into answers; owns the files that the client opened.
//
// Nothing is read until file 0 is open. Once the socket has gone, the driver of file 0 gets the end
// of the process, then the files end in the order of io/client_files.h; then the host may destroy
// the session.
//
// Thread rule: the loop's thread. Requests are completed there too.
#pragma once

#include "io/client_files.h"
#include "io/device.h"
#include "linux/server/server_connection.h"
#include "softibd/daemon_request.h"
#include "softibd/device_files/program_services.h"
#include "softibd/device_files/session_rdma_cm.h"
#include "softibd/device_files/session_umad.h"
#include "verbs/control_sm.h"
#include "verbs/control_status.h"
#include "verbs/control_streams.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ib::softib {

class DaemonSession;

// The daemon's services for a session.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual io::DeviceObject& root_device() = 0;
  virtual Result<io::DeviceObject*> resolve(const std::string& node, const std::string& path,
                                            std::string& reason) = 0;
  // A memory file with the state of the fabric (Code::Status); `part`: its input, nullptr: none.
  virtual Result<os::NativeHandle> make_status(const verbs::control::StatusIn* part,
                                               std::string& reason) = 0;
  // softib's own subnet managers: carries the action out, and returns a memory file that shows
  // them.
  virtual Result<os::NativeHandle> subnet_managers(const verbs::control::SmIn& /*in*/,
                                                   std::string& reason) {
    reason = "no subnet manager here";
    return Status::NotSupported;
  }
  // The devices of rdma_cm, and of umad and issm files; nullptr if there is none.
  virtual io::DeviceObject* rdma_cm_device() { return nullptr; }
  virtual io::DeviceObject* umad_device() { return nullptr; }
  // The device of streams, which takes requests of file 0; nullptr if there is none.
  virtual io::DeviceObject* stream_device() { return nullptr; }
  // The service that the client `client` opens.
  virtual Result<ProgramService> service(const verbs::control::OpenServiceIn& /*in*/,
                                         const io::Client& /*client*/, std::string& reason) {
    reason = "no services here";
    return Status::NotSupported;
  }
  virtual void disconnect(io::FileObject& process) = 0;  // before its requests are cancelled
  // Starts a request to the device of its file.
  virtual void send_down(io::IrpRef irp) {
    io::DeviceObject& device = irp->file->device();
    io::call_driver(device, std::move(irp));
  }
  virtual void on_close_asked(const io::FileObject&) {}  // by the client; Close follows
  virtual void keep(bool on) = 0;
  // Returns the programs that need the fabric, besides one client; empty: none.
  virtual std::string needed_by() const = 0;
  virtual void shut_down(const std::string& who) = 0;
  virtual void on_attached() = 0;                    // some session, now or earlier
  virtual void on_over(DaemonSession& session) = 0;  // destroys it, later
};

// classes: allow(methods) messages, requests and files of one connection, and the end of each
class DaemonSession : private os::ServerConnection::Handler, private io::ClientFiles::Owner {
 public:
  // The number of requests that one session may have under way; further ones are not read from the
  // socket. Those of services wait for others, and have a limit of their own.
  static constexpr std::size_t kMaxPending = 64;
  static constexpr std::size_t kMaxFiles = 8192;

  DaemonSession(SessionHost& host, std::unique_ptr<os::ServerConnection> connection,
                std::uint64_t id);
  DaemonSession(const DaemonSession&) = delete;
  DaemonSession& operator=(const DaemonSession&) = delete;
  ~DaemonSession() override;  // it is over

  void start();
  void end();  // as if the client had gone
  bool is_over() const { return files_.is_over(); }
  // The process whose services it has, by its session; 0: none.
  std::uint64_t serves() const { return services_.process; }
  const io::Client& client() const { return client_; }
  // The node on which the client runs, or a program will that `softib run` becomes; empty: not
  // known.
  const std::string& node() const { return client_.node.empty() ? run_node_ : client_.node; }
  // Also before its end is detected: a process that has been waited for has gone.
  bool client_has_gone() const { return connection_->peer_has_gone(); }

 private:
  struct Buffers;
  struct Request;

  void on_message(os::ServerMessage message) override;
  void on_look(bool last) override;
  void on_drained() override;
  void on_closed() override;
  void close_file(io::ClientFile& file) override;
  void on_over() override { host_.on_over(*this); }

  void carry_out(const ParsedRequest& parsed, std::array<os::NativeHandle, 2> handles);
  bool dispatch(Request& request, io::ClientFile& file);
  void open_file(Request& request);
  void send_create(Request& request, io::DeviceObject& device, std::uint32_t number,
                   io::FileObject* process);
  void close_file(Request& request);
  void send_close(Request& request, io::ClientFile& file);
  bool carry_out_here(Request& request);
  void keep(Request& request);
  void status(Request& request);
  void subnet_managers(Request& request);
  void open_mailbox(Request& request);
  void rdma_cm(Request& request);
  void go_on(Request& first, Status created, std::string_view reason);
  void send_to(Request& request, std::uint32_t number);
  void umad(Request& request);
  void stream(Request& request);
  void open_service(Request& request);
  void of_service(Request& request, std::uint32_t number);
  bool is_full() const { return requests_.size() - services_.requests >= kMaxPending; }

  static void on_request_done(io::Irp& irp, void* context);
  void finish(Request& request);
  void answer(Request& request);
  void fail(Request& request, Status status, std::string_view reason);
  void forget(Request& request);

  Request& new_request(std::uint64_t tag, verbs::control::Code code);

  SessionHost& host_;
  std::unique_ptr<os::ServerConnection> connection_;
  io::Client client_;
  std::string run_node_;
  io::ClientFiles files_{*this};
  std::list<Request> requests_;     // under way
  std::unique_ptr<Buffers> spare_;  // of the last one that ended
  SessionRdmaCm rdma_cm_;
  Request* opens_rdma_cm_ = nullptr;  // its Create; requests wait for it
  SessionUmad umad_;
  struct Services {
    std::uint64_t process = 0;      // of which process; 0: no file was opened
    std::set<std::uint32_t> files;  // by number; maybe some that are closed
    std::size_t requests = 0;       // to them, of requests_
  } services_;
};

}  // namespace ib::softib
