// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/address_block.h"

#include "fabric/model.h"
#include "setup/file_digest.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>

namespace ib::softib {
namespace {

// Every node has an address for each Ethernet port that it can come to have.
constexpr std::uint32_t kMostPorts = fabric::kMaxHcasPerNode * fabric::kMaxPortsPerHca;
constexpr unsigned kPortBits = 5;
static_assert(kMostPorts == 1u << kPortBits);
constexpr unsigned kLeastStrideBits = kUnitBits - kPortBits;

// 127.0.0.0/16 is localhost's, 127.77.0.0/16 is left to configuration files, and the last address
// of all is for broadcasts.
struct Units {
  std::uint32_t first;
  std::uint32_t last;
};
constexpr std::uint32_t kNetwork = 1u << (16 - kUnitBits);
constexpr Units kReserved[] = {
    {0, kNetwork - 1}, {77 * kNetwork, 78 * kNetwork - 1}, {kUnits - 1, kUnits - 1}};

bool is_reserved(std::uint32_t first, std::uint32_t count) {
  return std::any_of(std::begin(kReserved), std::end(kReserved), [&](const Units& units) {
    return first <= units.last && units.first < first + count;
  });
}

// Node n has number n + 1; the last number of a stride stays free.
unsigned stride_bits_of(std::size_t nodes) {
  return std::max(kLeastStrideBits, static_cast<unsigned>(std::bit_width(nodes + 1)));
}

std::uint32_t spread(std::uint32_t uid, std::string_view fabric) {
  const std::uint64_t digest = digest_of(fabric, digest_of(std::to_string(uid) + "/"));
  return static_cast<std::uint32_t>(digest ^ digest >> 32);
}

}  // namespace

fabric::AddressBlock block_of(std::uint32_t address, std::size_t nodes) {
  const unsigned bits = stride_bits_of(nodes);
  const std::uint32_t size = kMostPorts << bits;
  return {address & ~(size - 1), 1u << bits};
}

std::optional<fabric::AddressBlock> choose_block(std::uint32_t uid, std::string_view fabric,
                                                 std::size_t nodes, const ClaimUnits& claim) {
  const unsigned stride_bits = stride_bits_of(nodes);
  const std::uint32_t units = 1u << (stride_bits - kLeastStrideBits);
  const std::uint32_t blocks = kUnits / units;
  // Most fabrics are small. They begin in the upper half, so that the lower one has room for
  // others.
  const std::uint32_t half = blocks / 2;
  const std::uint32_t begin = spread(uid, fabric) % half + (units == 1 ? half : 0);
  for (std::uint32_t i = 0; i < blocks; ++i) {
    const std::uint32_t first = (begin + i) % blocks * units;
    if (is_reserved(first, units) || !claim(first, units)) continue;
    return fabric::AddressBlock{unit_address(first), 1u << stride_bits};
  }
  return std::nullopt;
}

}  // namespace ib::softib
