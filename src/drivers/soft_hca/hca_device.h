// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// HcaDevice: the functional device that soft_hca makes for an HCA, and its life: PnP and power.
#pragma once

#include "drivers/soft_hca/core.h"
#include "io/device.h"

#include <cstdint>
#include <span>
#include <string>

namespace ib::drivers {

struct HcaDevice final : io::DeviceObject {
  HcaDevice(Core& of, fabric::Hca& model, io::DriverObject& driver, std::string name)
      : DeviceObject(driver, std::move(name), io::DeviceKind::Functional), core(of), hca(model) {}

  Core& core;
  fabric::Hca& hca;
  bool removed = false;  // the hardware is gone; files that are still open stay dead
};

// hca_life.cpp
void on_hca_pnp(io::DeviceObject& device, io::IrpRef irp);
void on_hca_power(io::DeviceObject& device, io::IrpRef irp);

// Writes the ports of an HCA to device memory for posters: their state, asleep, or down since there
// is none.
void publish_ports(Core& core, const fabric::Hca& hca);
// Of several, of which posters hear once.
void publish_ports(Core& core, std::span<const fabric::Hca* const> hcas);
// Of all HCAs, at the start: they are there although no device was made for them yet.
void publish_all(Core& core);

// An HCA was pulled out: its open files die, their queue pairs flush, their peers get errors.
void retire_files(Core& core, const fabric::Hca& hca);

// "pid 4711 (ib_write_bw) on node0, ...": processes with an open file; empty: none.
std::string users_of(Core& core, const fabric::Hca& hca);

}  // namespace ib::drivers
