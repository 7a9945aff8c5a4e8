// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/client/registered_range.h"

#include "linux/adopt/adopt_syscall.h"
#include "linux/adopt/private_range.h"
#include "linux/client/client_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

namespace ib::os {
namespace {

std::string hex(std::uint64_t value) {
  std::array<char, 20> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, 16).ptr;
  return "0x" + std::string(text.data(), end);
}

std::string said(const Mapping& m) {
  const std::string_view name = m.name_view();
  return hex(m.start) + "-" + hex(m.end) + (name.empty() ? "" : " (" + std::string(name) + ")");
}

// Whether the byte can be read, or written. It is not changed.
bool is_there(std::uint64_t at, bool write) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return is_own_memory_accessible(reinterpret_cast<const void*>(at), 1, write);
}

// Of a device a load may change something.
bool may_be_device(const Mapping& m) {
  const std::string_view name = m.name_view();
  return name.starts_with("/dev/") && !name.starts_with("/dev/shm/") &&
         !name.starts_with("/dev/hugepages/");
}

// Memory of devices and the kernel's own ([vvar]) may have no pages that can be pinned.
// process_vm_readv() pins them too, and is refused before anything is loaded.
bool cannot_be_pinned(const Mapping& m) {
  const bool shared_memory = m.name_view().starts_with("/dev/zero");  // without a name, MAP_SHARED
  const bool is_special = may_be_device(m) || m.name_view().starts_with("[v");
  if (!is_special || shared_memory) return false;
  std::byte byte{};
  const iovec to{&byte, sizeof byte};
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const iovec from{reinterpret_cast<void*>(m.start), sizeof byte};
  return raw_syscall(SYS_process_vm_readv, ::getpid(), to_long(&to), 1, to_long(&from), 1, 0) ==
         -EFAULT;
}

std::string ends_only(std::uint64_t address, std::uint64_t last, bool write) {
  for (const std::uint64_t at : {address, last}) {
    if (is_there(at, write)) continue;
    return hex(at) + " is not mapped, or " + (write ? "not writable" : "not readable");
  }
  return {};
}

}  // namespace

std::string why_not_registered(std::uint64_t address, std::uint64_t length, bool write) {
  // The page of an empty range still counts, as in the kernel.
  const std::uint64_t last = address + (length != 0 ? length - 1 : 0);
  MapsReader maps;
  if (!maps.valid()) return ends_only(address, last, write);
  for (std::uint64_t at = address;;) {
    Mapping m;
    if (!maps.find(at, m)) return "nothing is mapped at " + hex(at) + " or above";
    if (m.start > at) return "nothing is mapped at " + hex(at) + ", up to " + hex(m.start);
    if (!m.readable) return "the mapping " + said(m) + " at " + hex(at) + " is not readable";
    if (write && !m.writable) {
      return "the mapping " + said(m) + " at " + hex(at) +
             " is not writable, and the region is to be (local or remote write, atomics, windows)";
    }
    if (cannot_be_pinned(m)) return "the mapping " + said(m) + " has no pages to be registered";
    const std::uint64_t last_here = std::min(last, m.end - 1);
    if (m.inode != 0 && !may_be_device(m) && !is_there(last_here, false)) {
      return "the file of the mapping " + said(m) + " ends before " + hex(last_here);
    }
    if (last < m.end) return {};
    at = m.end;
  }
}

}  // namespace ib::os
