// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// read() of an umad file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ib::host_abi::preload {

// A point of cancellation, like read(), which leaves nothing behind.
ssize_t umad_read(int fd, std::uint32_t file, void* data, std::size_t size);

}  // namespace ib::host_abi::preload
