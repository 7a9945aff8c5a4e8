// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The networks of the nodes of one fabric: who has them, when they end.
//
// A node's network begins with the first program that joins it, and ends with its last: when nobody
// holds a connection (setup/net/net_messages.h), and no process is in the network namespace, as
// /proc shows it. Programs that close all their descriptors are found by the second, programs that
// this process cannot see in /proc by the first. An attached network, in a namespace of others,
// ends by a request.
//
// A driver that ends by itself leaves the network without carrier; the next program that joins the
// node gets a new driver in the same namespace.
// Thread rule: the loop's thread.
#pragma once

#include "linux/server/event_loop.h"
#include "linux/server/server_socket.h"
#include "softib_net/net_client.h"
#include "softib_net/net_node.h"

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace ib::softib_net {

class NetServer final : private NetClient::Owner, private NetNode::Owner {
 public:
  struct Options {
    std::string fabric;
    std::string runtime_dir;
    MakeDriver make_driver;
    std::function<void(std::string_view)> log;
    std::function<void()> on_idle;  // the last network has ended, or none has begun in time
  };

  NetServer(os::EventLoop& loop, platform::NativeHandle listener, Options options);
  NetServer(const NetServer&) = delete;
  NetServer& operator=(const NetServer&) = delete;
  ~NetServer() override;

  // All networks end, then on_idle() is called.
  void stop();

 private:
  void on_request(NetClient& client, softib::ParsedNetRequest request,
                  platform::NativeHandle file) override;
  void on_gone(NetClient& client) override;
  const MakeDriver& make_driver() const override { return options_.make_driver; }
  platform::NativeHandle user_namespace() const override;
  void log(std::string_view line) override { options_.log(line); }
  void on_over(NetNode& node) override;

  void join(NetClient& client, softib::ParsedNetRequest request);
  void attach(NetClient& client, softib::ParsedNetRequest request, platform::NativeHandle to);
  void report(NetClient& client, const std::string& name);
  NetNode* find(const std::string& name);
  NetNode& add(const std::string& name, platform::NativeHandle attached_to);
  os::net::NodePlace place_of(const softib::ParsedNetRequest& request) const;
  void end_if_idle();

  os::EventLoop& loop_;
  Options options_;
  std::list<std::unique_ptr<NetClient>> clients_;
  std::map<std::string, std::unique_ptr<NetNode>> nodes_;
  std::unique_ptr<platform::Timer> first_request_;
  std::unique_ptr<os::ServerSocket> socket_;
};

}  // namespace ib::softib_net
