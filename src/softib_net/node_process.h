// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process of a node as softib-net sees it. It ends with softib-net, whatever ends that.
// Thread rule: the loop's thread; softib-net has no other.
#pragma once

#include "linux/server/event_loop.h"
#include "linux/server/server_connection.h"
#include "softib_net/node_main.h"

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ib::softib_net {

class NodeProcess final : private os::ServerConnection::Handler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_namespace(platform::NativeHandle network_namespace) = 0;
    virtual void on_ready() = 0;
    virtual void on_report(platform::NativeHandle file) = 0;
    virtual void on_log(std::string_view line) = 0;
    // It has ended and is reaped. `reason`: in words; empty: in order. Destroys the process.
    virtual void on_end(const std::string& reason) = 0;
  };

  // ! InsufficientResources
  static Result<std::unique_ptr<NodeProcess>> start(os::EventLoop& loop, NodeStart start,
                                                    const MakeDriver& make_driver, Owner& owner);
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;
  ~NodeProcess() override;  // kills it

  pid_t pid() const { return pid_; }
  void request_report();
  // on_end() follows; after some seconds it is killed.
  void stop();
  bool is_stopping() const { return deadline_ != nullptr; }

 private:
  NodeProcess(os::EventLoop& loop, platform::NativeHandle channel, pid_t pid, Owner& owner);
  void on_message(os::ServerMessage message) override;
  void on_closed() override;
  std::string reap();

  os::EventLoop& loop_;
  Owner& owner_;
  pid_t pid_;
  std::unique_ptr<os::ServerConnection> channel_;
  std::unique_ptr<platform::Timer> deadline_;
  std::string failure_;  // in its own words
};

}  // namespace ib::softib_net
