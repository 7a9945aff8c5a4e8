// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds libibverbs' private functions in the process and checks that the library really has the
// layout of verbs_abi_34.h, by letting it sort a table of marked pointers.
#pragma once

#include "host_abi/provider/abi/verbs_abi_34.h"

#include <string>

namespace ib::host_abi {

// The functions, if the loaded libibverbs is the one this plug-in was written for; else false and
// a text that says what is wrong and what would be right.
bool load_verbs_private(VerbsPrivate& out, std::string& reason);

// The behaviour check alone: does `set_ops` put each operation where we believe it does?
bool set_ops_matches_layout(void (*set_ops)(verbs_context*, const VerbsContextOps*));

}  // namespace ib::host_abi
