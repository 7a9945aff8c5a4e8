// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib_net/driver.h"

#include "ipoib/driver.h"

namespace ib::softib_net {

std::unique_ptr<os::net::NodeDriver> make_driver(const os::net::NodePlace& place) {
  using ipoib::driver::IpoibDriver;
  return std::make_unique<IpoibDriver>(IpoibDriver::options_of(place));
}

}  // namespace ib::softib_net
