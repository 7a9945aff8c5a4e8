/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The hooks of the libibverbs provider in the preload library (libsoftib_preload.so).
 *
 * The two are separate shared objects: the preload library is in every process of a virtual host,
 * the provider only in those that use verbs. The provider finds the entry point at run time:
 *
 *   softib_preload_register_fn f =
 *       (softib_preload_register_fn)dlsym(RTLD_DEFAULT, "softib_preload_register");
 *
 * NULL: the process was started without the preload library, and libibverbs cannot have seen
 * our device either. Plain C and fixed layout, because the two may be built at different times. */
#ifndef SOFTIB_PRELOAD_HOOKS_H
#define SOFTIB_PRELOAD_HOOKS_H

#include <stddef.h>
#include <sys/types.h>

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using): this is C */
#ifdef __cplusplus
extern "C" {
#endif

#define SOFTIB_PRELOAD_READ_AGAIN (-2)

struct softib_preload_hooks {
  size_t size; /* sizeof(struct softib_preload_hooks); hooks beyond it count as absent */

  /* ibv_create_comp_channel on an open uverbs device: write() command 17 on cmd_fd. Returns the
   * descriptor the application gets (close-on-exec; libibverbs closes it with close()), or -errno.
   * Runs in the application's thread with no lock of the preload library held. */
  int (*create_comp_channel)(int cmd_fd);

  /* After each read() on a descriptor that create_comp_channel made (or on a dup of one): buf holds
   * what the real read() gave, n is the size asked for, real_result its result (errno is set if
   * that is -1). Returns what the application gets, or SOFTIB_PRELOAD_READ_AGAIN if nothing is left
   * of it; may rewrite buf, and may set errno with -1. Called for every result, also 0 and -1. */
  ssize_t (*read_comp_channel)(int fd, void* buf, size_t n, ssize_t real_result);

  /* A completion channel's descriptor (or a dup) is about to be closed, by close(), dup2(), dup3()
   * or close_range(): after the call the number may mean something else. A child made with fork()
   * calls it for its own copies; a vfork child does not, nor do exec and exit. */
  void (*closed)(int fd);

  /* madvise() of a range some of whose pages may be adopted (linux/adopt/adopt_advice.h). Returns 1
   * if the advice was carried out, with *result 0 or -errno; 0 if the kernel must do it. May be
   * called in the middle of an allocator. */
  int (*advise)(void* address, size_t length, int advice, int* result);

  /* The program has spliced memory into a pipe; called once, also for earlier splices. */
  void (*spliced)(void);

  /* [address, address + length) is about to be unmapped, mapped again, moved or to lose rights. May
   * be called in the middle of an allocator; must not change errno. */
  void (*mappings_change)(void* address, size_t length);
};

/* Takes a copy. The latest call wins; NULL unregisters. Returns 0, or -EINVAL if size is too small
 * to hold create_comp_channel. Hooks may still be running in other threads when it returns. */
int softib_preload_register(const struct softib_preload_hooks* hooks);
typedef int (*softib_preload_register_fn)(const struct softib_preload_hooks* hooks);

/* A descriptor of the provider's own: until it is taken back, close(), close_range(), closefrom(),
 * dup2() and dup3() of this process leave it alone, as if the program did not have it. */
void softib_preload_protect(int fd);
void softib_preload_unprotect(int fd);
typedef void (*softib_preload_protect_fn)(int fd);

/* 1 if fd is an open uverbs device of this library, 0 otherwise (e.g. a real adapter's). */
int softib_preload_is_uverbs(int fd);
typedef int (*softib_preload_is_uverbs_fn)(int fd);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming,modernize-use-using) */
#endif
