// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/abi/verbs_ops.h"

#include <cstring>

namespace ib::host_abi {

PackedOps pack(const VerbsContextOps& ops, std::size_t table) {
  PackedOps all{};
  std::memcpy(all.data(), &ops, sizeof ops);
  PackedOps packed{};
  std::size_t next = 0;
  for (std::size_t op = 0; op < kVerbsOpCount; ++op) {
    if (kFirstTable[op] <= table) packed[next++] = all[op];
  }
  return packed;
}

}  // namespace ib::host_abi
