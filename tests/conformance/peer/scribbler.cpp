// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "peer/scribbler.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <string>

namespace ib::conformance {

namespace {

// Finds the fabric that is up; mappings of earlier fabrics stay.
std::byte* find_device_memory() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:softib-device-memory") == std::string::npos) continue;
    auto* const base = std::bit_cast<std::byte*>(std::stoull(line, nullptr, 16));
    if (reinterpret_cast<const hca::ArenaHeader*>(base)->closed.load() == 0) return base;
  }
  return nullptr;
}

}  // namespace

class Scribbler::File final : public hca::ArenaFile {
 public:
  explicit File(const std::byte* base)
      : header_(*reinterpret_cast<const hca::ArenaHeader*>(base)) {}

 private:
  std::uint64_t query_size() override { return header_.size; }
  const hca::ArenaHeader& header_;
};

Scribbler::Scribbler() {
  std::byte* const base = find_device_memory();
  IB_ASSERT(base != nullptr);
  file_ = std::make_unique<File>(base);
  arena_ = hca::Arena(base, *file_);
}

void Scribbler::forge(std::uint32_t cq_index, const hca::Cqe& cqe) const {
  const hca::CqEntry& entry = *arena_.cq(cq_index);
  const std::uint64_t at = entry.consumer.consumer.load();
  std::byte* const ring = arena_.heap(entry.id.ring, entry.id.slots * sizeof(hca::Cqe));
  auto& slot = reinterpret_cast<hca::Cqe*>(ring)[at % entry.id.slots];
  std::memcpy(static_cast<void*>(&slot), &cqe, offsetof(hca::Cqe, seq));
  slot.seq.store(static_cast<std::uint32_t>(at / entry.id.slots) + 1, std::memory_order_release);
}

}  // namespace ib::conformance
