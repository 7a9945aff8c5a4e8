// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Files in memory that softibd makes and shares with clients.
#pragma once

#include "base/result.h"
#include "platform/control_channel.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ib::os {

// A failed system call in words, and whether others' use of resources is the reason.
Status refused(const char* call, int error, std::string& reason);

// An empty one that may be sealed; invalid: errno says why. `name`: for /proc/PID/maps.
platform::NativeHandle make_memory_file(const char* name);

// One whose bytes may be executed; likewise.
platform::NativeHandle make_code_file(const char* name);

// One of `size` zero bytes that nobody can make shorter, so that access to it never fails.
Result<platform::NativeHandle> make_shared_file(const char* name, std::uint64_t size,
                                                std::string& reason);

// One with these bytes, at whose start it stands.
Result<platform::NativeHandle> make_bytes_file(const char* name, std::span<const std::byte> bytes,
                                               std::string& reason);
// All bytes of a memory file of somebody else's. InvalidParameter: it is another kind of file,
// whose reads might wait; LimitExceeded: it has more than `most`; IoError.
Result<std::vector<std::byte>> read_bytes_file(const platform::NativeHandle& file, std::size_t most,
                                               std::string& reason);

}  // namespace ib::os
