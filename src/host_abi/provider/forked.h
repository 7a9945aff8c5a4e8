// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting and polling in a forked child: objects that the parent made are not the child's, and
// device memory is not mapped there. In the child the operations of every inherited context are
// replaced by ones that check the owner of the object, so that the parent pays nothing.
#pragma once

#include "host_abi/provider/objects.h"

namespace ib::host_abi {

// Contexts of this process, from the moment they can be used until they are freed.
void watch_forks(Context& context);
void forget_forks(Context& context);

// EIO, with the reason in the log.
int fail_inherited(const char* verb);

}  // namespace ib::host_abi
