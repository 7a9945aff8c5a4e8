// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether a file has the bytes that it had before: FNV-1a, 64 bits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ib::softib {

constexpr std::uint64_t digest_of(std::string_view bytes,
                                  std::uint64_t digest = 0xcbf29ce484222325) {
  for (const char byte : bytes) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return digest;
}

// In hex; empty: it cannot be read.
std::string file_digest(const std::string& path);

}  // namespace ib::softib
