/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * softibd is killed while a peer is in the middle of a work request. The owner of many queue pairs
 * gets the fatal event without waiting for the peer at each of them. Its receives, into which the
 * peer may be writing, are not flushed; polls fail.
 *
 * without_softibd SOFTIBD_PID. The peer is held up in the system call that moves the message
 * (SOFTIB_PATH=process_vm). */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "two_sides.h"

enum { PAIRS = 200, LENGTH = 1 << 20, MOST_YIELDS = 20000 };

static atomic_long yields;
static int inside[2]; /* a pipe: the peer has reached the system call */

int sched_yield(void) {
  atomic_fetch_add(&yields, 1);
  return 0;
}

/* softib's system calls come through here. */
long syscall(long number, ...) {
  long result;
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_process_vm_writev && peer_pid == 0) {
    const ssize_t written = write(inside[1], "i", 1);
    for (;;) pause();
    return written;
  }
#if defined(__x86_64__)
  register long r10 __asm__("r10") = a[3];
  register long r8 __asm__("r8") = a[4];
  register long r9 __asm__("r9") = a[5];
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a[0];
  register long x1 __asm__("x1") = a[1];
  register long x2 __asm__("x2") = a[2];
  register long x3 __asm__("x3") = a[3];
  register long x4 __asm__("x4") = a[4];
  register long x5 __asm__("x5") = a[5];
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  result = x0;
#else
#error "no system call instruction for this processor"
#endif
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}

/* Two queue pairs of this process, connected to each other, with a receive each. */
static void add_pair(struct side* s, struct ibv_mr* mr) {
  struct side other = *s;
  s->qp = other.qp = NULL;
  new_qp(s);
  new_qp(&other);
  bring_up(s, other.qp->qp_num, s->lid);
  bring_up(&other, s->qp->qp_num, s->lid);
  post_receive(s, mr->addr, 64, mr->lkey);
  post_receive(&other, mr->addr, 64, mr->lkey);
}

static void* wait_for_fatal(void* context) {
  struct ibv_async_event event;
  do {
    if (ibv_get_async_event(context, &event)) die("ibv_get_async_event");
    ibv_ack_async_event(&event);
  } while (event.event_type != IBV_EVENT_DEVICE_FATAL);
  return NULL;
}

int main(int argc, char** argv) {
  const pid_t softibd = argc > 1 ? atoi(argv[1]) : 0;
  if (softibd <= 0) die("usage: without_softibd SOFTIBD_PID");
  if (pipe(inside)) die("pipe");
  start_peer();
  struct side s = {0};
  open_side(&s);
  if (ibv_resize_cq(s.cq, 4 * PAIRS)) die("ibv_resize_cq");
  static unsigned char memory[LENGTH];
  struct ibv_mr* mr =
      ibv_reg_mr(s.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (!mr) die("ibv_reg_mr");
  connect_peer(&s);
  struct ibv_qp* const with_peer = s.qp;
  for (int i = 0; i < PAIRS; ++i) add_pair(&s, mr);
  s.qp = with_peer;

  struct order_message m = {
      .order = WRITE, .rkey = mr->rkey, .length = LENGTH, .address = (uintptr_t)memory};
  transfer_all(1, &m, sizeof m);
  char byte;
  if (read(inside[0], &byte, 1) != 1) die("the peer");
  pthread_t waiter;
  if (pthread_create(&waiter, NULL, wait_for_fatal, s.context)) die("pthread_create");
  atomic_store(&yields, 0);
  if (kill(softibd, SIGKILL)) die("softibd");
  pthread_join(waiter, NULL);
  const long waited = atomic_load(&yields);
  struct ibv_wc wc;
  int polled = 0;
  const time_t give_up = time(NULL) + SECONDS;
  while (polled == 0 && time(NULL) <= give_up) polled = ibv_poll_cq(s.cq, 1, &wc);
  printf("yields: %s (%ld), a poll: %s\n", waited <= MOST_YIELDS ? "few" : "many", waited,
         polled < 0 ? strerror(errno) : polled > 0 ? ibv_wc_status_str(wc.status) : "nothing");
  kill(peer_pid, SIGKILL);
  waitpid(peer_pid, NULL, 0);
  return 0;
}
