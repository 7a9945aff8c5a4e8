// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IdTable: the open files of the rdma_cm service and their ids, by number.
#pragma once

#include "services/rdma_cm/service/ids.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

namespace ib::services::rdma_cm {

class IdTable {
 public:
  // Ids of one file; the rest is for others.
  static constexpr std::size_t kMaxIdsOfFile = 65536;
  using Files = std::unordered_map<std::uint32_t, std::unique_ptr<File>>;
  using Ids = std::unordered_map<std::uint32_t, std::unique_ptr<Id>>;

  IdTable(std::function<std::uint32_t()> random, std::function<Instant()> now)
      : random_(std::move(random)), now_(std::move(now)) {}

  File& make_file(FileOptions options);
  File* find_file(std::uint32_t number) const;
  // It has no ids any more.
  void erase_file(const File& file) { files_.erase(file.number); }
  const Files& files() const { return files_; }

  static bool has_room(const File& file, std::size_t more = 1) {
    return file.ids.size() + more <= kMaxIdsOfFile;
  }
  // The caller has seen that the file has room.
  Id& make(File& file);
  Id* find(std::uint32_t number) const;
  Id& at(std::uint32_t number) const { return *ids_.at(number); }
  // Returns nullptr, with ENOENT or EINVAL in `error`, if it is no id of this file. A request whose
  // event is unread is none yet.
  Id* find(const File& file, std::uint32_t number, Error& error) const;
  void erase(const Id& id);
  const Ids& ids() const { return ids_; }

 private:
  std::function<std::uint32_t()> random_;
  std::function<Instant()> now_;  // for the age of ids
  Files files_;
  Ids ids_;
  std::uint32_t last_file_ = 0;
  std::uint32_t last_id_ = 0;
};

}  // namespace ib::services::rdma_cm
