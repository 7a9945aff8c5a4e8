// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The part of softibd that driver modules use. Everything else is hidden (-fvisibility=hidden), and
// a module must not have its own copy of an object that is compared by address.
#pragma once

#define IB_DRIVER_API __attribute__((visibility("default")))
