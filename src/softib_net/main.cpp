// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib_net/driver.h"
#include "softib_net/net_main.h"

int main(int argc, char** argv) {
  return ib::softib_net::net_main(argc, argv, ib::softib_net::make_driver);
}
