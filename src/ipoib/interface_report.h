// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// InterfaceReport: tells softibd which interfaces the node has, with their addresses: rdma_cm
// resolves these, and /sys/class/net shows the rest.
//
// Thread rule: that of the driver's loop. A request is answered at once; no HCA is needed for it.
#pragma once

#include "base/time.h"
#include "ipoib/adapter.h"
#include "ipoib/address_watch.h"
#include "user/process.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ib::ipoib::driver {

class InterfaceReport {
 public:
  Status open();
  int descriptor() const { return watch_.descriptor(); }

  // An interface has come, gone, or has another hardware address.
  void on_change() { is_due_ = true; }
  // The descriptor is readable.
  void on_addresses() { is_due_ = watch_.take() || is_due_; }

  // Tells what is not told yet. Returns the first refusal in words; empty: there was none.
  std::string tell(user::Process& process, const std::vector<std::unique_ptr<Adapter>>& adapters);

 private:
  using Told = std::map<std::string, std::vector<std::byte>>;

  AddressWatch watch_;
  std::uint64_t network_ = 0;
  Told told_;  // the last request for each interface
  bool is_due_ = true;
};

}  // namespace ib::ipoib::driver
