// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib_net/driver.h"

namespace ib::softib_net {
namespace {

class AbsentDriver final : public os::net::NodeDriver {
 public:
  Status run(os::net::NodeNetwork&, std::string& reason) override {
    reason = "this build of softib has no driver for IP over InfiniBand";
    return Status::NotSupported;
  }
};

}  // namespace

std::unique_ptr<os::net::NodeDriver> make_driver(const os::net::NodePlace&) {
  return std::make_unique<AbsentDriver>();
}

}  // namespace ib::softib_net
