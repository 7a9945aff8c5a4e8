// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the first program of a node to its last.
#include "softib_net/net_node.h"

#include "linux/net/namespaces.h"
#include "linux/process/client_handle.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace ib::softib_net {
namespace {

// A driver that is not ready by then has no fabric behind it yet; programs start without carrier.
constexpr std::chrono::seconds kPatience{10};

platform::NativeHandle copy_of(const platform::NativeHandle& handle) {
  if (!handle.valid()) return {};
  return os::own_descriptor(::fcntl(handle.get(), F_DUPFD_CLOEXEC, 0));
}

void remove(std::vector<NetClient*>& list, const NetClient& client) {
  std::erase(list, &client);
}

}  // namespace

NetNode::NetNode(os::EventLoop& loop, Owner& owner, std::string name,
                 platform::NativeHandle attached_to)
    : loop_(loop),
      owner_(owner),
      name_(std::move(name)),
      attached_(attached_to.valid()),
      namespace_(std::move(attached_to)) {}

void NetNode::join(NetClient& client, os::net::NodePlace place, std::vector<softib::PlanEntry> plan,
                   bool hold) {
  place_ = std::move(place);
  place_.connected_mode = mode_ == softib::IpoibMode::Connected;
  plan_ = std::move(plan);
  waiting_.push_back({&client, hold});
  other_process_.reset();
  if (process_ == nullptr) return start_process();
  if (!process_->is_stopping() && ready_) admit({});
}

void NetNode::leave(NetClient& client) {
  std::erase_if(waiting_, [&](const Waiting& one) { return one.client == &client; });
  remove(reports_, client);
  remove(detaching_, client);
  holders_.erase(&client);
  end_if_unused();
}

void NetNode::detach(NetClient& client) {
  if (process_ == nullptr) return client.answer(Status::Ok);
  detaching_.push_back(&client);
  process_->stop();
}

void NetNode::report(NetClient& client) {
  if (process_ == nullptr || !ready_) {
    const std::string why = failure_.empty() ? "it is not ready" : failure_;
    return client.answer(Status::NotFound, fmt::format("{} has no driver: {}", name_, why));
  }
  reports_.push_back(&client);
  process_->request_report();
}

bool NetNode::is_over() const {
  return process_ == nullptr && waiting_.empty() && holders_.empty() && other_process_ == nullptr;
}

bool NetNode::is_unused() {
  if (!waiting_.empty() || !holders_.empty()) return false;
  const bool has_driver = process_ != nullptr && !process_->is_stopping();
  return !has_driver && !watch_a_process();
}

std::string NetNode::json() const {
  nlohmann::ordered_json json{{"node", name_},
                              {"attached", attached_},
                              {"mode", softib::ipoib_mode_name(mode_)},
                              {"network_namespace", os::net::namespace_id(namespace_.get()).inode},
                              {"driver_pid", process_ != nullptr ? process_->pid() : 0},
                              {"ready", ready_},
                              {"programs", holders_.size()}};
  if (!failure_.empty()) json["failure"] = failure_;
  return json.dump();
}

void NetNode::start_process() {
  ready_ = false;
  failure_.clear();
  NodeStart start{place_, plan_, copy_of(namespace_), !attached_};
  auto process = NodeProcess::start(loop_, std::move(start), owner_.make_driver(), *this);
  if (!process) {
    fail("no process can be made");
    return end_if_unused();
  }
  process_ = *std::move(process);
  patience_ = loop_.at(loop_.now() + kPatience, [this] {
    if (ready_ || !namespace_.valid()) return;
    admit(fmt::format("the network of {} is not ready after {} s", name_, kPatience.count()));
  });
}

// Programs that wait may start.
void NetNode::admit(std::string_view warning) {
  for (const Waiting& one : std::exchange(waiting_, {})) {
    std::array<platform::NativeHandle, 2> files;
    if (one.hold) {
      files = {owner_.user_namespace(), copy_of(namespace_)};
      holders_.insert(one.client);
    }
    one.client->answer(Status::Ok, warning, std::move(files));
  }
}

void NetNode::fail(std::string_view reason) {
  failure_ = reason;
  for (const Waiting& one : std::exchange(waiting_, {}))
    one.client->answer(Status::IoError, reason);
}

void NetNode::end_if_unused() {
  if (!waiting_.empty() || !holders_.empty()) return;
  if (attached_ && process_ != nullptr) return;
  if (!attached_ && watch_a_process()) return;
  if (process_ != nullptr) return process_->stop();
  owner_.on_over(*this);
}

// Returns whether a process has the network without a connection; its end is waited for then.
bool NetNode::watch_a_process() {
  other_process_.reset();
  const os::net::NamespaceId id = os::net::namespace_id(namespace_.get());
  if (id.inode == 0) return false;
  const std::array<pid_t, 1> own{process_ != nullptr ? process_->pid() : 0};
  for (;;) {
    const auto pid = os::net::find_process_in(id, own);
    if (!pid) return false;
    auto end = os::net::ProcessEnd::wait(loop_, *pid, [this] { end_if_unused(); });
    if (end) {
      other_process_ = *std::move(end);
      return true;
    }
    if (end.error() != Status::NotFound) return false;
  }
}

void NetNode::on_namespace(platform::NativeHandle network_namespace) {
  if (!namespace_.valid()) namespace_ = std::move(network_namespace);
}

void NetNode::on_ready() {
  if (ready_ || process_->is_stopping()) return;
  ready_ = true;
  patience_.reset();
  admit({});
  end_if_unused();
}

void NetNode::on_report(platform::NativeHandle file) {
  if (reports_.empty()) return;
  NetClient* const client = reports_.front();
  reports_.erase(reports_.begin());
  std::array<platform::NativeHandle, 2> files;
  files[0] = std::move(file);
  client->answer(Status::Ok, {}, std::move(files));
}

void NetNode::on_log(std::string_view line) {
  owner_.log(fmt::format("{}: {}", name_, line));
}

void NetNode::on_end(const std::string& reason) {
  const bool was_stopped = process_->is_stopping();
  process_.reset();
  patience_.reset();
  ready_ = false;
  for (NetClient* client : std::exchange(detaching_, {})) client->answer(Status::Ok);
  for (NetClient* client : std::exchange(reports_, {}))
    client->answer(Status::NotFound, fmt::format("the driver of {} has ended", name_));
  if (was_stopped && !waiting_.empty()) return start_process();
  if (!was_stopped) {
    owner_.log(fmt::format("{}: the network has lost its driver: {}", name_, reason));
    fail(reason.empty() ? "its driver has ended" : reason);
  }
  end_if_unused();
}

}  // namespace ib::softib_net
