// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The private functions of the libibverbs that loaded this plug-in; valid once it has registered.
#pragma once

#include "host_abi/provider/abi/verbs_abi_34.h"

namespace ib::host_abi {

const VerbsPrivate& verbs_private();

}  // namespace ib::host_abi
