// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections of this process with itself, in a level-triggered epoll set that one thread waits in
// and changes all the time, so that the kernel may be told of the changes later
// (host_abi/streams/left_rung.h). All who look see the last change. As over TCP.
// late_control ADDRESS
#define _GNU_SOURCE
#include "own_connection.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { kConnections = 40 };
static int nears[kConnections], fars[kConnections];

// Returns the events with these data in `in`, 0 if there are none in that time. Others are errors.
static uint32_t events_in(int in, uint64_t data, int ms) {
  struct epoll_event events[8];
  const int found = epoll_wait(in, events, 8, ms);
  expect(found >= 0, "epoll_wait");
  expect(found <= 1, "more than one event");
  if (found == 1) expect(events[0].data.u64 == data, "the data of an event");
  return found == 1 ? events[0].events : 0;
}

static uint32_t events_of(int fd, int ms) { return events_in(set, data_of(fd), ms); }

static void write_byte(int fd) { expect(send(fd, "x", 1, 0) == 1, "send"); }

static void read_byte(int fd) {
  char bytes[8];
  expect(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) == 1, "recv");
}

// A client and its server in one thread: the client waits until it can write, then for its answer.
// Afterwards its end is in the set for writing, and nothing else is wanted.
static void turn(int i) {
  const int fd = nears[i];
  expect(events_of(fd, 1000) == EPOLLOUT, "writable");
  write_byte(fd);
  control(EPOLL_CTL_DEL, fd, 0);
  control(EPOLL_CTL_ADD, fd, EPOLLIN);
  read_byte(fars[i]);
  write_byte(fars[i]);
  expect(events_of(fd, 1000) == EPOLLIN, "readable");
  read_byte(fd);
  control(EPOLL_CTL_DEL, fd, 0);
  control(EPOLL_CTL_ADD, fd, EPOLLOUT);
}

static void turns(void) {
  for (int i = 0; i < 64; ++i) turn(0);
}

static void sleep_ms(int ms) {
  const struct timespec pause = {0, ms * 1000000L};
  nanosleep(&pause, NULL);
}

// As turns(), and then the end is in the set for nothing, or for `events`.
static void want(uint32_t events) {
  turns();
  control(EPOLL_CTL_DEL, nears[0], 0);
  if (events != 0) control(EPOLL_CTL_ADD, nears[0], events);
}

static void* write_later(void* unused) {
  (void)unused;
  sleep_ms(20);
  write_byte(fars[0]);
  return NULL;
}

static void wakes(void) {
  pthread_t writer;
  for (int i = 0; i < 3; ++i) {
    want(EPOLLIN);
    pthread_create(&writer, NULL, write_later, NULL);
    expect(events_of(nears[0], 10000) == EPOLLIN, "a byte for a thread that sleeps");
    pthread_join(writer, NULL);
    read_byte(nears[0]);
    control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
  }
}

static void is_quiet(void) {
  want(EPOLLIN);
  expect(events_of(nears[0], 0) == 0, "an event without a byte");
  expect(events_of(nears[0], 20) == 0, "an event without a byte, after a wait");
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
  want(0);
  write_byte(fars[0]);
  expect(events_of(nears[0], 0) == 0, "an event of what was deleted");
  expect(events_of(nears[0], 20) == 0, "an event of what was deleted, after a wait");
  control(EPOLL_CTL_ADD, nears[0], EPOLLIN | EPOLLOUT);
  expect(events_of(nears[0], 20) == (EPOLLIN | EPOLLOUT), "both");
  read_byte(nears[0]);
  expect(events_of(nears[0], 20) == EPOLLOUT, "one of both");
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
}

static void other_data(void) {
  want(0);
  expect(control_with(EPOLL_CTL_ADD, nears[0], EPOLLOUT, 77) == 0, "ADD");
  expect(events_in(set, 77, 1000) == EPOLLOUT, "other data, from memory");
  expect(events_in(set, 77, 0) == EPOLLOUT, "other data, at once");
  expect(control_with(EPOLL_CTL_MOD, nears[0], EPOLLIN, 78) == 0, "MOD");
  write_byte(fars[0]);
  expect(events_in(set, 78, 1000) == EPOLLIN, "again other data");
  read_byte(nears[0]);
  expect(events_in(set, 78, 20) == 0, "other data, without a byte");
  write_byte(fars[0]);
  expect(events_in(set, 78, 20) == EPOLLIN, "other data, from the kernel");
  read_byte(nears[0]);
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
}

// Two entries with the same data, at the end of which the program looks itself.
static void same_data(void) {
  int ends[2];
  want(EPOLLIN);
  expect(pipe(ends) == 0, "pipe");
  expect(control_with(EPOLL_CTL_ADD, ends[0], EPOLLIN, data_of(nears[0])) == 0, "ADD of a pipe");
  expect(events_of(nears[0], 0) == 0, "an event of neither");
  expect(write(ends[1], "p", 1) == 1, "write");
  expect(events_of(nears[0], 0) == EPOLLIN, "the pipe's event, at once");
  close(ends[0]);
  close(ends[1]);
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
  turns();
}

// The data of what was deleted are those of something else now.
static void data_again(void) {
  int ends[2];
  expect(pipe(ends) == 0, "pipe");
  want(0);
  expect(control_with(EPOLL_CTL_ADD, ends[0], EPOLLIN, data_of(nears[0])) == 0, "ADD of a pipe");
  expect(events_of(nears[0], 0) == 0, "an event of a pipe");
  expect(write(ends[1], "p", 1) == 1, "write");
  expect(events_of(nears[0], 20) == EPOLLIN, "the event of a pipe");
  close(ends[0]);
  close(ends[1]);
  expect(events_of(nears[0], 20) == 0, "the event of a closed pipe");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  turns();
  expect(control_with(EPOLL_CTL_MOD, nears[0], EPOLLIN, 99) == 0, "MOD");
  // The stream is in the set with its own data for the kernel, and with 99 for the program.
  expect(pipe(ends) == 0, "pipe");
  expect(control_with(EPOLL_CTL_ADD, ends[0], EPOLLIN, data_of(nears[0])) == 0, "ADD of a pipe");
  write_byte(fars[0]);
  expect(events_in(set, 99, 20) == EPOLLIN, "the stream's");
  read_byte(nears[0]);
  expect(write(ends[1], "p", 1) == 1, "write");
  expect(events_of(nears[0], 20) == EPOLLIN, "the pipe's");
  close(ends[0]);
  close(ends[1]);
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
}

static void errors(void) {
  want(0);
  expect(control_with(EPOLL_CTL_DEL, nears[0], 0, 0) == -1 && errno == ENOENT, "DEL twice");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  want(0);
  expect(control_with(EPOLL_CTL_MOD, nears[0], EPOLLIN, 0) == -1 && errno == ENOENT, "MOD after DEL");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  turns();
  expect(control_with(EPOLL_CTL_ADD, nears[0], EPOLLIN, 0) == -1 && errno == EEXIST, "ADD twice");
  expect(control_with(99, nears[0], EPOLLIN, 0) == -1 && errno == EINVAL, "no operation");
  errno = 0;
  expect(epoll_ctl(set, EPOLL_CTL_MOD, nears[0], NULL) == -1 && errno == EFAULT, "no event");
  expect(events_of(nears[0], 1000) == EPOLLOUT, "as before");
}

// The bits that memory does not tell of.
static void other_events(void) {
  turns();
  control(EPOLL_CTL_MOD, nears[0], EPOLLIN | EPOLLET);
  expect(events_of(nears[0], 20) == 0, "an edge without a byte");
  write_byte(fars[0]);
  expect(events_of(nears[0], 1000) == EPOLLIN && events_of(nears[0], 20) == 0, "one edge");
  read_byte(nears[0]);
}

static void once(void) {
  turns();
  control(EPOLL_CTL_MOD, nears[0], EPOLLIN | EPOLLONESHOT);
  write_byte(fars[0]);
  expect(events_of(nears[0], 1000) == EPOLLIN && events_of(nears[0], 20) == 0, "one shot");
  read_byte(nears[0]);
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
}

// A stream that is not writable, and is again.
static void full(void) {
  static char bytes[1 << 16];
  turns();
  size_t written = 0;
  while (1) {
    const ssize_t some = send(nears[0], bytes, sizeof bytes, MSG_DONTWAIT);
    if (some < 0) break;
    written += (size_t)some;
  }
  expect(errno == EAGAIN, "send until there is no room");
  expect(events_of(nears[0], 0) == 0 && events_of(nears[0], 20) == 0, "no room");
  control(EPOLL_CTL_MOD, nears[0], EPOLLIN);
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
  expect(events_of(nears[0], 0) == 0 && events_of(nears[0], 20) == 0, "no room, changed twice");
  while (written > 0) {
    const ssize_t some = recv(fars[0], bytes, sizeof bytes, 0);
    expect(some > 0, "recv");
    written -= (size_t)some;
  }
  expect(events_of(nears[0], 1000) == EPOLLOUT, "room again");
  turns();
}

// A set is ready itself if one of its entries is.
static void set_as_descriptor(void) {
  want(0);
  expect(!is_ready_by_poll(set), "poll of a set without entries");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  want(EPOLLIN);
  expect(!is_ready_by_select(set), "select of a set without readable entries");
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
  turns();
  expect(is_ready_by_poll(set), "poll of a set");
  turns();
  expect(is_ready_by_select(set), "select of a set");
  want(0);
  const int outer = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  expect(epoll_ctl(outer, EPOLL_CTL_ADD, set, &event) == 0, "a set in a set");
  expect(epoll_wait(outer, &event, 1, 20) == 0, "the outer set");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  expect(epoll_wait(outer, &event, 1, 20) == 1, "the outer set, ready");
  turns();
  control(EPOLL_CTL_MOD, nears[0], EPOLLIN);
  expect(epoll_wait(outer, &event, 1, 0) == 0 && epoll_wait(outer, &event, 1, 20) == 0, "the outer set, later");
  close(outer);
}

// The set is in another one before anything is in it.
static void set_in_a_set(void) {
  struct epoll_event event = {.events = EPOLLIN};
  const int outer = epoll_create1(EPOLL_CLOEXEC);
  control(EPOLL_CTL_DEL, nears[0], 0);
  close(set);
  set = epoll_create1(EPOLL_CLOEXEC);
  expect(epoll_ctl(outer, EPOLL_CTL_ADD, set, &event) == 0, "an empty set in a set");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  want(EPOLLIN);
  expect(epoll_wait(outer, &event, 1, 0) == 0 && epoll_wait(outer, &event, 1, 20) == 0, "the outer set");
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
  want(0);
  expect(epoll_wait(outer, &event, 1, 20) == 0, "the outer set, of one without entries");
  close(outer);
}

static void* poll_in_thread(void* found) {
  *(int*)found = is_ready_by_poll(set);
  return NULL;
}

static void* wait_in_thread(void* found) {
  *(int*)found = (int)events_of(nears[0], 20);
  return NULL;
}

static void polling_threads(void) {
  want(EPOLLIN);
  expect(in_thread(poll_in_thread) == 0, "poll of the set by another thread");
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
  turns();
  expect(in_thread(poll_in_thread) == 1, "poll of the set by another thread, writable");
  want(0);
  expect(in_thread(poll_in_thread) == 0, "poll of an empty set by another thread");
}

static void other_threads(void) {
  want(0);
  write_byte(fars[0]);
  expect(in_thread(wait_in_thread) == 0, "an event of what was deleted, for another thread");
  control(EPOLL_CTL_ADD, nears[0], EPOLLIN);
  read_byte(nears[0]);
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
  expect(in_thread(wait_in_thread) == EPOLLOUT, "an event for another thread");
  turns();
}

static void* delete_in_thread(void* unused) {
  (void)unused;
  want(0);
  return NULL;
}

// The thread that has changed the set is gone, and its stack is another thread's.
static void ended_threads(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, delete_in_thread, NULL);
  pthread_join(thread, NULL);
  expect(in_thread(wait_in_thread) == 0, "an event of what a thread that has ended deleted");
  expect(events_of(nears[0], 20) == 0, "the same, for the first thread");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
}

static void* add_in_thread(void* unused) {
  (void)unused;
  control(EPOLL_CTL_ADD, nears[0], EPOLLIN);
  write_byte(fars[0]);
  return NULL;
}

static void changes_by_others(void) {
  pthread_t thread;
  want(0);
  pthread_create(&thread, NULL, add_in_thread, NULL);
  expect(events_of(nears[0], 10000) == EPOLLIN, "what another thread has added");
  pthread_join(thread, NULL);
  read_byte(nears[0]);
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
}

// A child has the same set, and changes it for both.
static void children(void) {
  want(0);
  pid_t child = fork();
  if (child == 0) _exit(events_of(nears[0], 20) == 0 ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  expect(status == 0, "an event of what was deleted, for a child");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  turns();
  child = fork();
  if (child == 0) {
    control(EPOLL_CTL_DEL, nears[0], 0);
    _exit(0);
  }
  waitpid(child, &status, 0);
  expect(status == 0, "a child that deletes");
  expect(events_of(nears[0], 20) == 0, "an event of what a child has deleted");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  turns();
}

// The child has no changes of its own.
static void parents(void) {
  int ends[2];
  char byte = 0;
  expect(pipe(ends) == 0, "pipe");
  want(0);
  const pid_t child = fork();
  if (child == 0) {
    expect(read(ends[0], &byte, 1) == 1, "read");
    _exit(events_of(nears[0], 20) == EPOLLOUT ? 0 : 1);
  }
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  expect(write(ends[1], "p", 1) == 1, "write");
  int status = -1;
  waitpid(child, &status, 0);
  expect(status == 0, "a change of the parent, for a child");
  expect(events_of(nears[0], 20) == EPOLLOUT, "a change of the parent that a child has seen");
  close(ends[0]);
  close(ends[1]);
}

static void duplicates(void) {
  want(0);
  const int copy = dup(set);
  expect(events_in(copy, data_of(nears[0]), 20) == 0, "an event in a duplicate of the set");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  expect(events_in(copy, data_of(nears[0]), 20) == EPOLLOUT, "writable in a duplicate of the set");
  want(0);
  expect(events_in(copy, data_of(nears[0]), 20) == 0, "an event in a duplicate of the set, later");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  close(copy);
  const int other = dup(nears[0]);
  control(EPOLL_CTL_DEL, nears[0], 0);
  close(nears[0]);
  expect(events_of(nears[0], 20) == 0, "an event of a number that is closed");
  nears[0] = other;
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  turns();
  // Late changes, and then a duplicate.
  want(0);
  const int third = dup(nears[0]);
  write_byte(fars[0]);
  expect(events_of(nears[0], 20) == 0, "an event of what was deleted before it was duplicated");
  close(nears[0]);
  nears[0] = third;
  read_byte(nears[0]);
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
}

// A number that is closed while the stream has another one, without a word to the set.
static void moves(void) {
  want(EPOLLIN);
  const int other = dup(nears[0]);
  close(nears[0]);
  control(EPOLL_CTL_ADD, other, EPOLLIN);
  nears[0] = other;
  struct epoll_event events[8];
  expect(epoll_wait(set, events, 8, 20) == 0, "an event without a byte after a duplicate");
}

static char program_name[4096];

// Waits as the program that is executed, whose set is number `in`: prints what there is.
static void execute(int flags, int found, uint64_t data) {
  char words[4][32];
  snprintf(words[0], sizeof words[0], "%d", set);
  snprintf(words[1], sizeof words[1], "%d", found);
  snprintf(words[2], sizeof words[2], "%llu", (unsigned long long)data);
  fcntl(set, F_SETFD, flags);
  fcntl(nears[0], F_SETFD, 0);
  fcntl(fars[0], F_SETFD, 0);
  execl(program_name, program_name, "-", words[0], words[1], words[2], NULL);
  fail("exec");
}

static int after_exec(char** words) {
  struct epoll_event event = {0};
  const int found = epoll_wait(atoi(words[0]), &event, 1, 20);
  return found == atoi(words[1]) && (found == 0 || event.data.u64 == strtoull(words[2], NULL, 10)) ? 0 : 1;
}

// Each in a child of its own, which makes its set and connection itself.
static void expect_after_exec(int is_made_open, int is_deleted, const char* what) {
  const pid_t child = fork();
  if (child == 0) {
    close(set);
    set = epoll_create1(is_made_open ? 0 : EPOLL_CLOEXEC);
    make_ends(&nears[0], &fars[0]);
    control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
    turn(0);
    sleep_ms(120);
    want(is_deleted ? 0 : EPOLLIN);
    write_byte(fars[0]);
    if (!is_deleted) expect(control_with(EPOLL_CTL_MOD, nears[0], EPOLLIN, 900) == 0, "MOD");
    execute(0, !is_deleted, 900);
  }
  int status = -1;
  waitpid(child, &status, 0);
  expect(status == 0, what);
}

static void executes(void) {
  expect_after_exec(1, 1, "a deletion, after exec");
  expect_after_exec(1, 0, "a change, after exec");
  expect_after_exec(0, 1, "a deletion, after exec with a set that was to be closed");
  expect_after_exec(0, 0, "a change, after exec with a set that was to be closed");
}

static void closes(void) {
  want(0);
  close(nears[0]);
  expect(events_of(nears[0], 20) == 0, "an event of a closed stream");
}

static void closes_by_number(void) {
  int ends[2];
  want(0);
  expect(pipe(ends) == 0, "pipe");
  expect(syscall(SYS_dup3, ends[0], nears[0], 0) == nears[0], "dup3 by number");
  control(EPOLL_CTL_ADD, nears[0], EPOLLIN);
  expect(write(ends[1], "p", 1) == 1, "write");
  expect(events_of(nears[0], 1000) == EPOLLIN, "another file with the number");
  char byte = 0;
  expect(read(nears[0], &byte, 1) == 1 && byte == 'p', "the byte of another file");
  close(ends[0]);
  close(ends[1]);
}

// A set that is closed by system call, and another with its number.
static void other_set(void) {
  const int number = set;
  turns();
  control(EPOLL_CTL_MOD, nears[0], EPOLLIN);
  syscall(SYS_close, set);
  set = epoll_create1(EPOLL_CLOEXEC);
  expect(set == number, "the same number");
  write_byte(fars[0]);
  expect(events_of(nears[0], 20) == 0, "a new set");
  control(EPOLL_CTL_ADD, nears[0], EPOLLIN);
  expect(events_of(nears[0], 1000) == EPOLLIN, "added to the new set");
  read_byte(nears[0]);
  control(EPOLL_CTL_MOD, nears[0], EPOLLOUT);
  turns();
  control(EPOLL_CTL_MOD, nears[0], EPOLLIN);
  syscall(SYS_close, set);
  set = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < 64; ++i) {
    write_byte(fars[0]);
    expect(events_of(nears[0], 0) == 0, "another new set");
    read_byte(nears[0]);
  }
  expect(control_with(EPOLL_CTL_MOD, nears[0], EPOLLOUT, 0) == -1 && errno == ENOENT, "MOD in a new set");
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  turns();
}

// The peer is gone.
static void ends(void) {
  want(0);
  close(fars[0]);
  expect(events_of(nears[0], 20) == 0, "an event of what was deleted, and has ended");
  control(EPOLL_CTL_ADD, nears[0], EPOLLIN);
  expect((events_of(nears[0], 10000) & EPOLLIN) != 0, "the end");
  fars[0] = -1;
}

static void ends_while_late(void) {
  want(EPOLLIN);
  close(fars[0]);
  expect((events_of(nears[0], 10000) & EPOLLIN) != 0, "the end, for a reader");
  fars[0] = -1;
}

// Many clients by one thread, with answers in any order: none is lost, and none is twice.
static void many(void) {
  int state[kConnections] = {0}, done = 0;
  unsigned random = 1;
  for (int i = 1; i < kConnections; ++i) {
    control(EPOLL_CTL_ADD, nears[i], EPOLLOUT);
  }
  while (done < 20000) {
    struct epoll_event events[16];
    random = random * 1103515245 + 12345;
    const int room = 1 + (int)(random >> 16) % 16;
    const int found = epoll_wait(set, events, room, 10000);
    expect(found > 0, "an event of one of many");
    for (int n = 0; n < found; ++n) {
      int i = 0;
      while (i < kConnections && data_of(nears[i]) != events[n].data.u64) ++i;
      expect(i < kConnections, "the data of one of many");
      expect(events[n].events == (state[i] == 0 ? EPOLLOUT : EPOLLIN), "the event of one of many");
      if (state[i] == 0) {
        write_byte(nears[i]);
      } else {
        read_byte(nears[i]);
        ++done;
      }
      state[i] ^= 1;
      if (i % 3 == 0) {
        control(EPOLL_CTL_MOD, nears[i], state[i] == 0 ? EPOLLOUT : EPOLLIN);
      } else {
        control(EPOLL_CTL_DEL, nears[i], 0);
        control(EPOLL_CTL_ADD, nears[i], state[i] == 0 ? EPOLLOUT : EPOLLIN);
      }
    }
    for (int i = 0; i < kConnections; ++i) {
      random = random * 1103515245 + 12345;
      char bytes[8];
      if (random >> 30 != 0 && done % 100 != 0) continue;
      const ssize_t some = recv(fars[i], bytes, sizeof bytes, MSG_DONTWAIT);
      expect(some == 1 || (some == -1 && errno == EAGAIN), "recv of a server");
      if (some == 1) write_byte(fars[i]);
    }
    if (done % 997 == 0) sleep_ms(1);
    int waiting = 0;
    for (int i = 0; i < kConnections; ++i) waiting += state[i];
    if (waiting < kConnections) continue;
    for (int i = 0; i < kConnections; ++i) {
      char bytes[8];
      if (recv(fars[i], bytes, sizeof bytes, MSG_DONTWAIT) == 1) write_byte(fars[i]);
    }
  }
}

static void run(const char* what, void (*part)(void)) {
  const int count = part == many ? kConnections : 1;
  set = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < count; ++i) make_ends(&nears[i], &fars[i]);
  control(EPOLL_CTL_ADD, nears[0], EPOLLOUT);
  puts(what);
  fflush(stdout);
  // Deletions are late once a connection is some time old.
  turn(0);
  sleep_ms(120);
  part();
  for (int i = 0; i < count; ++i) {
    if (fars[i] >= 0) close(fars[i]);
    close(nears[i]);
  }
  close(set);
}

#define RUN(part) run(#part, part)

int main(int count, char** words) {
  if (count < 2) return 2;
  if (count == 5) return after_exec(words + 2);
  expect(readlink("/proc/self/exe", program_name, sizeof program_name - 1) > 0, "readlink");
  listen_at(words[1]);
  RUN(many);
  RUN(wakes);
  RUN(is_quiet);
  RUN(other_data);
  RUN(data_again);
  RUN(same_data);
  RUN(errors);
  RUN(other_events);
  RUN(once);
  RUN(full);
  RUN(set_as_descriptor);
  RUN(set_in_a_set);
  RUN(polling_threads);
  RUN(other_threads);
  RUN(ended_threads);
  RUN(changes_by_others);
  RUN(duplicates);
  RUN(moves);
  RUN(closes);
  RUN(closes_by_number);
  RUN(other_set);
  RUN(ends);
  RUN(ends_while_late);
  RUN(children);
  RUN(parents);
  RUN(executes);
  puts("all right");
  return 0;
}
