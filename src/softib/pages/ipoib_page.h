// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `softib ipoib show`: the networks of nodes, and of each interface its neighbours, paths,
// multicast groups and connections. Each network is an entry of softib-net's list, with what its
// driver says (ipoib/report.h) as "driver".
#pragma once

#include "softib/pages/fabric_state.h"

#include <cstddef>
#include <string>

namespace ib::softib {

inline constexpr std::size_t kNetworksShown = 16;  // unless all are wanted

struct IpoibShown {
  std::size_t networks = 0;  // that there are; `networks` of the page may be the first of them
  bool all = false;          // all rows of each table
  std::string log;           // path of the log of softib-net
};

std::string ipoib_page(const Json& networks, const IpoibShown& shown);

}  // namespace ib::softib
