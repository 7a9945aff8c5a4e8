// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The client end of the control socket (verbs/control.h): AF_UNIX, SOCK_SEQPACKET, one call at a
// time. After any failure of the socket the channel stays Disconnected.
//
// Fork: the connection belongs to the process that opened it. A child made with fork() has its copy
// of the socket closed before fork() returns (else softibd would miss the parent's death), and
// every call in the child gives Disconnected.
#pragma once

#include "base/result.h"
#include "linux/client/client_socket.h"
#include "platform/control_channel.h"

#include <memory>
#include <string>

namespace ib::os {

// As of connect_socket().
Result<std::unique_ptr<platform::ControlChannel>> connect_channel(const std::string& path,
                                                                  std::string& reason);

// A channel over a socket that is connected already.
std::unique_ptr<platform::ControlChannel> channel_over(platform::NativeHandle socket);

}  // namespace ib::os
