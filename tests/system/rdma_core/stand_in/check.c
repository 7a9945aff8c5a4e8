/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Loads a stand-in for libibverbs by its name, as programs do, and has it check the plug-in.
   `check idle`: only loads it, as a program that looks for devices. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** words) {
  (void)words;
  void* library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    puts(dlerror());
    return 2;
  }
  if (count > 1) return 0;
  int (*check)(void);
  *(void**)&check = dlsym(library, "stand_in_check");
  return check == NULL ? 2 : check();
}
