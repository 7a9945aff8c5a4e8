// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sockets that a forked child must not keep: as long as a child holds a copy of the control socket,
// softibd cannot detect that the parent has died.
#pragma once

namespace ib::os {

// Makes a fork() child close `descriptor` before fork() returns there. Returns false if there is no
// place for another one; the child then keeps a copy until it executes a program or exits.
bool close_in_children(int descriptor);
// To be called before `descriptor` is closed in this process.
void forget_close_in_children(int descriptor);

}  // namespace ib::os
