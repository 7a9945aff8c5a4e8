// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StoredRequests: copies of the requests of a send queue that have to wait, with their SGEs or
// inline data. Room for them is taken when one waits for the first time.
#pragma once

#include "hca/requester/send_wqe.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ib::hca {

class StoredRequests {
 public:
  StoredRequests(const RequesterConfig& config, std::uint32_t mask);
  void store(const SendWqe& wqe, std::uint64_t position);
  SendWqe load(std::uint64_t position) const;

 private:
  std::byte* slot(std::uint64_t position) const;

  std::uint32_t mask_;
  std::size_t slot_size_;
  std::unique_ptr<std::byte[]> slots_;
};

}  // namespace ib::hca
