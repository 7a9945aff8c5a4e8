// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Signals, time limits and cancelled sleeps at a connection of this process with itself, as over
// TCP. signals ADDRESS
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20000 };

static int near_end = -1, far_end = -1;
static atomic_int handled, reader_tid;

static void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static void expect(int is_right, const char* what) {
  if (!is_right) fail(what);
}

static void count_signal(int signal) {
  (void)signal;
  atomic_fetch_add(&handled, 1);
}

static void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(signal, &action, NULL);
}

static int is_asleep(int tid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  const int has_text = fgets(text, sizeof text, file) != NULL;
  fclose(file);
  return has_text && strstr(text, ") S ") != NULL;
}

static void wait_for_sleep(void) {
  while (atomic_load(&reader_tid) == 0 || !is_asleep(atomic_load(&reader_tid))) sched_yield();
}

// Returns the result of recv(), or minus the error.
static void* read_byte(void* unused) {
  (void)unused;
  char byte = 0;
  atomic_store(&reader_tid, (int)syscall(SYS_gettid));
  const ssize_t got = recv(near_end, &byte, 1, 0);
  return (void*)(got < 0 ? -(long)errno : (long)got);
}

// A reader sleeps, gets the signal, and then a byte.
static long interrupted_read(int signal) {
  pthread_t reader;
  void* result = NULL;
  atomic_store(&reader_tid, 0);
  atomic_store(&handled, 0);
  pthread_create(&reader, NULL, read_byte, NULL);
  wait_for_sleep();
  pthread_kill(reader, signal);
  while (atomic_load(&handled) == 0) sched_yield();
  if (send(far_end, "x", 1, 0) != 1) fail("send");
  pthread_join(reader, &result);
  if ((long)result < 0) {  // the byte is there still
    char byte = 0;
    if (recv(near_end, &byte, 1, 0) != 1) fail("recv after EINTR");
  }
  return (long)result;
}

static void interrupts(void) {
  handle(SIGUSR1, count_signal, SA_RESTART);
  handle(SIGUSR2, count_signal, 0);
  expect(interrupted_read(SIGUSR1) == 1, "a handler with SA_RESTART");
  expect(interrupted_read(SIGUSR2) == -EINTR, "a handler without");
  const struct timeval limit = {20, 0};
  setsockopt(near_end, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  expect(interrupted_read(SIGUSR1) == -EINTR, "a handler with SA_RESTART, and a time limit");
  const struct timeval none = {0, 0};
  setsockopt(near_end, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void limits(void) {
  static char bytes[1 << 20];
  const struct timeval limit = {0, 100000};
  setsockopt(near_end, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(far_end, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  double begin = now();
  expect(recv(near_end, bytes, 1, 0) == -1 && errno == EAGAIN, "the time of a read");
  expect(now() - begin > 0.08, "a read that returns too early");
  size_t sent = 0;
  ssize_t some = 0;
  begin = now();
  while ((some = send(far_end, bytes, sizeof bytes, 0)) > 0) sent += (size_t)some;
  expect(errno == EAGAIN && now() - begin > 0.08, "the time of a write");
  while (sent > 0) {
    some = recv(near_end, bytes, sizeof bytes, 0);
    if (some <= 0) fail("recv");
    sent -= (size_t)some;
  }
  const struct timeval none = {0, 0};
  setsockopt(near_end, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
  setsockopt(far_end, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
}

static void write_in_handler(int signal) {
  (void)signal;
  const int error = errno;
  if (send(far_end, "h", 1, MSG_DONTWAIT) == 1) atomic_fetch_add(&handled, 1);
  errno = error;
}

// The handler writes to the connection that its own thread is writing to.
static void handlers(void) {
  atomic_store(&handled, 0);
  handle(SIGALRM, write_in_handler, SA_RESTART);
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  setitimer(ITIMER_REAL, &often, NULL);
  long got = 0;
  for (int i = 0; i < ROUNDS; ++i) {
    char bytes[64];
    if (send(far_end, "w", 1, 0) != 1) fail("send");
    const ssize_t some = recv(near_end, bytes, sizeof bytes, 0);
    if (some <= 0) fail("recv");
    got += some;
  }
  setitimer(ITIMER_REAL, &never, NULL);
  sigprocmask(SIG_BLOCK, &alarms, NULL);
  while (got < ROUNDS + atomic_load(&handled)) {
    char bytes[64];
    const ssize_t some = recv(near_end, bytes, sizeof bytes, 0);
    if (some <= 0) fail("the rest");
    got += some;
  }
  expect(got == ROUNDS + atomic_load(&handled), "the count of bytes");
}

enum { VALUES = 5000 };
static pthread_t main_thread;
static atomic_int values, wrong_values;
static sigjmp_buf back;

static void take_value(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  const int value = atomic_load(&values);
  if (info->si_value.sival_int != value || info->si_pid != getpid()) atomic_store(&wrong_values, 1);
  if (send(far_end, "v", 1, MSG_DONTWAIT) == 1) atomic_fetch_add(&handled, 1);
  atomic_store(&values, value + 1);
}

static void* send_values(void* unused) {
  (void)unused;
  for (int i = 0; i < VALUES; ++i) {
    const union sigval value = {.sival_int = i};
    while (pthread_sigqueue(main_thread, SIGRTMIN + 1, value) != 0) sched_yield();
  }
  return NULL;
}

// Each signal with what it came with, in order, in the middle of calls at the stream.
static void values_of_signals(void) {
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
  action.sa_sigaction = take_value;
  sigaction(SIGRTMIN + 1, &action, NULL);
  atomic_store(&handled, 0);
  main_thread = pthread_self();
  pthread_t sender;
  pthread_create(&sender, NULL, send_values, NULL);
  long got = 0, sent = 0;
  while (atomic_load(&values) < VALUES || got < sent + atomic_load(&handled)) {
    char bytes[64];
    if (atomic_load(&values) < VALUES && send(far_end, "w", 1, 0) == 1) ++sent;
    const ssize_t some = recv(near_end, bytes, sizeof bytes, 0);
    if (some <= 0) fail("recv beside signals");
    got += some;
  }
  pthread_join(sender, NULL);
  expect(atomic_load(&wrong_values) == 0, "what signals came with");
  expect(got == sent + atomic_load(&handled), "the count of bytes beside signals");
}

static void jump(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}

// A handler that leaves by a jump leaves no call at the stream half done.
static void jumps(void) {
  enum { JUMPS = 2000 };
  handle(SIGALRM, jump, 0);
  const struct itimerval soon = {{0, 0}, {0, 100}}, never = {{0, 0}, {0, 0}};
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  volatile int left = JUMPS;
  volatile long sent = 0, got = 0;
  while (left > 0) {
    if (sigsetjmp(back, 1) != 0) {
      --left;
      continue;
    }
    setitimer(ITIMER_REAL, &soon, NULL);
    // A jump may come before the count of a call is taken: the counts are too low then.
    for (;;) {
      char bytes[64];
      if (send(far_end, "j", 1, MSG_DONTWAIT) == 1) sent = sent + 1;
      const ssize_t some = recv(near_end, bytes, sizeof bytes, MSG_DONTWAIT);
      for (ssize_t i = 0; i < some; ++i) expect(bytes[i] == 'j', "a byte after a jump");
      if (some > 0) got = got + some;
    }
  }
  setitimer(ITIMER_REAL, &never, NULL);
  expect(got >= JUMPS && sent >= JUMPS, "bytes beside jumps");
  char bytes[64];
  while (recv(near_end, bytes, sizeof bytes, MSG_DONTWAIT) > 0) continue;
}

static void* sleep_for_ever(void* unused) {
  (void)unused;
  char byte = 0;
  atomic_store(&reader_tid, (int)syscall(SYS_gettid));
  recv(near_end, &byte, 1, 0);
  return NULL;
}

static void cancelled(void) {
  for (int i = 0; i < 50; ++i) {
    pthread_t reader;
    void* result = NULL;
    atomic_store(&reader_tid, 0);
    pthread_create(&reader, NULL, sleep_for_ever, NULL);
    wait_for_sleep();
    pthread_cancel(reader);
    pthread_join(reader, &result);
    expect(result == PTHREAD_CANCELED, "a thread that was cancelled");
  }
}

static void broken_pipes(void) {
  char byte = 0;
  handle(SIGPIPE, count_signal, 0);
  atomic_store(&handled, 0);
  shutdown(far_end, SHUT_WR);
  expect(recv(near_end, &byte, 1, 0) == 0, "the end of the stream");
  expect(send(far_end, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE, "MSG_NOSIGNAL");
  expect(atomic_load(&handled) == 0, "a signal with MSG_NOSIGNAL");
  expect(write(far_end, "x", 1) == -1 && errno == EPIPE, "EPIPE");
  expect(atomic_load(&handled) == 1, "SIGPIPE");
}

int main(int count, char** words) {
  if (count < 2) return 2;
  struct sockaddr_in name = {.sin_family = AF_INET};
  socklen_t length = sizeof name;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  inet_pton(AF_INET, words[1], &name.sin_addr);
  if (bind(listener, (struct sockaddr*)&name, sizeof name) != 0 || listen(listener, 8) != 0 ||
      getsockname(listener, (struct sockaddr*)&name, &length) != 0) {
    fail("listen");
  }
  far_end = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(far_end, (struct sockaddr*)&name, sizeof name) != 0) fail("connect");
  near_end = accept(listener, NULL, NULL);
  if (near_end < 0) fail("accept");
  interrupts();
  limits();
  handlers();
  jumps();
  cancelled();
  values_of_signals();
  broken_pipes();
  puts("all right");
  return 0;
}
