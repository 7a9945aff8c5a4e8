// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds libibverbs' private functions in the process and checks that the library has the layout of
// verbs_abi_34.h, by letting it sort a table of marked pointers.
#pragma once

#include "host_abi/provider/abi/verbs_abi_34.h"

#include <string>

namespace ib::host_abi {

// Fills in the functions if the loaded libibverbs is the one this plug-in was written for.
// Otherwise returns false and a text with the defect and the remedy.
bool load_verbs_private(VerbsPrivate& out, std::string& reason);

// The behaviour check alone: returns whether `set_ops` puts each operation into its expected place.
bool set_ops_matches_layout(void (*set_ops)(verbs_context*, const VerbsContextOps*));

}  // namespace ib::host_abi
