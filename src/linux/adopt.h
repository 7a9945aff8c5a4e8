// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Adopted pages (DESIGN.md 3, path 1): pages of this process are moved into a memfd at the same
// address while other threads go on using them. See platform/client_host.h for the contract.
//
// Moving, in steps of at most 4 MiB: the step is registered with userfaultfd and moved away with
// mremap(MREMAP_DONTUNMAP), so that threads which touch it wait; its pages are copied into the
// memfd; the memfd is mapped over the step; the waiting threads are woken. Pages that the program
// never touched stay holes of the file.
//
// Giving back, in steps too: a private mapping of the memfd replaces the shared one (one system
// call, so no write falls between), every page is made private by the kernel's copy-on-write, and
// the file is emptied. What remains is a private mapping of an empty file: MADV_DONTNEED gives
// zeros, fork() a private copy, and adopt_pages() takes it again.
//
// fork(): the child gets private copies of all adopted pages before fork() returns in either
// process. clone() without libc's handlers is not covered; vfork() and posix_spawn() need nothing.
//
// What a caller must know:
//  - nobody may be in the middle of process_vm_writev(), O_DIRECT or registered io_uring I/O into
//    the range while it is moved: the kernel holds the old pages then, and their bytes are lost;
//  - mlock(), MADV_* advice, memory policy and protection keys of the range do not survive;
//  - returned memory is not anonymous to the kernel: no huge pages, and MADV_FREE fails (EINVAL).
#pragma once

#include "base/result.h"
#include "platform/client_host.h"

#include <cstdint>
#include <optional>

namespace ib::os {

platform::AdoptMode adopt_mode();
Result<platform::AdoptedPages> adopt_pages(std::uint64_t address, std::uint64_t length);
void give_back_pages(const platform::AdoptedPages& pages);

// For tests: as if the system allowed only this much; nullopt: what it does allow.
void limit_adopt_mode(std::optional<platform::AdoptMode> mode);

}  // namespace ib::os
