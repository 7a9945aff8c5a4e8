// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory (a mapped file) and the memory of other processes.
#pragma once

#include "base/result.h"
#include "platform/client_host.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ib::os {

// See ClientHost::map, read_process and write_process.
Result<std::unique_ptr<platform::MappedFile>> map_file(const platform::NativeHandle& file,
                                                       std::uint64_t space, std::string& reason);
Status read_process_memory(std::uint32_t pid, std::uint64_t from, void* to, std::size_t length);
Status write_process_memory(std::uint32_t pid, std::uint64_t to, const void* from,
                            std::size_t length);

}  // namespace ib::os
