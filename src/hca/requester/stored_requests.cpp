// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "hca/requester/stored_requests.h"

#include "base/address.h"

#include <algorithm>
#include <cstring>

namespace ib::hca {

StoredRequests::StoredRequests(const RequesterConfig& config, std::uint32_t mask)
    : mask_(mask),
      slot_size_(sizeof(SendWqe) +
                 std::max<std::size_t>(std::size_t{config.max_sge} * sizeof(Sge),
                                       (std::size_t{config.max_inline} + 15) / 16 * 16)) {}

std::byte* StoredRequests::slot(std::uint64_t position) const {
  return slots_.get() + (position & mask_) * slot_size_;
}

void StoredRequests::store(const SendWqe& wqe, std::uint64_t position) {
  if (!slots_) slots_.reset(new std::byte[(mask_ + std::size_t{1}) * slot_size_]);
  std::byte* at = slot(position);
  SendWqe kept = wqe;
  std::byte* tail = at + sizeof kept;
  if (wqe.inline_data) {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < wqe.num_sge; ++i) {
      std::memcpy(tail + bytes, pointer_to(wqe.sge[i].address), wqe.sge[i].length);
      bytes += wqe.sge[i].length;
    }
    kept.inline_bytes = static_cast<std::uint32_t>(bytes);
  } else if (wqe.num_sge > 0) {
    std::memcpy(tail, wqe.sge, wqe.num_sge * sizeof(Sge));
  }
  kept.stored = true;
  std::memcpy(at, &kept, sizeof kept);
}

SendWqe StoredRequests::load(std::uint64_t position) const {
  SendWqe wqe;
  const std::byte* at = slot(position);
  std::memcpy(&wqe, at, sizeof wqe);
  const std::byte* tail = at + sizeof wqe;
  wqe.sge = wqe.inline_data ? nullptr : reinterpret_cast<const Sge*>(tail);
  if (wqe.inline_data) wqe.num_sge = 0;  // the elements were the poster's; only the bytes are kept
  wqe.kept_inline = wqe.inline_data ? tail : nullptr;
  return wqe;
}

}  // namespace ib::hca
