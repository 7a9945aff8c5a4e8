// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Functions of glibc newer than 2.34 that the compiler's static C++ runtime calls. Each library
// that brings this runtime along (cmake/ib_library.cmake) has them for itself, so it loads
// with 2.34.
#include <elf.h>
#include <link.h>
#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

// The result of _dl_find_object() as libgcc reads it, in the layout of glibc 2.35. `eh_dbase` only
// exists on 32-bit x86.
struct FoundObject {
  unsigned long long flags;
  void* begin;
  void* end;
  struct ::link_map* map;  // libgcc does not read it
  void* eh_frame;          // PT_GNU_EH_FRAME
#if defined(__i386__)
  void* eh_dbase;  // the object's global offset table
#endif
  unsigned long long reserved[7];
};

void* pointer_to(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

struct Search {
  std::uintptr_t address;
  FoundObject* result;
};

#if defined(__i386__)
void* offset_table(const ::dl_phdr_info& object, const ElfW(Phdr) & header) {
  const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr);
  for (; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_PLTGOT) return pointer_to(entry->d_un.d_ptr);
  }
  return nullptr;
}
#endif

int look_at(::dl_phdr_info* object, std::size_t, void* data) {
  const auto& search = *static_cast<const Search*>(data);
  FoundObject found{};
  bool is_inside = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) {
      if (found.begin == nullptr) found.begin = pointer_to(begin);
      found.end = pointer_to(begin + header.p_memsz);
      is_inside |= search.address - begin < header.p_memsz;
    }
    if (header.p_type == PT_GNU_EH_FRAME) found.eh_frame = pointer_to(begin);
#if defined(__i386__)
    if (header.p_type == PT_DYNAMIC) found.eh_dbase = offset_table(*object, header);
#endif
  }
  if (!is_inside) return 0;
  *search.result = found;
  return 1;
}

}  // namespace

extern "C" {

// -1: there is no such object, or it has no table for unwinding. Newer headers declare their own.
[[gnu::visibility("hidden")]] int find_object(void* address,
                                              FoundObject* result) __asm__("_dl_find_object");
int find_object(void* address, FoundObject* result) {
  Search search{reinterpret_cast<std::uintptr_t>(address), result};
  if (::dl_iterate_phdr(look_at, &search) == 0) return -1;
  return result->eh_frame != nullptr ? 0 : -1;
}

// libstdc++'s std::random_device.
[[gnu::visibility("hidden")]] std::uint32_t random_word() __asm__("arc4random");
std::uint32_t random_word() {
  std::uint32_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    if (errno != EINTR) std::abort();
  }
  return number;
}

}  // extern "C"
