// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device management [IBA1 16.3]: the I/O unit behind a port and its controllers.
#pragma once

#include "base/big_endian.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace ib::mad {

namespace device_attribute {
inline constexpr std::uint16_t kIoUnitInfo = 0x0010;
}  // namespace device_attribute

struct IoUnitInfo {  // 16.3.3.3
  Be16 change_id;    // another one whenever a controller comes or goes
  std::uint8_t max_controllers = 0;
  std::uint8_t flags = 0;                           // it has diagnostics, an option ROM
  std::array<std::uint8_t, 128> controller_list{};  // 4 bits each; 0: not installed
};
static_assert(sizeof(IoUnitInfo) == 132 && offsetof(IoUnitInfo, controller_list) == 4);

}  // namespace ib::mad
