// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/arena_mapping.h"

#include <algorithm>
#include <utility>

namespace ib::user {

namespace {

class MappedArena final : public hca::ArenaFile {
 public:
  explicit MappedArena(platform::MappedFile& file) : file_(file) {}

 protected:
  std::uint64_t query_size() override { return std::min(file_.file_size(), file_.size()); }

 private:
  platform::MappedFile& file_;
};

}  // namespace

Status ArenaMapping::map(platform::ClientHost& host, const platform::NativeHandle& file,
                         std::string& reason) {
  auto mapping = host.map(file, hca::kArenaSpace, reason);
  if (!mapping) return mapping.error();
  mapping_ = *std::move(mapping);
  file_ = std::make_unique<MappedArena>(*mapping_);
  if (file_->size_at_least(hca::place::kHeap) < hca::place::kHeap) {
    reason = "device memory is shorter than its tables";
    return Status::Malformed;
  }
  const hca::Arena whole = arena();
  const hca::ArenaHeader& header = whole.header();
  if (header.magic != hca::kArenaMagic || header.version != hca::kLayoutVersion) {
    reason = "device memory has another layout: softibd and this library are of different versions";
    return Status::Malformed;
  }
  return Status::Ok;
}

}  // namespace ib::user
