// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/service/id_table.h"

#include <utility>

namespace ib::services::rdma_cm {
namespace {

template <class Map>
std::uint32_t next_number(const Map& map, std::uint32_t& last, std::uint32_t limit) {
  do {
    last = last + 1 < limit ? last + 1 : 1;
  } while (map.contains(last));
  return last;
}
// The preload library keeps a file's number in 28 bits.
constexpr std::uint32_t kFileLimit = 1u << 28;
constexpr std::uint32_t kIdLimit = 1u << 31;

}  // namespace

File& IdTable::make_file(FileOptions options) {
  const std::uint32_t number = next_number(files_, last_file_, kFileLimit);
  return *files_.emplace(number, std::make_unique<File>(number, std::move(options))).first->second;
}

File* IdTable::find_file(std::uint32_t number) const {
  const auto at = files_.find(number);
  return at == files_.end() ? nullptr : at->second.get();
}

Id& IdTable::make(File& file) {
  auto id = std::make_unique<Id>();
  id->number = next_number(ids_, last_id_, kIdLimit);
  id->file = &file;
  id->node = file.options.node;
  id->psn = random_() & 0xffffff;
  id->since = now_();
  Id& made = *id;
  file.ids.insert(made.number);
  ids_.emplace(made.number, std::move(id));
  return made;
}

Id* IdTable::find(std::uint32_t number) const {
  const auto at = ids_.find(number);
  return at == ids_.end() ? nullptr : at->second.get();
}

Id* IdTable::find(const File& file, std::uint32_t number, Error& error) const {
  Id* const id = find(number);
  const bool is_known = id != nullptr && !id->is_unread;
  if (is_known && id->file == &file) return id;
  error = is_known ? Error::Invalid : Error::NoEntry;
  return nullptr;
}

void IdTable::erase(const Id& id) {
  id.file->ids.erase(id.number);
  ids_.erase(id.number);
}

}  // namespace ib::services::rdma_cm
