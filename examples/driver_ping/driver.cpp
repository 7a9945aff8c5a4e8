// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The entry that softibd calls when it has loaded the module.
#include "driver_parts/port_child.h"
#include "ping.h"

extern "C" __attribute__((visibility("default"))) ib::Status softib_driver_entry_1(
    ib::io::DriverObject& driver, std::string&) {
  parts::PortChild<ping::Ping>::set_routines(driver);
  return ib::Status::Ok;
}
