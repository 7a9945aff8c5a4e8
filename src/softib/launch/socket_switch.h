// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The socket switch (`softib run --sockets`): TCP connections of a program over RDMA, by SDP or by
// the rsockets of librdmacm.
#pragma once

#include "softib/launch/installation.h"

#include <string>

namespace ib::softib {

inline constexpr const char* kAllOfFabric = "fabric";  // the addresses of the fabric's nodes

// The value of --sockets: [rsockets,]RANGES or `rsockets`.
struct SocketSwitch {
  bool over_rsockets = false;
  std::string ranges;
};
SocketSwitch parse_socket_switch(const std::string& text);

// Throws CliError(Usage) if its ranges are neither kAllOfFabric nor a list ADDRESS[/BITS],...;
// CliError(Installation) if softib's library is missing, or librdmacm where that is needed.
void require_socket_switch(const Installation& installation, const std::string& text);

// The librdmacm that programs load, and the distribution's own preload library for sockets; empty:
// not installed.
std::string librdmacm_path();
std::string librspreload_path();

// Why the program `file` has TCP only; empty: it has not.
std::string tcp_only_reason(const std::string& file);

}  // namespace ib::softib
