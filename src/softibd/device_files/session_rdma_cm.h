// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SessionRdmaCm: the program's end of the rdma_cm device in one session: notices of events go into
// the connection, events of which there is none yet into the mailbox.
//
// Thread rule: the loop's thread.
#pragma once

#include "linux/server/server_connection.h"
#include "services/rdma_cm/device/rdma_cm_device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace ib::softib {

class SessionRdmaCm final : public services::rdma_cm::RdmaCmClient {
 public:
  explicit SessionRdmaCm(os::ServerConnection& connection);
  SessionRdmaCm(const SessionRdmaCm&) = delete;
  SessionRdmaCm& operator=(const SessionRdmaCm&) = delete;
  ~SessionRdmaCm() override;

  // The number of the file in the session; 0: no request of it has come.
  std::uint32_t file() const { return file_; }
  void set_file(std::uint32_t number) { file_ = number; }
  // The session has a mailbox: events may come in it.
  void use_mailbox();

  // services::rdma_cm::RdmaCmClient
  void send_notice(std::span<const std::byte> ahead) override;
  services::rdma_cm::EventOffer* offer() override;
  bool is_watched() const override { return connection_.is_watched(); }
  void set_waiting(bool on) override { connection_.set_waiting(on); }

 private:
  class Offer;

  os::ServerConnection& connection_;
  std::uint32_t file_ = 0;
  std::unique_ptr<Offer> offer_;  // once there is a mailbox
};

}  // namespace ib::softib
