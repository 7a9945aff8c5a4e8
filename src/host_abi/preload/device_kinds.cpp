// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/preload/device_kinds.h"

#include <cstring>
#include <iterator>

namespace ib::host_abi::preload::devices {
namespace {

constexpr const DeviceKind* kKinds[] = {&kUverbs, &kCompletionChannel, &kRdmaCm, &kUmad, &kIssm};
static_assert(std::size(kKinds) <= kMost);

constexpr char kFolder[] = "/dev/infiniband";
constexpr unsigned kUnitLimit = 1 << 16;

// "0", "17": all of `text`, no leading zero.
bool parse_unit(const char* text, unsigned& unit) {
  unit = 0;
  if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0')) return false;
  for (; *text != '\0'; ++text) {
    if (*text < '0' || *text > '9') return false;
    unit = unit * 10 + static_cast<unsigned>(*text - '0');
    if (unit >= kUnitLimit) return false;
  }
  return true;
}

bool is_named(const DeviceKind& kind, const char* file, unsigned& unit) {
  if (kind.name == nullptr) return false;
  unit = 0;
  if (!kind.numbered) return std::strcmp(file, kind.name) == 0;
  const std::size_t length = std::strlen(kind.name);
  return std::strncmp(file, kind.name, length) == 0 && parse_unit(file + length, unit);
}

}  // namespace

const DeviceKind* find(const Path& path, unsigned& unit) {
  constexpr std::size_t kLength = sizeof kFolder - 1;
  if (std::strncmp(path.text, kFolder, kLength) != 0 || path.text[kLength] != '/') return nullptr;
  for (const DeviceKind* kind : kKinds) {
    if (is_named(*kind, path.text + kLength + 1, unit)) return kind;
  }
  return nullptr;
}

verbs::control::ViewStatOut describe(const DeviceKind& kind, unsigned number_in_table) {
  const DeviceKind::Number number = kind.number(number_in_table & kind.unit_mask);
  verbs::control::ViewStatOut file;
  file.kind = verbs::control::ViewKind::CharDevice;
  file.mode = kind.mode;
  file.device_major = number.major;
  file.device_minor = number.minor;
  return file;
}

std::uint32_t inode_of(const DeviceKind& kind, unsigned number) {
  char name[64];
  const std::size_t length = std::strlen(kind.name);
  std::memcpy(name, kind.name, length + 1);
  if (kind.numbered) write_number(number & kind.unit_mask, name + length);
  return preload::inode_of(kFolder, name);
}

std::size_t index_of(const DeviceKind& kind) {
  std::size_t index = 0;
  while (index < std::size(kKinds) && kKinds[index] != &kind) ++index;
  return index;
}

const DeviceKind* at(std::size_t index) {
  return index < std::size(kKinds) ? kKinds[index] : nullptr;
}

}  // namespace ib::host_abi::preload::devices
