// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The network of one node in softib-net: its namespace, the process of its driver, and who has it.
// net_server.h says when it ends. Thread rule: the loop's thread.
#pragma once

#include "linux/net/process_end.h"
#include "softib_net/net_client.h"
#include "softib_net/node_process.h"

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib_net {

// classes: allow(members) the clients that wait for each of its answers are lists of their own
class NetNode final : private NodeProcess::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual const MakeDriver& make_driver() const = 0;
    virtual platform::NativeHandle user_namespace() const = 0;  // a descriptor of its own
    virtual void log(std::string_view line) = 0;
    virtual void on_over(NetNode& node) = 0;  // is_over(); not to be destroyed inside of the call
  };

  // `attached_to`: the namespace of others in which its interfaces are; invalid: its own.
  NetNode(os::EventLoop& loop, Owner& owner, std::string name, platform::NativeHandle attached_to);
  NetNode(const NetNode&) = delete;
  NetNode& operator=(const NetNode&) = delete;
  ~NetNode() override = default;

  const std::string& name() const { return name_; }
  bool is_attached() const { return attached_; }
  bool has_driver() const { return process_ != nullptr; }
  softib::IpoibMode mode() const { return mode_; }
  // Whether the next program begins a network, and decides on its mode.
  bool is_unused();
  void set_mode(softib::IpoibMode mode) { mode_ = mode; }

  // The client gets its answer when the driver is ready. `hold`: the network stays until the client
  // leaves.
  void join(NetClient& client, os::net::NodePlace place, std::vector<softib::PlanEntry> plan,
            bool hold);
  void leave(NetClient& client);
  void detach(NetClient& client);  // gets its answer when the driver has ended
  void report(NetClient& client);
  // One object of the list of all nodes, as JSON text.
  std::string json() const;

  // Nobody has it, and its driver has ended.
  bool is_over() const;

 private:
  struct Waiting {
    NetClient* client;
    bool hold;
  };

  void start_process();
  void admit(std::string_view warning);
  void fail(std::string_view reason);
  void end_if_unused();
  bool watch_a_process();

  void on_namespace(platform::NativeHandle network_namespace) override;
  void on_ready() override;
  void on_report(platform::NativeHandle file) override;
  void on_log(std::string_view line) override;
  void on_end(const std::string& reason) override;

  os::EventLoop& loop_;
  Owner& owner_;
  const std::string name_;
  const bool attached_;
  softib::IpoibMode mode_ = softib::IpoibMode::Datagram;
  platform::NativeHandle namespace_;
  os::net::NodePlace place_;
  std::vector<softib::PlanEntry> plan_;
  std::unique_ptr<NodeProcess> process_;
  bool ready_ = false;
  std::string failure_;  // why the last driver ended; empty: it has not, or in order
  std::unique_ptr<platform::Timer> patience_;
  std::vector<Waiting> waiting_;
  std::set<NetClient*> holders_;
  std::vector<NetClient*> reports_;
  std::vector<NetClient*> detaching_;
  std::unique_ptr<os::net::ProcessEnd> other_process_;  // in the namespace, without a connection
};

}  // namespace ib::softib_net
