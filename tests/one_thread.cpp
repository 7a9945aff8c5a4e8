// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keeps the word of ib_test(... ONE_THREAD): a second thread ends the test, which ThreadSanitizer
// would not see.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t*,
                                                                     const pthread_attr_t*,
                                                                     void* (*)(void*),
                                                                     void*) noexcept {
  std::fputs(
      "a test that is registered as ONE_THREAD starts a second one: without ONE_THREAD in its "
      "CMakeLists.txt, scripts/test also runs it under ThreadSanitizer\n",
      stderr);
  std::abort();
}
