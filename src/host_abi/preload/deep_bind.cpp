// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A message to the user of a program that loads libibverbs with RTLD_DEEPBIND. That library binds
// to the C library past this one, so it looks for devices where the kernel keeps them and finds
// none, and none of our functions runs that could report it. So the message comes at the end of the
// program.
#include "host_abi/preload/real.h"
#include "host_abi/preload/system_calls.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ib::host_abi::preload {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr std::uint32_t kData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr std::uint32_t kData = R_AARCH64_GLOB_DAT;
#else
constexpr std::uint32_t kJumpSlot = ~0u;  // no message on other machines
constexpr std::uint32_t kData = ~0u;
#endif

// The functions with which libibverbs looks for devices.
bool finds_devices(std::string_view function) {
  return function == "opendir" || function == "open" || function == "openat" || function == "fopen";
}

// The parts of a loaded library's dynamic section that show how it was bound.
struct Bindings {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * calls = nullptr;
  std::size_t calls_size = 0;
  const ElfW(Rela) * data = nullptr;
  std::size_t data_size = 0;
};

Bindings bindings_of(const ElfW(Dyn) * entry) {
  Bindings found;
  for (; entry->d_tag != DT_NULL; ++entry) {
    // NOLINTBEGIN(performance-no-int-to-ptr): the loader has made addresses of them
    switch (entry->d_tag) {
      case DT_SYMTAB: found.symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr); break;
      case DT_STRTAB: found.names = reinterpret_cast<const char*>(entry->d_un.d_ptr); break;
      case DT_JMPREL: found.calls = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr); break;
      case DT_PLTRELSZ: found.calls_size = entry->d_un.d_val; break;
      case DT_RELA: found.data = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr); break;
      case DT_RELASZ: found.data_size = entry->d_un.d_val; break;
      default: break;
    }
    // NOLINTEND(performance-no-int-to-ptr)
  }
  return found;
}

// The addresses of a loaded library. dladdr() would take the loader's lock inside the callback of
// dl_iterate_phdr(), which holds another one; dlopen() in a thread takes them in the other order.
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool has(std::uintptr_t address) const { return begin <= address && address < end; }
};

Range range_of(const dl_phdr_info& library) {
  Range range{UINTPTR_MAX, 0};
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const auto& part = library.dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = library.dlpi_addr + part.p_vaddr;
    range.begin = std::min(range.begin, begin);
    range.end = std::max(range.end, begin + part.p_memsz);
  }
  return range;
}

// Replaces a range of one address by that of its library.
int find_library(dl_phdr_info* library, std::size_t, void* result) {
  auto& range = *static_cast<Range*>(result);
  const Range found = range_of(*library);
  if (!found.has(range.begin)) return 0;
  range = found;
  return 1;
}

// Returns whether one of these places holds a function of `libc`. The place of a call that was
// never made leads back to the library itself.
bool binds_to(const Range& libc, ElfW(Addr) base, const Bindings& of, const ElfW(Rela) * places,
              std::size_t bytes) {
  for (std::size_t i = 0; places != nullptr && i < bytes / sizeof *places; ++i) {
    const auto kind = static_cast<std::uint32_t>(ELF64_R_TYPE(places[i].r_info));
    if (kind != kJumpSlot && kind != kData) continue;
    if (!finds_devices(of.names + of.symbols[ELF64_R_SYM(places[i].r_info)].st_name)) continue;
    std::uintptr_t bound = 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    std::memcpy(&bound, reinterpret_cast<const void*>(base + places[i].r_offset), sizeof bound);
    if (libc.has(bound)) return true;
  }
  return false;
}

int check_bindings(dl_phdr_info* library, std::size_t, void* context) {
  const auto& libc = *static_cast<const Range*>(context);
  const std::string_view path(library->dlpi_name);
  if (path.find("/libibverbs.so") == std::string_view::npos) return 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const ElfW(Addr) table = library->dlpi_addr + library->dlpi_phdr[i].p_vaddr;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const Bindings of = bindings_of(reinterpret_cast<const ElfW(Dyn)*>(table));
    if (of.symbols == nullptr || of.names == nullptr) return 0;
    const ElfW(Addr) base = library->dlpi_addr;
    return binds_to(libc, base, of, of.calls, of.calls_size) ||
                   binds_to(libc, base, of, of.data, of.data_size)
               ? 1
               : 0;
  }
  return 0;
}

[[gnu::destructor]] void tell_of_deep_binding() {
  const auto function = std::bit_cast<std::uintptr_t>(::dlsym(RTLD_NEXT, "opendir"));
  Range libc{function, function};
  if (::dl_iterate_phdr(find_library, &libc) == 0) return;
  if (::dl_iterate_phdr(check_bindings, &libc) == 0) return;
  constexpr std::string_view kText =
      "softib: this program has loaded libibverbs with RTLD_DEEPBIND, which hides the HCAs of this "
      "virtual host from it; leave the flag out of dlopen()\n";
  (void)sys::write(STDERR_FILENO, kText.data(), kText.size());
}

}  // namespace
}  // namespace ib::host_abi::preload
