// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamMemory: places of one size in the device memory of an HCA. They are parts of *slabs*, each
// allocated, and if wanted registered, as a whole; the place that was given back last is the next
// one that is taken, since its pages are there.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/al.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ib::services {

class StreamHca;

class StreamMemory {
 public:
  struct Slab;
  struct Place {
    std::uint64_t offset = 0;   // in device memory
    std::uint64_t address = 0;  // of its first byte within the region
    std::uint32_t lkey = 0;
    Slab* slab = nullptr;
    bool is_valid() const { return slab != nullptr; }
  };
  using OnPlace = std::function<void(Status status, const std::string& reason, const Place& place)>;

  // `most`: places of a slab; the first ones have fewer.
  StreamMemory(StreamHca& hca, std::uint64_t place_bytes, std::uint32_t most, bool is_registered);
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;
  ~StreamMemory();  // nothing is under way

  // Calls `then` at once or later.
  void take(OnPlace then);
  void give_back(const Place& place);
  // All slabs are gone, with the HCA's file.
  void forget();
  std::size_t slab_count() const { return slabs_.size(); }

 private:
  void add_slab();
  void on_allocated(Slab& slab);
  void on_registered(Slab& slab);
  void on_failed(Slab& slab);
  void serve();
  void free_slab(Slab& slab);
  void erase(const Slab& slab);
  Place take_from(Slab& slab);

  StreamHca& hca_;
  std::uint64_t place_bytes_;
  std::uint32_t most_;
  bool is_registered_;
  bool is_adding_ = false;
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::vector<Slab*> with_room_;  // the last one is used first
  std::size_t used_ = 0;          // places
  std::size_t room_ = 0;
  std::vector<OnPlace> waiting_;
};

}  // namespace ib::services
