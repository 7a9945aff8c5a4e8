// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's table of TCP sockets: /proc/net/tcp and /proc/net/tcp6, of the network namespace of
// this process.
#pragma once

#include "platform/stream_host.h"

#include <istream>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ib::os {

// A socket in the state ESTABLISHED.
struct TcpLine {
  platform::TcpName local;
  platform::TcpName remote;
  bool has_descriptor = false;  // a connection that waits in a backlog has none
};

// A line of either file. Returns nothing for the headline and for sockets in other states.
std::optional<TcpLine> parse_tcp_line(std::string_view line);

// Sets `accepted[i]` where the table has the server's socket of `connections[i]` with a descriptor.
void find_accepted(std::istream& table, std::span<const platform::TcpPair> connections,
                   std::vector<bool>& accepted);

}  // namespace ib::os
