// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/regions.h"

#include "base/address.h"
#include "user/process.h"

#include <algorithm>

namespace ib::user {

using platform::ClientHost;
using verbs::control::Code;

namespace {

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

std::uint64_t end_of(std::uint64_t address, std::uint64_t length) {
  return length > ~address ? ~std::uint64_t{0} : address + length;
}

bool overlap(std::uint64_t a, std::uint64_t a_length, std::uint64_t b, std::uint64_t b_length) {
  return a < end_of(b, b_length) && b < end_of(a, a_length);
}

}  // namespace

Regions::Regions(Process& process) : process_(process) {}

// Pages stay where they are: the process is ending, or softibd is gone and with it every peer.
Regions::~Regions() = default;

void Regions::publish_local(std::uint32_t index, const verbs::control::RegMrIn& in,
                            std::uint32_t lkey, std::byte* address, std::uint64_t length) {
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
  local.doubted.store(0, std::memory_order_relaxed);
  local.key.store(lkey, std::memory_order_release);
}

void Regions::add(std::uint32_t index, const verbs::control::RegMrIn& in,
                  const verbs::control::MrOut& out, std::byte* address, std::uint64_t length) {
  publish_local(index, in, out.lkey, address, length);
  drop_unused();
  Region& region = regions_[index];
  region.key = out.lkey;
  region.kind = process_.plane().local_keys().at(index).kind;
  region.address = address_of(address);
  region.length = length;
  if (region.kind != hca::KeyKind::Region) return;
  hold_backings(region);
  const hca::Path path = process_.plane().path();
  // On-demand regions follow what the program maps; adopted pages would not.
  const bool follows = (in.access & verbs::access::kOnDemand) != 0 ||
                       (in.flags & verbs::control::region_flag::kImplicitOdp) != 0;
  const bool stays = follows || path == hca::Path::ProcessVm || path == hca::Path::Bounce;
  if (!stays && !use_backing(index, region)) adopt(index, region);
  cover(region);
  watch(region);
}

void Regions::watch(Region& region) {
  watched_.remove(region.watched);
  region.watched = watched_.add(region.key, region.address, end_of(region.address, region.length));
}

void Regions::mappings_change(std::uint64_t start, std::uint64_t length) {
  watched_.doubt(process_.plane().local_keys(), start, end_of(start, length));
}

void Regions::change(std::uint32_t index, const verbs::control::RegMrIn& now,
                     const verbs::control::MrOut& out, std::byte* address, std::uint64_t length) {
  publish_local(index, now, out.lkey, address, length);
  const auto found = regions_.find(index);
  if (found == regions_.end()) return;
  Region& region = found->second;
  region.key = out.lkey;
  if (region.kind != hca::KeyKind::Region) return;
  uncover(region);
  region.address = address_of(address);
  region.length = length;
  cover(region);
  hold_backings(region);
  watch(region);
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
  if (found->second.kind == hca::KeyKind::Region) uncover(found->second);
  watched_.remove(found->second.watched);
  const std::vector<BackingRef> held = std::move(found->second.backings);
  regions_.erase(found);
  for (const BackingRef& backing : held) {
    if (--backing->regions == 0) drop(backing);
  }
}

void Regions::cover(const Region& region) {
  covered_.add(region.address, end_of(region.address, region.length));
}

void Regions::uncover(const Region& region) {
  covered_.remove(region.address, end_of(region.address, region.length));
}

// Peers reach the pages of a backing in other ways, too, if a region is not adopted itself: they
// must not become private again while any region covers them.
void Regions::hold_backings(Region& region) {
  for (auto backing = backings_.begin(); backing != backings_.end(); ++backing) {
    const auto& pages = backing->pages;
    if (!overlap(region.address, region.length, pages.address, pages.length)) continue;
    if (std::find(region.backings.begin(), region.backings.end(), backing) !=
        region.backings.end()) {
      continue;
    }
    region.backings.push_back(backing);
    ++backing->regions;
  }
}

// Pages that are adopted already serve this region, too, if the program has left them where they
// were: it may have unmapped them and mapped others at the same address.
bool Regions::use_backing(std::uint32_t index, const Region& region) {
  const std::uint64_t end = end_of(region.address, region.length);
  for (const BackingRef& backing : region.backings) {
    const auto& pages = backing->pages;
    if (backing->handle == 0) continue;
    const std::uint64_t first = std::max(region.address, pages.address);
    const std::uint64_t length = std::min(end, pages.address + pages.length) - first;
    if (process_.host().adopted_presence(pages, first, length) == ClientHost::Presence::Whole) {
      point(index, *backing);
      return true;
    }
  }
  return false;
}

void Regions::adopt(std::uint32_t index, Region& region) {
  ClientHost& host = process_.host();
  const std::uint64_t page = host.page_size();
  const std::uint64_t first = (region.address + page - 1) / page * page;
  const std::uint64_t end = end_of(region.address, region.length) / page * page;
  if (first < region.address || end <= first || covered_.overlaps(first, end)) return;
  const bool forced = process_.plane().path() == hca::Path::Adopted;
  const std::uint64_t most = forced ? kUnlimited : budget_.left(host.now());
  if (most == 0) return;
  auto pages = host.adopt(first, end - first, most);
  if (!pages) return;
  if (!forced) budget_.spend(pages->copied);
  BackingRef backing;
  if (!publish_backing(*std::move(pages), backing)) return;
  region.backings.push_back(backing);
  ++backing->regions;
  point(index, *backing);
}

bool Regions::publish_backing(platform::AdoptedPages pages, BackingRef& made) {
  verbs::control::BackingIn in{pages.length};
  verbs::control::BackingOut out;
  const int descriptor = pages.file.get();
  const auto handle = process_.connection().call(Code::CreateBacking, 0, in,
                                                 std::as_writable_bytes(std::span(&out, 1)),
                                                 std::span(&descriptor, 1));
  Backing backing;
  backing.pages = std::move(pages);
  if (handle) {
    backing.handle = static_cast<std::uint32_t>(*handle);
    backing.index = verbs::control::index_of(backing.handle);
    backing.generation = out.generation;
  }
  made = backings_.insert(backings_.end(), std::move(backing));
  if (!handle) drop(made);
  return static_cast<bool>(handle);
}

// Nobody has the key yet.
void Regions::point(std::uint32_t index, const Backing& backing) {
  auto& adopted = process_.arena().key(index)->adopted;
  adopted.address = backing.pages.address;
  adopted.offset = 0;
  adopted.backing = backing.index;
  adopted.backing_generation = backing.generation;
  adopted.length = backing.pages.length;
}

// No region overlaps the backing. It stays if the kernel may hold its pages for I/O.
void Regions::drop(BackingRef backing) {
  if (!process_.host().give_back(backing->pages)) return;
  if (backing->handle != 0) {
    const verbs::control::IndexIn in{backing->handle, 0};
    (void)process_.connection().call(Code::DestroyBacking, 0,
                                     in);  // softibd's going is noticed elsewhere
  }
  backings_.erase(backing);
}

void Regions::drop_unused() {
  for (auto at = backings_.begin(); at != backings_.end();) {
    const auto backing = at++;
    if (backing->regions == 0) drop(backing);
  }
}

}  // namespace ib::user
