// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection to softib-net: one request, one answer. Thread rule: the loop's thread.
#pragma once

#include "linux/server/server_connection.h"
#include "setup/net/net_messages.h"

#include <array>
#include <memory>
#include <string_view>

namespace ib::softib_net {

class NetClient final : private os::ServerConnection::Handler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // `file`: that which came with the request, if one did.
    virtual void on_request(NetClient& client, softib::ParsedNetRequest request,
                            platform::NativeHandle file) = 0;
    virtual void on_gone(NetClient& client) = 0;  // destroys the client
  };

  NetClient(std::unique_ptr<os::ServerConnection> connection, Owner& owner);
  NetClient(const NetClient&) = delete;
  NetClient& operator=(const NetClient&) = delete;
  ~NetClient() override = default;

  void answer(Status status, std::string_view text = {},
              std::array<platform::NativeHandle, 2> files = {});

 private:
  void on_message(os::ServerMessage message) override;
  void on_closed() override;

  std::unique_ptr<os::ServerConnection> connection_;
  Owner& owner_;
  bool has_asked_ = false;
};

}  // namespace ib::softib_net
