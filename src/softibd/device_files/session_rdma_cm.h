// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SessionRdmaCm: librdmacm's device file of one session: its commands, the one that waits for an
// event, and the event that is offered in the mailbox.
//
// Thread rule: the loop's thread.
#pragma once

#include "io/irp.h"
#include "linux/server/server_connection.h"
#include "softibd/device_files/daemon_rdma_cm.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace ib::softib {

class SessionHost;

class SessionRdmaCm {
 public:
  // A command that waited is over: `answered`, or its client has gone.
  using Done = std::function<void(bool answered)>;

  SessionRdmaCm(SessionHost& host, os::ServerConnection& connection);
  SessionRdmaCm(const SessionRdmaCm&) = delete;
  SessionRdmaCm& operator=(const SessionRdmaCm&) = delete;
  ~SessionRdmaCm();

  // OpenRdmaCm. The answer is in `irp`.
  Status open(io::Irp& irp, std::string& reason);
  // RdmaCm. Pending: it waits for an event, and `done` follows.
  Status command(io::Irp& irp, std::span<std::byte> output, Done done, std::string& reason);
  // The session has a mailbox: events may come in it.
  void use_mailbox();

  // os::ServerConnection::Handler::on_look(), while a command waits.
  void on_look(bool last);
  // The client has gone.
  void end();

 private:
  struct Waiting;
  class Offer;

  bool await_event(io::Irp& irp, std::span<std::byte> output, std::uint32_t file, Done& done);
  void end_wait();
  void close();

  SessionHost& host_;
  os::ServerConnection& connection_;
  std::uint32_t pid_;       // of the client
  std::uint32_t file_ = 0;  // 0: none is open
  std::shared_ptr<Waiting> waiting_;
  std::unique_ptr<Offer> offer_;  // once there is a mailbox
};

}  // namespace ib::softib
