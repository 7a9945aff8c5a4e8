// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests of `softib`, and the nodes that they are about.
#include "softib_net/net_server.h"

#include "linux/net/namespaces.h"
#include "linux/process/client_handle.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace ib::softib_net {
namespace {

constexpr std::chrono::seconds kFirstRequest{3};
constexpr std::size_t kMostClients = 60'000;

platform::NativeHandle file_of(std::string_view text) {
  platform::NativeHandle file = os::own_descriptor(::memfd_create("softib-net", MFD_CLOEXEC));
  while (file.valid() && !text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return file;
}

std::string other_mode(const NetNode& node, softib::IpoibMode wanted) {
  return fmt::format(
      "the network of {0} is there already, in {1} mode; the mode is that of the first program, "
      "until the last has ended\n"
      "  Join it with --net or --net={1}, or {2} before --net={3}.",
      node.name(), softib::ipoib_mode_name(node.mode()),
      node.is_attached() ? "`softib ipoib detach` the node" : "end its programs",
      softib::ipoib_mode_name(wanted));
}

}  // namespace

NetServer::NetServer(os::EventLoop& loop, platform::NativeHandle listener, Options options)
    : loop_(loop), options_(std::move(options)) {
  os::ServerSocket::Options settings;
  settings.max_message = softib::kMostNetRequest;
  settings.has_room = [this] { return clients_.size() < kMostClients; };
  settings.on_client = [this](std::unique_ptr<os::ServerConnection> connection, os::PeerProcess) {
    NetClient::Owner& owner = *this;
    clients_.push_back(std::make_unique<NetClient>(std::move(connection), owner));
  };
  settings.on_problem = [this](const char* what) { options_.log(what); };
  socket_ = std::make_unique<os::ServerSocket>(loop, std::move(listener), std::move(settings));
  first_request_ = loop_.at(loop_.now() + kFirstRequest, [this] { end_if_idle(); });
}

NetServer::~NetServer() = default;

void NetServer::stop() {
  nodes_.clear();
  end_if_idle();
}

void NetServer::on_request(NetClient& client, softib::ParsedNetRequest request,
                           platform::NativeHandle file) {
  switch (request.code) {
    case softib::NetCode::Join: return join(client, std::move(request));
    case softib::NetCode::Attach: return attach(client, std::move(request), std::move(file));
    case softib::NetCode::Detach: {
      NetNode* const node = find(request.node);
      if (node != nullptr && node->is_attached()) return node->detach(client);
      return client.answer(Status::NotFound, request.node + " is not attached");
    }
    case softib::NetCode::Report: return report(client, request.node);
  }
}

void NetServer::join(NetClient& client, softib::ParsedNetRequest request) {
  NetNode* node = find(request.node);
  if (node == nullptr) node = &add(request.node, {});
  if (node->is_unused()) node->set_mode(request.mode);
  if (request.needs_mode && node->mode() != request.mode) {
    return client.answer(Status::DeviceBusy, other_mode(*node, request.mode));
  }
  node->join(client, place_of(request), std::move(request.plan), true);
}

void NetServer::attach(NetClient& client, softib::ParsedNetRequest request,
                       platform::NativeHandle to) {
  if (!to.valid() || !os::net::is_network_namespace(to.get()))
    return client.answer(Status::InvalidParameter, "no network namespace came with the request");
  if (NetNode* const node = find(request.node); node != nullptr) {
    return client.answer(Status::DeviceBusy,
                         node->is_attached()
                             ? fmt::format("{} is attached already", request.node)
                             : fmt::format("{} has a network of its own, which programs of `softib "
                                           "run --net` use",
                                           request.node));
  }
  NetNode& node = add(request.node, std::move(to));
  node.set_mode(request.mode);
  node.join(client, place_of(request), std::move(request.plan), false);
}

void NetServer::report(NetClient& client, const std::string& name) {
  if (!name.empty()) {
    NetNode* const node = find(name);
    if (node != nullptr) return node->report(client);
    return client.answer(Status::NotFound, name + " has no network");
  }
  std::string text = "[";
  for (const auto& [_, node] : nodes_) text += (text.size() > 1 ? "," : "") + node->json();
  std::array<platform::NativeHandle, 2> files;
  files[0] = file_of(text + "]");
  client.answer(Status::Ok, {}, std::move(files));
}

void NetServer::on_gone(NetClient& client) {
  for (const auto& [_, node] : nodes_) node->leave(client);
  clients_.remove_if([&](const auto& one) { return one.get() == &client; });
}

platform::NativeHandle NetServer::user_namespace() const {
  return os::net::own_user_namespace();
}

// Later, since the node is in the middle of something; it may have got a new program by then.
void NetServer::on_over(NetNode& node) {
  loop_.post([this, name = node.name()] {
    NetNode* const one = find(name);
    if (one == nullptr || !one->is_over()) return;
    nodes_.erase(name);
    end_if_idle();
  });
}

NetNode* NetServer::find(const std::string& name) {
  const auto found = nodes_.find(name);
  return found != nodes_.end() ? found->second.get() : nullptr;
}

NetNode& NetServer::add(const std::string& name, platform::NativeHandle attached_to) {
  NetNode::Owner& owner = *this;
  auto node = std::make_unique<NetNode>(loop_, owner, name, std::move(attached_to));
  return *nodes_.emplace(name, std::move(node)).first->second;
}

os::net::NodePlace NetServer::place_of(const softib::ParsedNetRequest& request) const {
  return {request.socket, options_.runtime_dir, options_.fabric, request.node};
}

void NetServer::end_if_idle() {
  if (nodes_.empty()) options_.on_idle();
}

}  // namespace ib::softib_net
