// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/path.h"

#include <cstring>

namespace ib::host_abi::preload {
namespace {

bool is_component(const char* name, std::size_t length, const char* what) {
  return length == std::strlen(what) && std::memcmp(name, what, length) == 0;
}

void drop_last(Path& path) {
  while (path.length > 0 && path.text[--path.length] != '/') continue;
}

bool append(const char* text, Path& out) {
  while (*text != '\0') {
    const std::size_t length = std::strcspn(text, "/");
    const bool nothing = length == 0 || is_component(text, length, ".");
    if (is_component(text, length, "..")) {
      drop_last(out);
    } else if (!nothing) {
      if (out.length + 1 + length >= kPathSize) return false;
      out.text[out.length] = '/';
      std::memcpy(out.text + out.length + 1, text, length);
      out.length += 1 + length;
    }
    text += length;
    if (*text == '/') ++text;
  }
  return true;
}

}  // namespace

bool normalise(const char* base, const char* path, Path& out) {
  out.length = 0;
  if (path[0] != '/' && !append(base, out)) return false;
  if (!append(path, out)) return false;
  if (out.length == 0) out.text[out.length++] = '/';
  out.text[out.length] = '\0';
  return true;
}

bool ends_like_directory(const char* path) {
  const std::size_t length = std::strlen(path);
  const auto ends = [path, length](const char* tail) {
    const std::size_t n = std::strlen(tail);
    return length >= n && std::strcmp(path + length - n, tail) == 0;
  };
  return ends("/") || ends("/.") || ends("/..");
}

void write_number(unsigned value, char* out) {
  char digits[12];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value > 0);
  while (count > 0) *out++ = digits[--count];
  *out = '\0';
}

std::uint32_t inode_of(const char* directory, const char* name) {
  std::uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
  const auto mix = [&hash](const char* text) {
    for (; *text != '\0'; ++text) {
      hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3ull;
    }
  };
  mix(directory);
  if (name != nullptr) {
    mix("/");
    mix(name);
  }
  const auto folded = static_cast<std::uint32_t>((hash ^ (hash >> 32)) & 0x0fffffffu);
  return folded == 0 ? 1 : folded;
}

}  // namespace ib::host_abi::preload
