// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sockets whose number the program has closed without libc. They are noticed when a call comes with
// the number, when a thread goes to sleep, and four times a second.
//
// A thread of the switch ends them: the close() that notices one may be librdmacm's own, in the
// middle of a call and with its locks held.
#pragma once

#include "host_abi/sockets/table.h"

namespace ib::host_abi::sockets {

// From now on this process has sockets to look after.
void look_after_numbers();
// Gives `socket` to that thread. For any place.
void end_elsewhere(Ref socket);
// A thread is about to sleep, and has no lock: notices the next few, in turn.
void look_for_closed();
// Ends what has been given away, before the process ends.
void end_the_rest();

}  // namespace ib::host_abi::sockets
