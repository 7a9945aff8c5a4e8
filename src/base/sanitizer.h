// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IB_ADDRESS_SANITIZER, IB_THREAD_SANITIZER: 1 if this is compiled for it, by either compiler,
// and 0 otherwise.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IB_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define IB_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define IB_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define IB_THREAD_SANITIZER 1
#endif
#ifndef IB_ADDRESS_SANITIZER
#define IB_ADDRESS_SANITIZER 0
#endif
#ifndef IB_THREAD_SANITIZER
#define IB_THREAD_SANITIZER 0
#endif
