// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DaemonClients: the connections to softibd: its socket, and a session for each.
//
// Thread rule: the loop's thread.
#pragma once

#include "linux/server/event_loop.h"
#include "linux/server/server_socket.h"
#include "softibd/daemon_log.h"
#include "softibd/daemon_session.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ib::softib {

class DaemonClients {
 public:
  // `on_change`: one has come or gone.
  DaemonClients(SessionHost& host, os::EventLoop& loop, DaemonLog& log,
                std::function<void()> on_change)
      : host_(host), loop_(loop), log_(log), on_change_(std::move(on_change)) {}
  DaemonClients(const DaemonClients&) = delete;
  DaemonClients& operator=(const DaemonClients&) = delete;

  // Accepts connections from now on.
  void listen(os::NativeHandle listener);
  // Accepts no more; sessions live on.
  void stop_listening() { server_.reset(); }
  // As if all clients had gone.
  void end_sessions();
  // The process of a session is over: so are the connections by which it has services.
  void end_services(std::uint64_t process);
  // A session is over.
  void remove(std::uint64_t session);

  std::size_t size() const { return sessions_.size(); }
  bool empty() const { return sessions_.empty(); }
  std::vector<std::uint32_t> pids() const;  // of the clients that are here
  struct Program {
    std::string name;
    std::string node;  // empty: not known
  };
  // Those of them that are programs of the fabric, by process: no commands of softib.
  std::map<std::uint32_t, Program> programs() const;

 private:
  void add(std::unique_ptr<os::ServerConnection> connection);

  SessionHost& host_;
  os::EventLoop& loop_;
  DaemonLog& log_;
  std::function<void()> on_change_;
  std::unique_ptr<os::ServerSocket> server_;
  std::map<std::uint64_t, std::unique_ptr<DaemonSession>> sessions_;
  std::uint64_t last_session_ = 0;
};

}  // namespace ib::softib
