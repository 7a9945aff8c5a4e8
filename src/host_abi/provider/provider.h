// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The libibverbs that loaded this plug-in; valid once it has registered.
#pragma once

#include "host_abi/provider/abi/abi_check.h"

namespace ib::host_abi {

const VerbsPrivate& verbs_private();

}  // namespace ib::host_abi
