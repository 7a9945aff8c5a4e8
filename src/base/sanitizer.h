// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IB_THREAD_SANITIZER: 1 if this is compiled for ThreadSanitizer, by either compiler.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define IB_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IB_THREAD_SANITIZER 1
#endif
#endif
#ifndef IB_THREAD_SANITIZER
#define IB_THREAD_SANITIZER 0
#endif
