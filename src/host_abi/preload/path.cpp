// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/path.h"

#include <cstring>

namespace ib::host_abi::preload {
namespace {

constexpr char kWord[] = "infiniband";
constexpr char kClassPrefix[] = "/sys/class/infiniband";
constexpr char kDevPrefix[] = "/dev/infiniband";
constexpr char kDevicesPrefix[] = "/sys/devices/infiniband";

template <std::size_t N>
bool starts_with(const Path& path, const char (&prefix)[N]) {
  return path.length >= N - 1 && std::memcmp(path.text, prefix, N - 1) == 0;
}

template <std::size_t N>
bool is_at_or_below(const Path& path, const char (&prefix)[N]) {
  const bool starts = starts_with(path, prefix);
  return starts && (path.text[N - 1] == '\0' || path.text[N - 1] == '/');
}

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

bool may_be_ours(const char* path) {
  return std::strstr(path, kWord) != nullptr;
}

bool is_ours(const Path& path) {
  if (starts_with(path, kClassPrefix)) {
    const char next = path.text[sizeof kClassPrefix - 1];
    return next == '\0' || next == '/' || next == '_';
  }
  return is_at_or_below(path, kDevPrefix) || is_at_or_below(path, kDevicesPrefix);
}

bool is_parent(const Path& path) {
  return std::strcmp(path.text, "/dev") == 0 || std::strcmp(path.text, "/sys/class") == 0;
}

bool ends_like_directory(const char* path) {
  const std::size_t length = std::strlen(path);
  const auto ends = [path, length](const char* tail) {
    const std::size_t n = std::strlen(tail);
    return length >= n && std::strcmp(path + length - n, tail) == 0;
  };
  return ends("/") || ends("/.") || ends("/..");
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
