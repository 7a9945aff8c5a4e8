// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What driver modules use of softibd. Everything else is hidden (-fvisibility=hidden), and a module
// must not have a copy of its own of what is compared by address.
#pragma once

#define IB_DRIVER_API __attribute__((visibility("default")))
