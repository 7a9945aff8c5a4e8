// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RequestChannel over a control socket that never blocks. Its descriptor is an epoll set of that
// socket: so it is readable also when there is room again for requests that had to wait.
//
// Fork: the connection belongs to the process that opened it, as that of client_channel.h.
#pragma once

#include "base/result.h"
#include "platform/request_channel.h"

#include <memory>
#include <string>

namespace ib::os {

// As of connect_socket() (client_socket.h); TooManyHandles.
Result<std::unique_ptr<platform::RequestChannel>> connect_for_requests(const std::string& path,
                                                                       std::string& reason);

}  // namespace ib::os
