// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The files that a program on a virtual host sees of its HCAs: /sys/class/infiniband,
// /sys/class/infiniband_verbs, /sys/class/infiniband_mad and /dev/infiniband, as a Linux kernel
// would show them.
//
// Nothing is stored: each answer is made from the fabric model and the state of the devices at that
// time. No locks; call it on the thread that owns the model.
//
// A virtual host has exactly the HCAs of its node. The preload library hides the real adapters of
// the machine from it, so names and numbers (softib0, uverbs0) start at 0 on every node.
//
// The uverbs devices are character devices 1:3, which is /dev/null: libibverbs compares the number
// in sysfs with that of the descriptor it opened, and /dev/null is a genuine character device that
// any user may open. Everything else is absent.
#pragma once

#include "base/result.h"
#include "fabric/model.h"
#include "verbs/control.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ib::drivers {

// The counters of a port since a client of performance management has cleared them.
struct DeviceCounters {
  fabric::PortCounters port;
  // Of the driver's own, not of IBA: requests that have come (hw_counters).
  std::uint64_t rx_write_requests = 0;
  std::uint64_t rx_read_requests = 0;
  std::uint64_t rx_atomic_requests = 0;
};

// The attributes of devices at this moment. The defaults come from the model alone.
class DeviceStatus {
 public:
  virtual ~DeviceStatus() = default;
  virtual verbs::control::CaAttr ca(const fabric::Hca& hca) const;
  virtual verbs::control::PortAttr port(const fabric::Hca& hca, const fabric::Port& port) const;
  virtual DeviceCounters counters(const fabric::Hca& hca, const fabric::Port& port) const;
};

// Paths are absolute and normalised (no "//", ".", ".."); an empty node name is the first node.
// Links inside a path are followed, the last component is not: as in lstat(). NotFound: no such
// node or file.
class Sysfs {
 public:
  // Borrows both. `cpus`: how many the machine has (std::thread::hardware_concurrency()); 0, not
  // known: then there is no local_cpus, which readers take as "all are equally near".
  Sysfs(const fabric::Fabric& fabric, const DeviceStatus& devices, unsigned cpus = 0)
      : fabric_(fabric), devices_(devices), cpus_(cpus) {}

  Result<verbs::control::ViewStatOut> stat(std::string_view node, std::string_view path) const;
  // The content of a regular file. InvalidParameter: it is something else, or has no content (the
  // type of a free GID entry).
  Result<std::string> read(std::string_view node, std::string_view path) const;
  // The names in a directory, one per line, '\n' after each. InvalidParameter: not a directory.
  Result<std::string> list(std::string_view node, std::string_view path) const;
  // Where a link points to. InvalidParameter: not a link.
  Result<std::string> readlink(std::string_view node, std::string_view path) const;

 private:
  const fabric::Fabric& fabric_;
  const DeviceStatus& devices_;
  unsigned cpus_;
};

}  // namespace ib::drivers
