// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The socket of a connection to softibd (verbs/control.h): AF_UNIX, SOCK_SEQPACKET.
#pragma once

#include "base/result.h"
#include "platform/control_channel.h"

#include <string>

namespace ib::os {

inline constexpr const char* kSocketVariable = "SOFTIB_SOCKET";

// Connects to the softibd that listens at `path`; an empty path means that SOFTIB_SOCKET is unset.
// NotFound: no path or no socket there; Disconnected: no listener; AccessDenied: not permitted.
Result<platform::NativeHandle> connect_socket(const std::string& path, std::string& reason);

}  // namespace ib::os
