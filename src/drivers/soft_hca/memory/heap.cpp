// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/soft_hca/memory/heap.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ib::drivers {
namespace {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t align) {
  return (value + align - 1) & ~(align - 1);
}

}  // namespace

Heap::Heap(HeapMemory& memory, std::uint64_t start, std::uint64_t space, std::uint64_t step,
           std::uint64_t limit)
    : memory_(memory),
      start_(round_up(start, kPage)),
      space_(space),
      step_(step),
      limit_(limit == 0 ? space - start_ : std::min(limit, space - start_)),
      end_(start_),
      fresh_(start_) {}

bool Heap::fits(std::uint64_t offset, std::uint64_t length, std::uint64_t size,
                std::uint64_t align) const {
  const std::uint64_t skip = round_up(offset, align) - offset;
  return skip <= length && size <= length - skip;
}

Result<std::uint64_t> Heap::allocate(std::uint64_t size, std::uint64_t align, std::string& reason) {
  IB_ASSERT(size > 0 && std::has_single_bit(align));
  if (size > space_ || align > space_) {
    reason = fmt::format("device memory has room for {} bytes, {} were asked for", limit_, size);
    return Status::InsufficientResources;
  }
  const std::uint64_t granule = size >= kPage ? kPage : kGranule;
  align = std::max(align, granule);
  size = round_up(size, granule);
  if (size > limit_ - used_) {
    reason = fmt::format(
        "device memory is full: {} of {} bytes are in use and {} more were asked for; give softibd "
        "a larger --max-memory, or destroy something",
        used_, limit_, size);
    return Status::InsufficientResources;
  }
  auto at = take_free(size, align);
  if (!at) {
    IB_CHECK(extend(size, align, reason));
    at = take_free(size, align);
    IB_ASSERT(at.has_value());
  }
  pieces_.emplace(*at, size);
  used_ += size;
  make_zero(*at, size);
  return *at;
}

// Cuts it out of the smallest free piece that has room for it.
std::optional<std::uint64_t> Heap::take_free(std::uint64_t size, std::uint64_t align) {
  for (auto it = free_by_length_.lower_bound({size, 0}); it != free_by_length_.end(); ++it) {
    const auto [length, offset] = *it;
    if (!fits(offset, length, size, align)) continue;
    const std::uint64_t at = round_up(offset, align);
    remove_free(free_.find(offset));
    if (at > offset) add_free(offset, at - offset);
    if (offset + length > at + size) add_free(at + size, offset + length - at - size);
    return at;
  }
  return std::nullopt;
}

// Adds a free piece at the end that is large enough.
Status Heap::extend(std::uint64_t size, std::uint64_t align, std::string& reason) {
  const std::uint64_t want = size + align;  // enough wherever the alignment falls
  const std::uint64_t new_end =
      end_ + std::min(space_ - end_, std::max(round_up(want, kPage), step_));
  if (new_end - end_ < want) {
    reason = "the address space of device memory is used up";
    return Status::InsufficientResources;
  }
  IB_CHECK(memory_.grow_to(new_end, reason));
  const std::uint64_t offset = end_;
  end_ = new_end;
  // Merged with a free piece before it, if there is one.
  std::uint64_t begin = offset;
  if (auto it = free_.lower_bound(offset); it != free_.begin()) {
    --it;
    if (it->first + it->second == offset) {
      begin = it->first;
      remove_free(it);
    }
  }
  add_free(begin, new_end - begin);
  return Status::Ok;
}

// Memory that was never handed out is zeros already, and must not be touched: it costs nothing yet.
void Heap::make_zero(std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t old_end = std::min(offset + size, std::max(fresh_, offset));
  fresh_ = std::max(fresh_, offset + size);
  const std::uint64_t used_before = old_end - offset;
  if (used_before == 0) return;
  if (used_before >= kGiveBack) {
    memory_.give_back(offset, used_before);
  } else {
    memory_.clear(offset, used_before);
  }
}

void Heap::release(std::uint64_t offset) {
  const auto piece = pieces_.find(offset);
  IB_ASSERT(piece != pieces_.end());
  std::uint64_t length = piece->second;
  pieces_.erase(piece);
  used_ -= length;
  if (length >= kGiveBack) memory_.give_back(offset, length);

  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + length) {
    length += next->second;
    const auto after = std::next(next);
    remove_free(next);
    next = after;
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      length += previous->second;
      remove_free(previous);
    }
  }
  add_free(offset, length);
}

void Heap::add_free(std::uint64_t offset, std::uint64_t length) {
  free_.emplace(offset, length);
  free_by_length_.emplace(length, offset);
}

void Heap::remove_free(std::map<std::uint64_t, std::uint64_t>::iterator piece) {
  free_by_length_.erase({piece->second, piece->first});
  free_.erase(piece);
}

}  // namespace ib::drivers
