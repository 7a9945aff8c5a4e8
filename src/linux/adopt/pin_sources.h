// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether the kernel may hold pages of this process for I/O: direct reads and writes, io_uring,
// guests' memory, pages spliced into pipes. Bytes of such I/O go to the pages that were there when
// it began, so pages that may be held stay where they are.
//
// The check is about this process. Another process that uses process_vm_writev() on it, or a
// debugger that writes, holds pages for the time of that call and is not detected.
#pragma once

#include <cstdint>

namespace ib::os {

// Checks all open descriptors: about a microsecond each. Returns true also where /proc is missing.
bool may_pin_pages();

// The program has spliced memory into a pipe, which cannot be detected later.
void note_vmsplice();
bool has_spliced_memory();

}  // namespace ib::os
