// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asking softib-net (setup/net/net_messages.h) for the network of a node, and moving there.
#pragma once

#include "setup/fd.h"
#include "setup/net/net_messages.h"
#include "softib/launch/installation.h"

#include <optional>
#include <string>

namespace ib::softib {

struct NetPlace {
  std::string runtime_dir;  // prepared
  std::string fabric;
};

struct NetReply {
  Fd connection;
  std::string text;  // of an Ok answer
  Fd first;
  Fd second;
};

// Starts softib-net if it is not up. `file`: sent with the request. Throws CliError with the reason
// in words unless the answer is Ok.
NetReply request_network(const NetPlace& place, const Installation& installation,
                         const ParsedNetRequest& request, Fd file = {});
// The same of one that is up; nothing: it is not.
std::optional<NetReply> request_running_network(const NetPlace& place,
                                                const ParsedNetRequest& request);

// This process moves to the network namespace of the node, and keeps what rights it needs there for
// the program that it becomes. Throws CliError(Permission). Without threads.
void enter_network(const NetReply& reply);

}  // namespace ib::softib
