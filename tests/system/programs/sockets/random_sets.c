// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Random changes of a level-triggered epoll set with connections of this process to itself, and a
// model of it: each look at the set has to find the events of the model, with its data. As over TCP.
// random_sets ADDRESS SEED STEPS [full]
// full: writers run out of room; TCP finds some more a moment later.
#define _GNU_SOURCE
#include "own_connection.h"

#include <fcntl.h>
#include <sys/wait.h>

enum { kConnections = 5 };

struct connection {
  int near, far;
  int is_in, is_full;
  uint32_t mask;
  uint64_t data;
  size_t unread;  // at the near end
};
static struct connection all[kConnections];
static int step, may_fill;
static uint64_t state, next_data = 1;
static const char* what = "";

static void fail_at(const char* why, int i) {
  const struct connection* one = &all[i < 0 ? 0 : i];
  fprintf(stderr, "step %d, %s: %s: %s; connection %d: in %d, mask %x, full %d, unread %zu\n", step, what, why,
          strerror(errno), i, one->is_in, one->mask, one->is_full, one->unread);
  exit(1);
}

static void expect_at(int is_right, const char* why, int i) {
  if (!is_right) fail_at(why, i);
}

static unsigned below(unsigned limit) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % limit;
}

static uint32_t wanted_of(int i) {
  const struct connection* one = &all[i];
  if (!one->is_in) return 0;
  return (one->unread > 0 ? one->mask & EPOLLIN : 0) | (one->is_full ? 0 : one->mask & EPOLLOUT);
}

static int count_wanted(void) {
  int count = 0;
  for (int i = 0; i < kConnections; ++i) count += wanted_of(i) != 0;
  return count;
}

// Returns how many events the set has, which are all right.
static int look_once(int in, int room, int ms) {
  struct epoll_event events[kConnections + 1];
  const int found = epoll_wait(in, events, room, ms);
  expect_at(found >= 0, "epoll_wait", -1);
  int are_all = 1;
  for (int n = 0; n < found; ++n) {
    int i = 0;
    while (i < kConnections && (wanted_of(i) == 0 || all[i].data != events[n].data.u64)) ++i;
    expect_at(i < kConnections, "the data of an event", n);
    expect_at((events[n].events & ~wanted_of(i)) == 0, "an event", i);
    for (int other = 0; other < n; ++other) {
      expect_at(events[other].data.u64 != events[n].data.u64, "an event twice", i);
    }
    are_all &= events[n].events == wanted_of(i);
  }
  return are_all ? found : 0;
}

// By level, each event comes again and again. Some may come a moment later than the first, over TCP
// as well. Where there is little room any of them may come.
static void look_at(int in, int ms) {
  const int count = count_wanted();
  const int room = below(4) == 0 ? 1 + (int)below(kConnections) : kConnections + 1;
  const int wanted = room > kConnections || count == 0 ? count : 1;
  int found = look_once(in, room, wanted > 0 ? 1000 : ms);
  for (int i = 0; i < 1000000 && found < wanted; ++i) found = look_once(in, room, 0);
  expect_at(found >= wanted, "the number of events", found);
}

static void* look_in_thread(void* unused) {
  (void)unused;
  look_at(set, 1);
  return NULL;
}

static void control_at(int operation, int i, uint32_t mask, uint64_t data, int error) {
  errno = 0;
  const int result = control_with(operation, all[i].near, mask, data);
  expect_at(error == 0 ? result == 0 : result == -1 && errno == error, "epoll_ctl", i);
}

static uint64_t new_data(void) {
  // Sometimes that of an entry which was deleted.
  if (below(4) == 0 && next_data > 4) {
    const uint64_t old = next_data - 1 - below(4);
    int is_used = 0;
    for (int i = 0; i < kConnections; ++i) is_used |= all[i].is_in && all[i].data == old;
    if (!is_used) return old;
  }
  return next_data++;
}

static void change(int i) {
  static const uint32_t usual[] = {EPOLLIN, EPOLLOUT, EPOLLIN | EPOLLOUT}, others[] = {EPOLLIN | EPOLLRDHUP, 0};
  const uint32_t mask = below(100) == 0 ? others[below(2)] : usual[below(3)];
  const uint64_t data = all[i].is_in && below(2) == 0 ? all[i].data : new_data();
  const unsigned kind = below(8);
  if (below(100) == 0) {
    what = "an error";
    if (all[i].is_in) control_at(EPOLL_CTL_ADD, i, mask, data, EEXIST);
    if (!all[i].is_in) control_at(below(2) == 0 ? EPOLL_CTL_MOD : EPOLL_CTL_DEL, i, mask, data, ENOENT);
  } else if (!all[i].is_in) {
    what = "ADD";
    control_at(EPOLL_CTL_ADD, i, mask, data, 0);
    all[i].is_in = 1;
    all[i].mask = mask;
    all[i].data = data;
  } else if (kind < 4) {
    what = "MOD";
    control_at(EPOLL_CTL_MOD, i, mask, data, 0);
    all[i].mask = mask;
    all[i].data = data;
  } else {
    what = "DEL";
    control_at(EPOLL_CTL_DEL, i, 0, 0, 0);
    all[i].is_in = 0;
    if (kind > 5) change(i);
  }
}

static char bytes[1 << 16];

static void send_to_near(int i) {
  what = "send";
  const size_t length = below(3) == 0 ? 1 + below(20000) : 1;
  if (all[i].unread + length > 40000) return;
  expect_at(send(all[i].far, bytes, length, 0) == (ssize_t)length, "send", i);
  all[i].unread += length;
}

static void read_near(int i) {
  what = "recv";
  const size_t room = below(4) == 0 ? 1 + below(100) : sizeof bytes;
  const ssize_t got = recv(all[i].near, bytes, room, MSG_DONTWAIT);
  const size_t most = all[i].unread < room ? all[i].unread : room;
  expect_at(got > 0 ? (size_t)got <= most : got == -1 && errno == EAGAIN, "recv", i);
  if (got > 0) all[i].unread -= (size_t)got;
}

static void drain(int i) {
  while (recv(all[i].far, bytes, sizeof bytes, MSG_DONTWAIT) > 0) continue;
}

static void write_near(int i) {
  what = "send of the near end";
  if (all[i].is_full) {
    what = "room again";
    // Over TCP the writer hears of the room by a packet.
    struct pollfd entry = {all[i].near, POLLOUT, 0};
    do drain(i);
    while (poll(&entry, 1, 1) == 0);
    all[i].is_full = 0;
  } else if (may_fill && below(200) == 0) {
    what = "no room";
    while (send(all[i].near, bytes, sizeof bytes, MSG_DONTWAIT) > 0) continue;
    struct pollfd entry = {all[i].near, POLLOUT, 0};
    while (poll(&entry, 1, 5) == 1) {
      while (send(all[i].near, bytes, sizeof bytes, MSG_DONTWAIT) > 0) continue;
    }
    all[i].is_full = 1;
  } else {
    expect_at(send(all[i].near, bytes, 1, MSG_DONTWAIT) == 1, "send of the near end", i);
    drain(i);
  }
}

static void make_connection(int i) {
  all[i] = (struct connection){0};
  make_ends(&all[i].near, &all[i].far);
}

static void make_again(int i) {
  what = "another connection";
  if (below(2) == 0 && all[i].is_in) control_at(EPOLL_CTL_DEL, i, 0, 0, 0);
  close(all[i].near);
  close(all[i].far);
  make_connection(i);
}

static void make_set_again(void) {
  what = "another set";
  close(set);
  set = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < kConnections; ++i) all[i].is_in = 0;
}

static void duplicate(int i) {
  what = "a duplicate";
  if (all[i].is_in) control_at(EPOLL_CTL_DEL, i, 0, 0, 0);
  all[i].is_in = 0;
  const int copy = below(2) == 0 ? dup(all[i].near) : fcntl(all[i].near, F_DUPFD_CLOEXEC, 0);
  close(all[i].near);
  all[i].near = copy;
}

// Ways to look at the set that are not this thread's epoll_wait().
static void look_elsewhere(void) {
  const unsigned kind = below(5);
  if (kind == 0) {
    what = "another thread";
    pthread_t thread;
    pthread_create(&thread, NULL, look_in_thread, NULL);
    pthread_join(thread, NULL);
  } else if (kind == 1) {
    what = "a duplicate of the set";
    const int copy = dup(set);
    look_at(copy, 1);
    close(copy);
  } else if (kind == 2) {
    what = "poll of the set";
    expect_at(is_ready_by_poll(set) == (count_wanted() > 0), "poll", -1);
  } else if (kind == 3) {
    what = "a set in a set";
    const int outer = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    expect_at(epoll_ctl(outer, EPOLL_CTL_ADD, set, &event) == 0, "epoll_ctl", -1);
    expect_at(epoll_wait(outer, &event, 1, 1) == (count_wanted() > 0), "epoll_wait of the outer set", -1);
    close(outer);
  } else {
    what = "a child";
    const pid_t child = fork();
    if (child == 0) {
      look_at(set, 1);
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    expect_at(status == 0, "a child", -1);
  }
}

int main(int count, char** words) {
  if (count < 4) return 2;
  state = strtoull(words[2], NULL, 10);
  const int steps = atoi(words[3]);
  int remakes = -1;
  may_fill = count > 4;
  listen_at(words[1]);
  set = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < kConnections; ++i) make_connection(i);
  for (step = 0; step < steps; ++step) {
    const int i = (int)below(kConnections);
    const unsigned kind = below(100);
    if (kind < 45) {
      change(i);
    } else if (kind < 65) {
      send_to_near(i);
    } else if (kind < 85) {
      read_near(i);
    } else {
      write_near(i);
    }
    // Rarely, so that the thread is alone with its set for a long time; all is made again soon after.
    const unsigned rare = below(30000);
    if (rare == 0) make_again(i);
    if (rare == 1) make_set_again();
    if (rare == 2) duplicate(i);
    if (rare < 4) look_elsewhere();
    if (rare < 4) remakes = step + 1 + (int)below(1000);
    if (remakes == step) {
      make_set_again();
      for (int other = 0; other < kConnections; ++other) make_again(other);
    }
    if (below(3) != 0) look_at(set, below(500) == 0 ? 1 : 0);
  }
  puts("all right");
  return 0;
}
