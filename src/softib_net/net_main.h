// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softib-net as a program: its command line, its place in the runtime directory, its loop.
#pragma once

#include "softib_net/node_main.h"

namespace ib::softib_net {

// The exit code of main(). `make_driver`: of each node, in the process of the node.
int net_main(int argc, char** argv, MakeDriver make_driver);

}  // namespace ib::softib_net
