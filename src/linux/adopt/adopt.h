// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Adopted pages (docs/design/0001, 1): pages of this process are moved into a memfd at the same
// address while other threads go on using them. See platform/client_host.h for the contract.
//
// Moving, in steps of at most 4 MiB: the step is registered with userfaultfd and moved away with
// mremap(MREMAP_DONTUNMAP), so that threads which touch it wait; its pages are copied into the
// memfd; the memfd is mapped over the step; the waiting threads are woken. Pages that the program
// never touched stay holes of the file. A step that cannot move is the end: those before it stay
// adopted.
//
// Giving back, in steps too: threads that write to the step are made to wait (userfaultfd's write
// protection, Linux 5.19), unless there is no other thread; its pages are copied to anonymous
// memory elsewhere, mremap() puts that into the place of the shared mapping, and the threads are
// woken. The memory is as it was before the adoption, and one mapping with its neighbours
// (adopt_kept.h).
// Where there are threads that cannot be made to wait so, a private mapping of the memfd replaces
// the shared one (one system call, so no write falls between), every page is made private by the
// kernel's copy-on-write, and the file is emptied. A private mapping of an empty file remains:
// MADV_DONTNEED gives zeros, fork() a private copy, and adopt_pages() takes it again if the program
// has one thread and nothing that could hold pages. It is not anonymous to the kernel: no huge
// pages, and MADV_FREE fails (EINVAL).
//
// fork(): the child gets private copies of all adopted pages before fork() returns in either
// process. A child that is made otherwise (_Fork(), clone() by number) does not inherit them and
// faults there, as with memory that ibv_fork_init() protects; vfork() and posix_spawn() need
// nothing.
//
// I/O in flight: the kernel may hold pages for direct I/O, io_uring or process_vm_writev(), and
// writes to the pages it holds. UFFDIO_MOVE (Linux 6.8) refuses held pages, one by one, and leaves
// none behind. Without it touched pages move only if the program has one thread and nothing that
// could hold pages (pin_sources.h).
//
// For callers:
//  - MADV_* advice and memory policy of the range are not in force meanwhile. They come back if
//    the mapping was kept.
#pragma once

#include "base/result.h"
#include "platform/client_host.h"

#include <cstdint>
#include <optional>

namespace ib::os {

platform::AdoptMode adopt_mode();
// At most `most` bytes of the range may have been touched.
Result<platform::AdoptedPages> adopt_pages(std::uint64_t address, std::uint64_t length,
                                           std::uint64_t most = ~std::uint64_t{0});
// To be called if no page of the range can be held (pin_sources.h).
void give_back_pages(const platform::AdoptedPages& pages);
platform::ClientHost::Presence adopted_presence(const platform::AdoptedPages& pages,
                                                std::uint64_t address, std::uint64_t length);

// For tests: as if the kernel allowed only this much; nullopt: its own limit.
void limit_adopt_mode(std::optional<platform::AdoptMode> mode);
// For tests: as on a kernel without UFFDIO_MOVE.
void forbid_page_move(bool forbid);
// For tests: as on a kernel without write protection by userfaultfd for shared memory.
void forbid_write_protection(bool forbid);

}  // namespace ib::os
