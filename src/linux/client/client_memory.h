// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory (a mapped file), the memory of other processes, and memory of this one that may be
// unmapped.
#pragma once

#include "base/result.h"
#include "platform/client_host.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ib::os {

// See ClientHost.
Result<std::unique_ptr<platform::MappedFile>> map_file(const platform::NativeHandle& file,
                                                       std::uint64_t space, std::string& reason);
Status read_process_memory(const platform::ProcessName& who, std::uint64_t from, void* to,
                           std::size_t length);
Status write_process_memory(const platform::ProcessName& who, std::uint64_t to, const void* from,
                            std::size_t length);
platform::OwnCopy copy_own_memory(void* to, const void* from, std::size_t length);
// The fallback where process_vm_* are forbidden.
platform::OwnCopy copy_own_memory_by_pipe(void* to, const void* from, std::size_t length);
bool is_own_memory_accessible(const void* at, std::size_t length, bool write);

}  // namespace ib::os
