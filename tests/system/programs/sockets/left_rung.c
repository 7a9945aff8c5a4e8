// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection of this process with itself that one thread reads, by a level-triggered epoll set or
// by calls that wait, so that its link may stay readable while there is nothing to read
// (host_abi/streams/left_rung.h). No other way to look may see that. As over TCP. left_rung ADDRESS
#define _GNU_SOURCE
#include "own_connection.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static int near_end = -1, far_end = -1;

// Returns the events of `fd` in the set, 0 if there are none in that time.
static uint32_t events_of(int fd, int ms) {
  struct epoll_event events[8];
  const int found = epoll_wait(set, events, 8, ms);
  expect(found >= 0, "epoll_wait");
  for (int i = 0; i < found; ++i) {
    if (events[i].data.u64 == data_of(fd)) return events[i].events;
  }
  return 0;
}

static void write_byte(void) { expect(send(far_end, "x", 1, 0) == 1, "send"); }

static void read_byte(void) {
  char byte[8];
  expect(recv(near_end, byte, sizeof byte, MSG_DONTWAIT) == 1, "recv");
}

// Afterwards this thread has left the link readable, if it ever does.
static void leave(void) {
  for (int i = 0; i < 64; ++i) {
    write_byte();
    expect(events_of(near_end, 1000) == EPOLLIN, "a byte");
    read_byte();
  }
}

static void* poll_in_thread(void* found) {
  *(int*)found = is_ready_by_poll(near_end);
  return NULL;
}

static void* wait_in_thread(void* found) {
  *(int*)found = (int)events_of(near_end, 20);
  return NULL;
}

static void waits(void) {
  leave();
  expect(events_of(near_end, 0) == 0, "an event without a byte");
  expect(events_of(near_end, 20) == 0, "an event without a byte, after a wait");
}

static void other_calls(void) {
  leave();
  expect(!is_ready_by_poll(near_end), "poll");
  leave();
  expect(!is_ready_by_poll(set), "poll of the set");
  leave();
  expect(!is_ready_by_select(near_end), "select");
  leave();
  expect(recv(near_end, NULL, 0, MSG_DONTWAIT) == -1 && errno == EAGAIN, "recv of nothing");
  leave();
  char byte = 0;
  expect(recv(near_end, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN, "recv");
  expect(recv(near_end, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == -1 && errno == EAGAIN, "MSG_PEEK");
  expect(!is_ready_by_poll(near_end), "poll after that");
}

static void other_threads(void) {
  leave();
  expect(in_thread(poll_in_thread) == 0, "poll by another thread");
}

static void other_waiters(void) {
  leave();
  expect(in_thread(wait_in_thread) == 0, "epoll_wait by another thread");
}

static void duplicates(void) {
  leave();
  const int copy = dup(near_end);
  expect(!is_ready_by_poll(copy), "a duplicate");
  close(copy);
}

static void child_sees_nothing(void) {
  const pid_t child = fork();
  if (child == 0) _exit(is_ready_by_poll(near_end) || events_of(near_end, 20) != 0 ? 1 : 0);
  int status = -1;
  waitpid(child, &status, 0);
  expect(status == 0, "a child");
}

static void children(void) {
  leave();
  child_sees_nothing();
}

// Other descriptors in the set, and other events of the same.
static void other_events(void) {
  int ends[2];
  expect(pipe(ends) == 0, "pipe");
  control(EPOLL_CTL_ADD, ends[0], EPOLLIN);
  leave();
  expect(write(ends[1], "p", 1) == 1, "write");
  expect(events_of(ends[0], 1000) == EPOLLIN, "a pipe");
  char byte = 0;
  expect(read(ends[0], &byte, 1) == 1, "read");
  leave();
  control(EPOLL_CTL_MOD, near_end, EPOLLIN | EPOLLOUT);
  expect(events_of(near_end, 1000) == EPOLLOUT, "writable");
  write_byte();
  expect(events_of(near_end, 1000) & EPOLLIN, "readable, and writable");
  read_byte();
  control(EPOLL_CTL_MOD, near_end, EPOLLOUT);
  write_byte();
  expect(events_of(near_end, 1000) == EPOLLOUT, "writable only");
  control(EPOLL_CTL_MOD, near_end, EPOLLIN);
  expect(events_of(near_end, 1000) == EPOLLIN, "readable again");
  read_byte();
  leave();
  control(EPOLL_CTL_DEL, near_end, 0);
  write_byte();
  expect(events_of(near_end, 20) == 0, "not in the set");
  control(EPOLL_CTL_ADD, near_end, EPOLLIN);
  expect(events_of(near_end, 1000) == EPOLLIN, "in the set again");
  read_byte();
  leave();
  control(EPOLL_CTL_MOD, near_end, EPOLLIN | EPOLLET);
  expect(events_of(near_end, 20) == 0, "an edge without a byte");
  write_byte();
  expect(events_of(near_end, 1000) == EPOLLIN && events_of(near_end, 20) == 0, "one edge");
  read_byte();
  control(EPOLL_CTL_MOD, near_end, EPOLLIN);
  leave();
  const int outer = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  expect(epoll_ctl(outer, EPOLL_CTL_ADD, set, &event) == 0, "a set in a set");
  // It may be found ready once too often, but no more than that.
  for (int i = 0; i < 8 && epoll_wait(outer, &event, 1, 0) == 1; ++i) {
    expect(events_of(near_end, 0) == 0, "an event of the inner set");
  }
  expect(epoll_wait(outer, &event, 1, 0) == 0, "the outer set");
  close(outer);
  close(ends[1]);
  close(ends[0]);
}

// A new set with the number of one that was closed has nothing in it.
static void other_set(void) {
  leave();
  const int number = set;
  close(set);
  set = epoll_create1(0);
  expect(set == number, "the same number");
  write_byte();
  expect(events_of(near_end, 20) == 0, "a new set");
  control(EPOLL_CTL_ADD, near_end, EPOLLIN);
  expect(events_of(near_end, 1000) == EPOLLIN, "added to the new set");
  read_byte();
}

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void* write_later(void* unused) {
  (void)unused;
  for (int i = 0; i < 200; ++i) {
    const struct timespec pause = {0, i % 5 * 20000};
    nanosleep(&pause, NULL);
    write_byte();
  }
  return NULL;
}

// Bytes that come before, while and after the thread goes to sleep.
static void sleeps(void) {
  pthread_t writer;
  int got = 0;
  leave();
  pthread_create(&writer, NULL, write_later, NULL);
  while (got < 200) {
    expect(events_of(near_end, 10000) == EPOLLIN, "a byte for a thread that sleeps");
    char bytes[64];
    const ssize_t some = recv(near_end, bytes, sizeof bytes, MSG_DONTWAIT);
    expect(some > 0, "recv after an event");
    got += (int)some;
  }
  pthread_join(writer, NULL);
  leave();
  const double begin = now(CLOCK_MONOTONIC), used = now(CLOCK_THREAD_CPUTIME_ID);
  expect(events_of(near_end, 200) == 0, "an event without a byte");
  expect(now(CLOCK_MONOTONIC) - begin > 0.195, "the time of a wait");
  expect(now(CLOCK_THREAD_CPUTIME_ID) - used < 0.1, "a wait that is no sleep");
}

// The number means another file by then, whose bytes nobody but the program takes.
static void closed_by_number(void) {
  int ends[2];
  char byte = 0;
  leave();
  expect(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
  expect(send(ends[1], "b", 1, 0) == 1, "send to another socket");
  expect(syscall(SYS_dup3, ends[0], near_end, 0) == near_end, "dup3 by number");
  // As long as softibd has its number of the new link, the kernel keeps the entry.
  const double limit = now(CLOCK_MONOTONIC) + 20;
  int quiet = 0;
  while (quiet < 10 && now(CLOCK_MONOTONIC) < limit) {
    quiet = events_of(near_end, 10) == 0 ? quiet + 1 : 0;
  }
  expect(quiet == 10, "events of another file");
  expect(recv(near_end, &byte, 1, MSG_DONTWAIT) == 1 && byte == 'b', "the byte of another file");
  close(ends[0]);
  close(ends[1]);
}

static atomic_int bytes_read;

static void* write_when_read(void* first) {
  for (int i = *(int*)first; i < *(int*)first + 64; ++i) {
    while (atomic_load(&bytes_read) < i) sched_yield();
    write_byte();
  }
  return NULL;
}

// As leave(), by calls that wait for their byte.
static void leave_by_waiting(int flags) {
  pthread_t writer;
  int first = atomic_load(&bytes_read);
  pthread_create(&writer, NULL, write_when_read, &first);
  for (int i = 0; i < 64; ++i) {
    char bytes[8];
    expect(recv(near_end, bytes, flags == MSG_WAITALL ? 1 : sizeof bytes, flags) == 1, "recv that waits");
    atomic_fetch_add(&bytes_read, 1);
  }
  pthread_join(writer, NULL);
}

static void waiting_reads_with(int flags) {
  leave_by_waiting(flags);
  expect(!is_ready_by_poll(near_end), "poll after reads that wait");
  leave_by_waiting(flags);
  expect(!is_ready_by_select(near_end), "select after reads that wait");
  leave_by_waiting(flags);
  char byte = 0;
  expect(recv(near_end, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN, "recv after reads that wait");
  leave_by_waiting(flags);
  control(EPOLL_CTL_ADD, near_end, EPOLLIN);
  expect(events_of(near_end, 20) == 0, "added to a set after reads that wait");
  leave();
  expect(events_of(near_end, 20) == 0, "an event without a byte, in a set after reads that wait");
  leave_by_waiting(flags);
  expect(events_of(near_end, 20) == 0, "an event without a byte, after reads that wait in a set");
  leave();
  control(EPOLL_CTL_DEL, near_end, 0);
  leave_by_waiting(flags);
  control(EPOLL_CTL_ADD, near_end, EPOLLIN | EPOLLET);
  expect(events_of(near_end, 20) == 0, "an edge after reads that wait");
  control(EPOLL_CTL_DEL, near_end, 0);
}

static void waiting_reads(void) {
  control(EPOLL_CTL_DEL, near_end, 0);
  waiting_reads_with(0);
}

static void waiting_reads_of_all(void) {
  control(EPOLL_CTL_DEL, near_end, 0);
  waiting_reads_with(MSG_WAITALL);
}

static void waiting_reads_and_others(void) {
  control(EPOLL_CTL_DEL, near_end, 0);
  leave_by_waiting(0);
  expect(in_thread(poll_in_thread) == 0, "poll by another thread after reads that wait");
}

static void waiting_reads_and_children(void) {
  control(EPOLL_CTL_DEL, near_end, 0);
  leave_by_waiting(0);
  child_sees_nothing();
}

static void waiting_duplicates(void) {
  control(EPOLL_CTL_DEL, near_end, 0);
  leave_by_waiting(0);
  const int copy = dup(near_end);
  expect(!is_ready_by_poll(copy), "a duplicate after reads that wait");
  close(copy);
}

// Bytes that come before, while and after a read goes to sleep, and then the end.
static void waiting_sleeps(void) {
  pthread_t writer;
  control(EPOLL_CTL_DEL, near_end, 0);
  leave_by_waiting(0);
  pthread_create(&writer, NULL, write_later, NULL);
  for (int got = 0; got < 200;) {
    char bytes[64];
    const ssize_t some = recv(near_end, bytes, sizeof bytes, 0);
    expect(some > 0, "recv that sleeps");
    got += (int)some;
  }
  pthread_join(writer, NULL);
  leave_by_waiting(0);
  struct timeval limit = {.tv_usec = 50000};
  setsockopt(near_end, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const double begin = now(CLOCK_MONOTONIC), used = now(CLOCK_THREAD_CPUTIME_ID);
  char byte = 0;
  expect(recv(near_end, &byte, 1, 0) == -1 && errno == EAGAIN, "SO_RCVTIMEO");
  expect(now(CLOCK_MONOTONIC) - begin > 0.045, "the time of SO_RCVTIMEO");
  expect(now(CLOCK_THREAD_CPUTIME_ID) - used < 0.03, "a read that is no sleep");
  leave_by_waiting(0);
  shutdown(far_end, SHUT_RDWR);
  expect(recv(near_end, &byte, 1, 0) == 0, "the end after reads that wait");
}

static void ending(void) {
  leave();
  shutdown(far_end, SHUT_RDWR);
  expect(events_of(near_end, 10000) & EPOLLIN, "the end of the stream");
  char byte = 0;
  expect(recv(near_end, &byte, 1, MSG_DONTWAIT) == 0, "the end");
}

// Three links are left, and there is room for one event.
static void little_room(void) {
  int nears[3], fars[3];
  for (int i = 0; i < 3; ++i) {
    if (i > 0) {
      make_ends(&near_end, &far_end);
      control(EPOLL_CTL_ADD, near_end, EPOLLIN);
    }
    nears[i] = near_end;
    fars[i] = far_end;
    leave();
  }
  for (int i = 0; i < 300; ++i) {
    const struct timespec pause = {0, 60000};
    struct epoll_event event;
    expect(send(fars[i % 3], "x", 1, 0) == 1, "send");
    if (i % 2 == 0) nanosleep(&pause, NULL);
    expect(epoll_wait(set, &event, 1, 0) == 1, "room for one event");
    expect(event.data.u64 == data_of(nears[i % 3]), "the event that there is");
    near_end = nears[i % 3];
    read_byte();
  }
  for (int i = 0; i < 2; ++i) {
    close(fars[i]);
    close(nears[i]);
  }
  near_end = nears[2];
  far_end = fars[2];
}

// Each with a connection and a set of its own: what another thread or process has seen is not left
// readable any more.
static void run(void (*part)(void)) {
  make_ends(&near_end, &far_end);
  set = epoll_create1(0);
  control(EPOLL_CTL_ADD, near_end, EPOLLIN);
  part();
  close(far_end);
  close(near_end);
  close(set);
}

int main(int count, char** words) {
  if (count < 2) return 2;
  listen_at(words[1]);
  void (*const parts[])(void) = {sleeps,          other_events,   other_set,     waits,
                                 other_calls,     other_threads,  other_waiters, duplicates,
                                 children,        closed_by_number, ending,
                                 waiting_sleeps,  waiting_reads,  waiting_reads_of_all,
                                 waiting_reads_and_others, waiting_reads_and_children,
                                 waiting_duplicates, little_room};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) run(parts[i]);
  puts("all right");
  return 0;
}
