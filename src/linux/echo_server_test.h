// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The side of softibd in tests of mailboxes: it answers with what it was sent.
#pragma once

#include "linux/mailbox.h"
#include "linux/process/client_handle.h"
#include "linux/server/event_loop.h"
#include "linux/server/server_connection.h"
#include "linux/server/server_mailbox.h"
#include "verbs/control.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace ib::os {

inline constexpr std::uint32_t kEcho = 1;
inline constexpr std::uint32_t kEchoLater = 2;     // after others have had their turn
inline constexpr std::uint32_t kLongAnswer = 3;    // longer than the mailbox has room for
inline constexpr std::uint32_t kHandleAnswer = 4;  // with a descriptor
inline constexpr std::size_t kLong = MailboxPage::kAnswerBytes + 1;

// Answers requests by their code.
class EchoServer : public ServerConnection::Handler {
 public:
  EchoServer(EventLoop& loop, platform::NativeHandle socket)
      : loop_(loop),
        connection_(std::make_unique<ServerConnection>(
            loop, std::move(socket),
            std::make_shared<std::vector<std::byte>>(verbs::control::kMaxMessage))) {
    connection_->start(*this);
  }
  ServerConnection& connection() { return *connection_; }

  void on_message(ServerMessage message) override {
    sizes.push_back(message.bytes.size());
    if (stops) loop_.stop();
    verbs::control::RequestHeader header;
    if (message.bytes.size() < sizeof header) return;
    std::memcpy(&header, message.bytes.data(), sizeof header);
    const auto body = message.bytes.subspan(sizeof header);
    if (header.code == static_cast<std::uint32_t>(verbs::control::Code::OpenMailbox)) {
      std::string reason;
      Result<platform::NativeHandle> file = connection_->open_mailbox(reason);
      if (!file) return answer(header.tag, file.error(), std::as_bytes(std::span(reason)));
      return answer(header.tag, Status::Ok, {}, *std::move(file));
    }
    if (header.code == kEchoLater) {
      timers_.push_back(loop_.at(
          loop_.now(), [this, tag = header.tag, copy = std::vector(body.begin(), body.end())] {
            answer(tag, Status::Ok, copy);
          }));
      return;
    }
    if (header.code == kLongAnswer) {
      const std::vector<std::byte> text(kLong, std::byte{'l'});
      return answer(header.tag, Status::Ok, text);
    }
    if (header.code == kHandleAnswer) {
      return answer(header.tag, Status::Ok, body, own_descriptor(::dup(0)));
    }
    answer(header.tag, Status::Ok, body);
  }
  void on_closed() override { closed = true; }

  std::vector<std::size_t> sizes;  // of the messages
  bool closed = false;
  bool stops = false;  // the loop, at each message: before it sleeps

 private:
  void answer(std::uint64_t tag, Status status, std::span<const std::byte> body,
              platform::NativeHandle handle = {}) {
    verbs::control::ReplyHeader header;
    std::vector<std::byte> bytes(sizeof header + body.size());
    header.length = static_cast<std::uint32_t>(bytes.size());
    header.status = static_cast<std::uint32_t>(status);
    header.tag = tag;
    std::memcpy(bytes.data(), &header, sizeof header);
    if (!body.empty()) std::memcpy(bytes.data() + sizeof header, body.data(), body.size());
    std::array<platform::NativeHandle, 2> handles;
    handles[0] = std::move(handle);
    connection_->send(bytes, std::move(handles));
  }

  EventLoop& loop_;
  std::unique_ptr<ServerConnection> connection_;
  std::vector<std::unique_ptr<platform::Timer>> timers_;
};

}  // namespace ib::os
