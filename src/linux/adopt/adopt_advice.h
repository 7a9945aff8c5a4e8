// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// madvise() on adopted pages. To the kernel these are shared memory of a file, whose content
// MADV_DONTNEED keeps and MADV_FREE refuses; to the program they are private anonymous memory, and
// allocators take the zeros that it reads afterwards for granted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ib::os {

// Carries out `advice` for all of the range, page by page as it is mapped, if some of it is adopted
// or was given back and the advice means something else there: Returns 0 or -errno, or nullopt if
// the kernel is to do it. Allocates nothing and takes no lock.
std::optional<int> advise_adopted(std::uint64_t address, std::size_t length, int advice);

}  // namespace ib::os
