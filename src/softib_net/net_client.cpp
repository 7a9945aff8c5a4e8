// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib_net/net_client.h"

#include <cstring>
#include <utility>
#include <vector>

namespace ib::softib_net {

NetClient::NetClient(std::unique_ptr<os::ServerConnection> connection, Owner& owner)
    : connection_(std::move(connection)), owner_(owner) {
  connection_->start(*this);
}

void NetClient::answer(Status status, std::string_view text,
                       std::array<platform::NativeHandle, 2> files) {
  softib::NetAnswer head;
  head.status = static_cast<std::uint32_t>(status);
  text = text.substr(0, softib::kMostNetText);
  std::vector<std::byte> bytes(sizeof head + text.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!text.empty()) std::memcpy(bytes.data() + sizeof head, text.data(), text.size());
  connection_->send(bytes, std::move(files));
}

void NetClient::on_message(os::ServerMessage message) {
  if (has_asked_) return connection_->close();
  has_asked_ = true;
  auto request = softib::parse_net_request(message.bytes);
  if (!request || message.truncated) {
    const bool is_other = request.error() == Status::NotSupported;
    return answer(
        is_other ? Status::NotSupported : Status::Malformed,
        is_other ? "softib-net is of another version than softib" : "not a request of softib's");
  }
  owner_.on_request(*this, *std::move(request), std::move(message.handles[0]));
}

void NetClient::on_closed() {
  owner_.on_gone(*this);
}

}  // namespace ib::softib_net
