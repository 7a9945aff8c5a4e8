// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The mappings of this process, and whether a range may be adopted (adopt.h). Allocates nothing:
// also used in a forked child and with all signals blocked.
#pragma once

#include "base/result.h"
#include "platform/control_channel.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ib::os {

// The name of the memfd behind adopted pages, as /proc/self/maps shows it.
inline constexpr const char* kPagesName = "softib-pages";
inline constexpr std::string_view kPagesPath = "/memfd:softib-pages";

struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t inode = 0;   // 0: no file
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  std::array<char, 64> name{};  // NUL terminated, cut

  std::string_view name_view() const { return name.data(); }
  // Private memory of the memfd of pages that were given back.
  bool given_back() const { return inode != 0 && !shared && name_view().starts_with(kPagesPath); }
};

// Looks mappings up by address: with PROCMAP_QUERY (Linux 6.11), else by reading the text.
class MapsReader {
 public:
  MapsReader();
  bool valid() const { return file_.valid(); }
  // Fills in the first mapping that ends above `address`. Returns false if there is none.
  bool find(std::uint64_t address, Mapping& mapping);
  // For tests: as on a kernel without PROCMAP_QUERY.
  void read_text_only() { has_query_ = false; }

 private:
  bool query(std::uint64_t address, Mapping& mapping, bool& supported);
  bool search_text(std::uint64_t address, Mapping& mapping);

  platform::NativeHandle file_;
  bool has_query_ = true;
};

// Returns Ok if all of [start, end) is private, readable and writable memory without a file, or was
// given back, and no part of it is recognised as the stack of a thread. `frame`: an address on the
// caller's stack.
Status check_private_range(MapsReader& maps, std::uint64_t start, std::uint64_t end,
                           std::uint64_t frame);

}  // namespace ib::os
