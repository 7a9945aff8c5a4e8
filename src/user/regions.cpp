// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/regions.h"

#include "user/process_state.h"

#include <algorithm>
#include <bit>

namespace ib::user {

using hca::KeyState;
using platform::AdoptMode;
using verbs::control::Code;

namespace {

// With user-faults-only userfaultfd a system call that touches moving pages would fail, so pages
// move only while the application is inside its registration call, and only so many.
constexpr std::uint64_t kEagerBytes = 16ull << 20;
constexpr std::uint32_t kQuietRounds = 200'000;

}  // namespace

Regions::Regions(ProcessState& process) : process_(process) {
  const hca::Path path = process.plane().path();
  const AdoptMode mode = process.host().adopt_mode();
  eager_ =
      path == hca::Path::Adopted || (path == hca::Path::Auto && mode == AdoptMode::UserFaultsOnly);
  eager_max_ = path == hca::Path::Adopted ? ~std::uint64_t{0} : kEagerBytes;
}

// Pages stay where they are: the process is ending, or softibd is gone and with it every peer.
Regions::~Regions() = default;

void Regions::add(std::uint32_t index, const verbs::control::RegMrIn& in,
                  const verbs::control::MrOut& out, std::byte* address, std::uint64_t length) {
  hca::LocalKey& local = process_.plane().local_keys().at(index);
  local.pd = verbs::control::index_of(in.pd);
  local.access = in.access;
  local.iova = (in.access & verbs::access::kZeroBased) != 0 ? 0 : in.iova;
  local.length = length;
  local.address = address;
  const bool null = (in.flags & verbs::control::region_flag::kNull) != 0;
  local.kind = null                                ? hca::KeyKind::Null
               : in.dm != verbs::control::kNoIndex ? hca::KeyKind::DeviceMemory
                                                   : hca::KeyKind::Region;
  local.key.store(out.lkey, std::memory_order_release);

  Region region;
  region.key = out.lkey;
  region.kind = local.kind;
  region.address = std::bit_cast<std::uint64_t>(address);
  region.length = length;
  region.may_adopt = local.kind == hca::KeyKind::Region &&
                     (in.flags & verbs::control::region_flag::kImplicitOdp) == 0 &&
                     process_.plane().path() != hca::Path::ProcessVm &&
                     process_.plane().path() != hca::Path::Bounce;
  Region& kept = regions_[index] = region;
  // Pages that are adopted already serve this region too.
  for (auto backing = backings_.begin(); backing != backings_.end(); ++backing) {
    const auto& pages = backing->pages;
    if (kept.may_adopt && kept.address < pages.address + pages.length &&
        pages.address < kept.address + kept.length) {
      if (kept.backings.empty()) point(index, *backing);
      kept.backings.push_back(backing);
      ++backing->regions;
    }
  }
  if (eager_ && kept.may_adopt && kept.backings.empty() && length <= eager_max_) adopt(index);
}

void Regions::hide(std::uint32_t index) {
  process_.plane().local_keys().hide(index);
}

void Regions::undo(std::uint32_t index) {
  const auto found = regions_.find(index);
  if (found == regions_.end()) return;
  process_.plane().local_keys().at(index).key.store(found->second.key, std::memory_order_release);
}

void Regions::remove(std::uint32_t index) {
  const auto found = regions_.find(index);
  if (found == regions_.end()) return;
  for (const auto& backing : found->second.backings) release(backing);
  regions_.erase(found);
}

void Regions::release(std::list<Backing>::iterator backing) {
  if (--backing->regions > 0) return;
  const verbs::control::IndexIn in{backing->handle, 0};
  (void)process_.call(Code::DestroyBacking, 0, in);  // softibd's going is noticed elsewhere
  process_.host().give_back(backing->pages);
  backings_.erase(backing);
}

void Regions::adopt_wanted() {
  std::vector<std::uint32_t> wanted;
  for (const auto& [index, region] : regions_) {
    hca::KeyEntry* key = process_.arena().key(index);
    if (key->adopted.adopt_wanted.load(std::memory_order_acquire) != 1) continue;
    key->adopted.adopt_wanted.store(0, std::memory_order_release);
    const bool eager_only = process_.host().adopt_mode() == AdoptMode::UserFaultsOnly;
    if (region.may_adopt && region.backings.empty() && !eager_only) {
      wanted.push_back(index);
    } else {
      key->adopted.hits.store(hca::kNone, std::memory_order_relaxed);
    }
  }
  for (const std::uint32_t index : wanted) {
    if (regions_.at(index).backings.empty()) adopt(index);
  }
}

std::vector<std::uint32_t> Regions::overlapping(std::uint64_t address, std::uint64_t length) const {
  std::vector<std::uint32_t> found;
  for (const auto& [index, region] : regions_) {
    // Windows' and implicit regions' accesses go by address too: the latter overlap everything.
    if (region.kind == hca::KeyKind::Region && region.address < address + length &&
        (region.length > ~region.address || address < region.address + region.length)) {
      found.push_back(index);
    }
  }
  return found;
}

void Regions::set_state(std::uint32_t index, KeyState state) {
  process_.arena().key(index)->id.state.store(static_cast<std::uint32_t>(state),
                                              std::memory_order_seq_cst);
}

bool Regions::quiesce() {
  hca::Quiescence quiet(process_.arena(), process_.host().barriers(), process_.plane().slot());
  for (std::uint32_t round = 0; round < kQuietRounds; ++round) {
    if (quiet.done()) return true;
    process_.host().relax(round);
  }
  return false;
}

void Regions::adopt(std::uint32_t index) {
  const Region& region = regions_.at(index);
  const std::uint64_t page = process_.host().page_size();
  const std::uint64_t first = (region.address + page - 1) / page * page;
  const std::uint64_t end = (region.address + region.length) / page * page;
  hca::Shared32& hits = process_.arena().key(index)->adopted.hits;
  const std::vector<std::uint32_t> stopped =
      end > first ? overlapping(first, end - first) : std::vector<std::uint32_t>{};
  const bool part_adopted = std::any_of(stopped.begin(), stopped.end(), [this](std::uint32_t i) {
    return !regions_.at(i).backings.empty();
  });
  if (stopped.empty() || part_adopted) {
    hits.store(hca::kNone, std::memory_order_relaxed);  // stays with the slower path
    return;
  }
  for (const std::uint32_t i : stopped) set_state(i, KeyState::Moving);
  bool adopted = false;
  if (quiesce()) {
    auto pages = process_.host().adopt(first, end - first);
    if (pages) adopted = publish(*std::move(pages), stopped);
  }
  if (!adopted) hits.store(hca::kNone, std::memory_order_relaxed);
  for (const std::uint32_t i : stopped) set_state(i, KeyState::Valid);
}

bool Regions::publish(platform::AdoptedPages pages, const std::vector<std::uint32_t>& stopped) {
  verbs::control::BackingIn in{pages.length};
  verbs::control::BackingOut out;
  const int handle = pages.file.get();
  const auto made =
      process_.call(Code::CreateBacking, 0, in, std::as_writable_bytes(std::span(&out, 1)),
                    std::span(&handle, 1));
  if (!made) {
    process_.host().give_back(pages);
    return false;
  }
  Backing backing;
  backing.pages = std::move(pages);
  backing.handle = static_cast<std::uint32_t>(*made);
  backing.index = verbs::control::index_of(backing.handle);
  backing.generation = out.generation;
  backings_.push_back(std::move(backing));
  const auto last = std::prev(backings_.end());
  for (const std::uint32_t i : stopped) {
    point(i, *last);
    if (regions_.at(i).may_adopt) {
      regions_.at(i).backings.push_back(last);
      ++last->regions;
    }
  }
  return true;
}

// The key's state is not Valid, or nobody knows the key yet.
void Regions::point(std::uint32_t index, const Backing& backing) {
  auto& adopted = process_.arena().key(index)->adopted;
  adopted.address = backing.pages.address;
  adopted.offset = 0;
  adopted.backing = backing.index;
  adopted.backing_generation = backing.generation;
  adopted.length = backing.pages.length;
}

}  // namespace ib::user
