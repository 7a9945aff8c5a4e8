// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/registered_memory.h"

#include "base/address.h"

#include <utility>

namespace ib::ipoib::driver {

namespace {

constexpr std::uint32_t kLogAlign = 6;  // a cache line

}  // namespace

Result<std::unique_ptr<RegisteredMemory>> RegisteredMemory::create(user::Hca& hca,
                                                                   const user::ProtectionDomain& pd,
                                                                   std::size_t length) {
  IB_TRY(memory, hca.alloc_device_memory(length, kLogAlign));
  user::control::RegMrIn in;
  in.pd = pd.handle();
  in.access = verbs::access::kLocalWrite;
  in.length = length;
  in.iova = address_of(memory->bytes().data());
  in.dm = memory->handle();
  auto region = hca.register_memory(in);
  if (!region) {
    (void)memory->destroy();
    return region.error();
  }
  return std::unique_ptr<RegisteredMemory>(
      new RegisteredMemory(std::move(memory), *std::move(region)));
}

RegisteredMemory::~RegisteredMemory() {
  (void)region_->destroy();
  (void)memory_->destroy();
}

bool RegisteredMemory::holds(std::span<const std::byte> part) const {
  const auto whole = bytes();
  const std::uint64_t first = address_of(whole.data());
  const std::uint64_t at = address_of(part.data());
  return at >= first && at - first <= whole.size() && part.size() <= whole.size() - (at - first);
}

user::Sge RegisteredMemory::sge(std::span<const std::byte> part) const {
  return {address_of(part.data()), static_cast<std::uint32_t>(part.size()), region_->lkey()};
}

}  // namespace ib::ipoib::driver
