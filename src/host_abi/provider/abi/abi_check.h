// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds libibverbs' private functions in the process, and which of the layouts of verbs_abi.h and
// verbs_ops.h the library has: by what it does with marked memory.
#pragma once

#include "host_abi/provider/abi/verbs_ops.h"

#include <cstddef>
#include <optional>
#include <string>

namespace ib::host_abi {

// Of the libibverbs in the process.
struct VerbsPrivate {
  int abi = 0;
  void (*register_driver)(const VerbsDeviceOps* ops) = nullptr;
  void* (*init_and_alloc_context)(ibv_device* device, int cmd_fd, std::size_t size,
                                  verbs_context* context_offset, std::uint32_t driver_id) = nullptr;
  void (*uninit_context)(verbs_context* context) = nullptr;
  void (*set_ops)(verbs_context* context, const void* ops) = nullptr;
  ibv_qp_ex* (*qp_to_qp_ex)(ibv_qp* qp) = nullptr;
  std::size_t ops_table = 0;        // in kOpsTables
  std::size_t qp_ex_functions = 0;  // in struct ibv_qp_ex

  // Of struct verbs_context, before the struct ibv_context that ends it.
  std::size_t context_head() const { return kOpsTables[ops_table].context - sizeof(ibv_context); }
};

// Fills in `out` if the loaded libibverbs has one of these layouts. Otherwise returns false and a
// text with the defect and the remedy.
bool load_verbs_private(VerbsPrivate& out, std::string& reason);

// The parts of the check: the table of kOpsTables that `set_ops` reads, with every operation in the
// place where the library calls it; and the number of functions in struct ibv_qp_ex.
std::optional<std::size_t> find_ops_table(void (*set_ops)(verbs_context*, const void*));
std::optional<std::size_t> find_qp_ex_functions(ibv_qp_ex* (*qp_to_qp_ex)(ibv_qp*));

}  // namespace ib::host_abi
