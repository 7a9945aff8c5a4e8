// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// AddressWatch: which addresses the interfaces of this network namespace have, and a descriptor
// that says when they have changed, whoever did it (`ip addr`).
#pragma once

#include "base/result.h"
#include "platform/control_channel.h"
#include "verbs/control.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ib::ipoib::driver {

// By the names of interfaces; as many of each as a request of softibd takes.
using AddressesByInterface = std::map<std::string, std::vector<verbs::control::PrefixedAddress>>;
AddressesByInterface addresses_by_interface();

// The number of the network namespace in which this process is; 0: not known.
std::uint64_t own_network_number();

class AddressWatch {
 public:
  Status open();
  int descriptor() const { return socket_.get(); }
  // After it was readable: takes all that waits. Returns whether anything has changed.
  bool take();

 private:
  platform::NativeHandle socket_;
};

}  // namespace ib::ipoib::driver
