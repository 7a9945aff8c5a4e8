// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory in slabs of equal places, each slab with one registration. A place that is given
// back is the next to be taken; a slab without places in use goes, but for a few that are spare.
#include "services/streams/stream_memory.h"

#include "services/streams/stream_hca.h"
#include "verbs/types.h"

#include <algorithm>
#include <utility>

namespace ib::services {

namespace control = verbs::control;
using control::Code;

namespace {

constexpr std::uint32_t kFirstPlaces = 8;
constexpr std::uint32_t kPageLogAlign = 12;

}  // namespace

struct StreamMemory::Slab {
  StreamMemory* owner = nullptr;
  io::Irp irp;
  control::AllocDmIn alloc;
  control::DmOut memory;
  control::RegMrIn reg;
  control::MrOut region;
  control::IndexIn gone;
  std::uint32_t memory_handle = 0;
  std::uint32_t region_handle = 0;
  std::uint32_t places = 0;
  std::vector<std::uint32_t> free;  // the last one is taken first
  bool is_full() const { return free.empty(); }
  bool is_empty() const { return free.size() == places; }
};

StreamMemory::StreamMemory(StreamHca& hca, std::uint64_t place_bytes, std::uint32_t most,
                           bool is_registered)
    : hca_(hca), place_bytes_(place_bytes), most_(most), is_registered_(is_registered) {}

StreamMemory::~StreamMemory() = default;

void StreamMemory::take(OnPlace then) {
  if (!with_room_.empty()) return then(Status::Ok, {}, take_from(*with_room_.back()));
  waiting_.push_back(std::move(then));
  if (!is_adding_) add_slab();
}

StreamMemory::Place StreamMemory::take_from(Slab& slab) {
  const std::uint64_t at = slab.free.back() * place_bytes_;
  slab.free.pop_back();
  --room_;
  ++used_;
  if (slab.is_full()) std::erase(with_room_, &slab);
  return {slab.memory.offset + at, at, slab.region.lkey, &slab};
}

void StreamMemory::give_back(const Place& place) {
  Slab& slab = *place.slab;
  if (slab.is_full()) with_room_.push_back(&slab);
  ++room_;
  slab.free.push_back(
      static_cast<std::uint32_t>((place.offset - slab.memory.offset) / place_bytes_));
  --used_;
  // So many places stay for the next streams.
  const std::size_t other_room = room_ - slab.free.size();
  if (slab.is_empty() && other_room >= used_ + most_) free_slab(slab);
}

void StreamMemory::add_slab() {
  is_adding_ = true;
  Slab& slab = *slabs_.emplace_back(std::make_unique<Slab>());
  slab.owner = this;
  const std::size_t doublings = std::min<std::size_t>(slabs_.size() - 1, 16);
  slab.places = std::min(most_, kFirstPlaces << doublings);
  slab.alloc.length = slab.places * place_bytes_;
  slab.alloc.log_align = kPageLogAlign;
  const auto done = [](io::Irp&, void* context) {
    Slab& one = *static_cast<Slab*>(context);
    one.owner->on_allocated(one);
  };
  hca_.call(Code::AllocDm, slab.alloc, slab.memory, slab.irp.start(done, &slab));
}

void StreamMemory::on_allocated(Slab& slab) {
  if (slab.irp.status != Status::Ok) return on_failed(slab);
  slab.memory_handle = static_cast<std::uint32_t>(slab.irp.information);
  if (!is_registered_) return on_registered(slab);
  slab.reg.pd = hca_.pd();
  slab.reg.access = verbs::access::kLocalWrite;
  slab.reg.length = slab.memory.length;
  slab.reg.dm = slab.memory_handle;
  const auto done = [](io::Irp&, void* context) {
    Slab& one = *static_cast<Slab*>(context);
    if (one.irp.status != Status::Ok) return one.owner->on_failed(one);
    one.region_handle = static_cast<std::uint32_t>(one.irp.information);
    one.owner->on_registered(one);
  };
  hca_.call(Code::RegMr, slab.reg, slab.region, slab.irp.start(done, &slab));
}

void StreamMemory::on_registered(Slab& slab) {
  is_adding_ = false;
  for (std::uint32_t i = slab.places; i > 0; --i) slab.free.push_back(i - 1);
  room_ += slab.places;
  with_room_.push_back(&slab);
  serve();
}

// A slab that is smaller may still fit; but what is nearly full is left to others.
void StreamMemory::on_failed(Slab& slab) {
  is_adding_ = false;
  const Status status = slab.irp.status;
  const std::string reason = slab.irp.reason;
  slab.memory_handle != 0 ? free_slab(slab) : erase(slab);
  for (const OnPlace& then : std::exchange(waiting_, {})) then(status, reason, {});
}

void StreamMemory::serve() {
  while (!waiting_.empty() && !with_room_.empty()) {
    const OnPlace then = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    then(Status::Ok, {}, take_from(*with_room_.back()));
  }
  if (!waiting_.empty() && !is_adding_) add_slab();
}

void StreamMemory::free_slab(Slab& slab) {
  room_ -= std::exchange(slab.free, {}).size();
  std::erase(with_room_, &slab);
  const auto freed = [](io::Irp&, void* context) {
    Slab& one = *static_cast<Slab*>(context);
    one.owner->erase(one);
  };
  const auto deregistered = [](io::Irp&, void* context) {
    Slab& one = *static_cast<Slab*>(context);
    one.region_handle = 0;
    one.owner->free_slab(one);
  };
  const bool has_region = slab.region_handle != 0;
  slab.gone.index = has_region ? slab.region_handle : slab.memory_handle;
  hca_.call(has_region ? Code::DeregMr : Code::FreeDm, slab.gone,
            has_region ? slab.irp.start(deregistered, &slab) : slab.irp.start(freed, &slab));
}

void StreamMemory::erase(const Slab& slab) {
  std::erase_if(slabs_, [&slab](const auto& one) { return one.get() == &slab; });
}

void StreamMemory::forget() {
  with_room_.clear();
  slabs_.clear();
  room_ = 0;
  used_ = 0;
}

}  // namespace ib::services
