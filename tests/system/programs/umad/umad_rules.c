/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * The rules of /dev/infiniband/umadN and issmN, as Linux's ib_umad has them: it says what happens,
 * and umad_rules.txt has what should. Times, and the upper halves of transaction ids, are left out.
 *
 * umad_rules     on a node with one port, to itself. */
#include "umad_port.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

static struct place self, nobody;
static int is_ethernet;

static const char* outcome(long result, int error) {
  static char text[64];
  if (result < 0) return strerror(error);
  snprintf(text, sizeof text, "%ld", result);
  return text;
}
/* The result of a call, or its error. */
#define SAY(what, call)                             \
  do {                                              \
    errno = 0;                                      \
    const long result_ = (call);                    \
    printf(what ": %s\n", outcome(result_, errno)); \
  } while (0)
static void* volatile no_memory = (void*)16;

static ssize_t write_mad(int fd, const struct mad* mad, size_t size) { return write(fd, mad, size); }

/* The next MAD, read into a buffer of this size. Whatever comes before its time is told. */
static void show(const char* what, int fd, size_t size, int ms) {
  static union {
    struct mad mad;
    char room[20000];
  } got;
  memset(&got, 0, sizeof got);
  const int came = wait_for(fd, ms);
  errno = 0;
  const ssize_t n = read(fd, &got, size);
  const int error = errno;
  printf("%s: %s, read(%zu) = %s", what, came ? "came" : "nothing", size, outcome(n, error));
  if (n >= HEADER || (n < 0 && error == ENOSPC)) {
    const struct ib_user_mad_hdr* head = &got.mad.head;
    printf("; agent %u status %u length %u method %02x class %02x attribute %02x%02x status "
           "%02x%02x tid %08x qpn %u from itself %d",
           head->id, head->status, head->length, got.mad.bytes[3], got.mad.bytes[1],
           got.mad.bytes[16], got.mad.bytes[17], got.mad.bytes[4], got.mad.bytes[5],
           (unsigned)tid_of(&got.mad), ntohl(head->qpn),
           self.lid != 0 ? ntohs(head->lid) == self.lid
                         : memcmp(head->gid, self.gid, sizeof head->gid) == 0);
  }
  printf("\n");
}

static int add_agent2(int fd, unsigned qpn, unsigned mgmt_class, unsigned flags, unsigned reserved,
                      uint32_t* flags_after) {
  struct ib_user_mad_reg_req2 request = {.qpn = qpn,
                                         .mgmt_class = (uint8_t)mgmt_class,
                                         .mgmt_class_version = 2,
                                         .res = (uint16_t)reserved,
                                         .flags = flags,
                                         .rmpp_version = 1};
  const int result = ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &request);
  *flags_after = request.flags;
  return result ? -errno : (int)request.id;
}

static void registrations(int f) {
  printf("class 4 Get: %d\n", add_agent(f, 1, PERF, 1, 1 << GET, 0));
  SAY("ENABLE_PKEY after it", ioctl(f, ENABLE_PKEY));
  printf("again, same file: %d\n", add_agent(f, 1, PERF, 1, 1 << GET, 0));
  const int g = open_umad(O_NONBLOCK);
  printf("other file, version 2: %d\n", add_agent(g, 1, PERF, 2, 1 << GET, 0));
  printf("other file, Set only: %d\n", add_agent(g, 1, PERF, 1, 1 << SET, 0));
  printf("other file, Get: %d\n", add_agent(g, 1, PERF, 1, 1 << GET, 0));
  printf("other file, no methods: %d\n", add_agent(g, 1, PERF, 1, 0, 0));
  printf("queue pair 2: %d\n", add_agent(g, 2, PERF, 1, 0, 0));
  printf("queue pair 0, class 4: %d\n", add_agent(g, 0, PERF, 1, 0, 0));
  printf("queue pair 1, class 1: %d\n", add_agent(g, 1, SUBNET_LID, 1, 0, 0));
  printf("queue pair 1, class 0x81: %d\n", add_agent(g, 1, SUBNET_ROUTE, 1, 0, 0));
  printf("class 0: %d, 0x0f: %d, 0x50: %d\n", add_agent(g, 1, 0, 1, 0, 0),
         add_agent(g, 1, 0x0f, 1, 0, 0), add_agent(g, 1, 0x50, 1, 0, 0));
  printf("version 0x83: %d\n", add_agent(g, 1, VENDOR, 0x83, 0, 0));
  printf("class 0x32: %d\n", add_agent(g, 1, VENDOR_OUI, 1, 1 << GET, 0));
  printf("class 0x32 of the same company: %d\n", add_agent(f, 1, VENDOR_OUI, 1, 1 << GET, 0));
  printf("RMPP for class 4: %d\n", add_agent(g, 1, PERF, 1, 0, 1));
  printf("RMPP version 2: %d\n", add_agent(g, 1, SA, 2, 0, 2));
  uint32_t flags = 0;
  int id = add_agent2(g, 1, SA, IB_USER_MAD_USER_RMPP, 0, &flags);
  printf("REGISTER_AGENT2, own RMPP: %d\n", id);
  id = add_agent2(g, 1, SA, 2, 0, &flags);
  printf("REGISTER_AGENT2, flag 2: %d, flags %x\n", id, flags);
  printf("REGISTER_AGENT2, reserved field: %d\n", add_agent2(g, 1, SA, 0, 1, &flags));
  int more = 0, last = 0;
  while (more < 40 && (last = add_agent(f, 1, VENDOR, 1, 0, 0)) >= 0) ++more;
  printf("agents that fit: %d, then %d\n", 1 + more, last);
  for (int i = 1; i < 32; ++i) remove_agent(f, i);
  printf("unregister 77: %d, 31 again: %d\n", remove_agent(f, 77), remove_agent(f, 31));
  SAY("unknown ioctl", ioctl(f, 0x1b55));
  close(g);
  const int again = open_umad(O_NONBLOCK);
  printf("as the closed file had it: %d\n", add_agent(again, 1, PERF, 2, 1 << GET, 0));
  close(again);
}

static void bad_writes(int f, int a) {
  struct mad mad = make_mad(99, 100, 0, PERF, GET, 0x12, 5, &nobody);
  SAY("agent 99", write_mad(f, &mad, WHOLE));
  mad = make_mad(31, 100, 0, PERF, GET, 0x12, 5, &nobody);
  SAY("agent 31, which there is not", write_mad(f, &mad, WHOLE));
  SAY("only a header", write_mad(f, &mad, HEADER));
  SAY("10 bytes more", write_mad(f, &mad, HEADER + 10));
  mad = make_mad(a, 0, 0, PERF, GET_TABLE, 0x12, 6, &self);
  SAY("34 bytes", write_mad(f, &mad, HEADER + 34));
  SAY("64 bytes", write_mad(f, &mad, HEADER + 64));
  char longer[WHOLE + 1] = {0};
  memcpy(longer, &mad, sizeof mad);
  SAY("257 bytes without RMPP", write(f, longer, sizeof longer));
  mad.head.grh_present = 1;
  mad.head.gid_index = 250;
  SAY("a GID that the port does not have", write_mad(f, &mad, WHOLE));
  SAY("no memory there", write(f, no_memory, WHOLE));
  SAY("no memory for an agent", ioctl(f, IB_USER_MAD_REGISTER_AGENT, no_memory));
}

static void timeouts(int f, int a) {
  struct mad mad = make_mad(a, 100, 2, PERF, GET_TABLE, 0x12, 0x1111222233334444, &nobody);
  const double begin = now();
  SAY("to nobody, 100 ms, 2 retries", write_mad(f, &mad, WHOLE));
  SAY("the same again", write_mad(f, &mad, WHOLE));
  show("timeout", f, WHOLE, 3000);
  printf("after three times 100 ms: %d\n", now() - begin >= 0.3);
  show("no other", f, WHOLE, 200);
  mad = make_mad(a, 100, 0, PERF, GET_TABLE, 0x12, 0xaaaa000000000001, &nobody);
  write_mad(f, &mad, WHOLE);
  show("timeout, small buffer", f, HEADER, 1000);
  show("timeout, buffer 319", f, 319, 1000);
  show("once", f, 384, 200);
  SAY("the id may be used again", write_mad(f, &mad, WHOLE));
  show("timeout", f, WHOLE, 1000);
}

static void exchanges(int f, int a) {
  struct mad mad = make_mad(a, 500, 0, PERF, SET, 1, 0x5555666677778877, &self);
  SAY("Set that nobody takes", write_mad(f, &mad, WHOLE));
  show("refusal", f, WHOLE, 2000);
  mad = make_mad(a, 500, 0, PERF, GET, 1, 0x5555666677778888, &self);
  SAY("Get to the own agent", write_mad(f, &mad, WHOLE));
  show("request", f, WHOLE, 2000);
  show("timeout of the request", f, WHOLE, 2000);
  const int s = open_umad(O_NONBLOCK);
  const int server = add_agent(s, 1, SA, 2, 1 << GET | 1 << GET_TABLE, 1);
  const int client = add_agent(f, 1, SA, 2, 0, 1);
  printf("agents with RMPP: %d and %d\n", server, client);
  mad = make_mad(client, 2000, 0, SA, GET_TABLE, 0x35, 0x0102030405060708, &self);
  write_mad(f, &mad, WHOLE);
  show("server, in a large buffer", s, 20000, 2000);
  mad = make_mad(client, 2000, 0, SA, GET_TABLE, 0x35, 0x0102030405060709, &self);
  write_mad(f, &mad, WHOLE);
  struct mad request;
  need(wait_for(s, 2000) && read(s, &request, sizeof request) == WHOLE, "request");
  static struct {
    struct mad first;
    unsigned char more[756 - MAD];
  } answer;
  answer.first = make_mad(server, 0, 0, SA, GET_TABLE | RESPONSE, 0x35, tid_of(&request), &self);
  answer.first.head.qpn = request.head.qpn;
  set_rmpp(answer.first.bytes);
  for (int i = SA_HEADER; i < MAD; ++i) answer.first.bytes[i] = (unsigned char)i;
  for (unsigned i = 0; i < sizeof answer.more; ++i) answer.more[i] = (unsigned char)i;
  SAY("answer of 756 bytes", write(s, &answer, HEADER + 756));
  show("client, small buffer", f, WHOLE, 2000);
  show("client, small buffer", f, WHOLE, 2000);
  show("client, large buffer", f, 2000, 2000);
  show("nothing for the server", s, WHOLE, 200);
  show("timeout of the first", f, WHOLE, 4000);
  close(s);
  remove_agent(f, client);
}

static void* read_blocking(void* fd) {
  struct mad mad;
  return (void*)read(*(int*)fd, &mad, sizeof mad);
}

static void readers(int a_file) {
  (void)a_file;
  int f = open_umad(0);
  const int a = add_agent(f, 1, VENDOR, 1, 1 << GET, 0);
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, read_blocking, &f);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  printf("a thread in read() is cancelled: %d\n", result == PTHREAD_CANCELED);
  struct mad mad = make_mad(a, 0, 0, VENDOR, GET, 1, 1, &self);
  write_mad(f, &mad, WHOLE);
  show("the MAD that came then", f, WHOLE, 2000);
  pthread_create(&thread, NULL, read_blocking, &f);
  write_mad(f, &mad, WHOLE);
  pthread_join(thread, &result);
  printf("a thread in read() gets one: %ld\n", (long)result);
  write_mad(f, &mad, WHOLE);
  need(wait_for(f, 2000), "a MAD");
  SAY("no memory to read to", read(f, no_memory, WHOLE));
  show("it is there still", f, WHOLE, 2000);

  const int events = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(events, EPOLL_CTL_ADD, f, &event);
  printf("epoll, idle: %d\n", epoll_wait(events, &event, 1, 0));
  write_mad(f, &mad, WHOLE);
  printf("epoll: %d\n", epoll_wait(events, &event, 1, 2000));
  fd_set set;
  FD_ZERO(&set);
  FD_SET(f, &set);
  printf("select: %d\n", select(f + 1, &set, NULL, NULL, NULL));
  const int copy = dup(f);
  close(f);
  f = copy;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    struct mad got;
    _exit(read(f, &got, sizeof got) == WHOLE && write_mad(f, &mad, WHOLE) == WHOLE &&
                  add_agent(f, 1, VENDOR, 1, 0, 0) == 1
              ? 0
              : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  printf("a child reads from a copy, writes and registers: %d\n", status);
  show("what the child has written", f, WHOLE, 2000);
  mad.head.id = 1;
  SAY("the child's agent writes", write_mad(f, &mad, WHOLE));
  show("that", f, WHOLE, 2000);
  close(f);
  close(events);
}

/* Without P_Keys headers have 56 bytes. */
static void short_headers(void) {
  enum { SHORT = 56 };
  const int f = open("/dev/infiniband/umad0", O_RDWR | O_NONBLOCK);
  const int a = add_agent(f, 1, VENDOR, 1, 1 << GET, 0);
  const struct mad mad = make_mad(a, 0, 0, VENDOR, GET, 1, 1, &self);
  unsigned char bytes[SHORT + MAD];
  memcpy(bytes, &mad.head, SHORT);
  memcpy(bytes + SHORT, mad.bytes, MAD);
  SAY("short header", write(f, bytes, sizeof bytes));
  memset(bytes, 0, sizeof bytes);
  need(wait_for(f, 2000), "a MAD");
  SAY("read into 311 bytes", read(f, bytes, sizeof bytes - 1));
  SAY("read into 312", read(f, bytes, sizeof bytes));
  printf("method: %x\n", bytes[SHORT + 3]);
  close(f);
}

/* A program's own agent of the subnet administrator has what comes to its port. */
static void administrator(void) {
  if (is_ethernet) return;
  const int f = open_umad(O_NONBLOCK);
  const int a = add_agent(f, 1, SA, 2, 0, 0);
  struct mad mad = make_mad(a, 2000, 0, SA, GET, 1, 21, &self);
  write_mad(f, &mad, WHOLE);
  show("softibd's administrator", f, WHOLE, 3000);
  const int s = open_umad(O_NONBLOCK);
  const int server = add_agent(s, 1, SA, 2, 1 << GET, 0);
  mad = make_mad(a, 200, 0, SA, GET, 1, 22, &self);
  write_mad(f, &mad, WHOLE);
  show("that of a program gets it", s, WHOLE, 2000);
  show("and does not answer", f, WHOLE, 2000);
  mad = make_mad(a, 2000, 0, SA, SET, 1, 23, &self);
  write_mad(f, &mad, WHOLE);
  show("a method that it does not take", f, WHOLE, 2000);
  remove_agent(s, server);
  close(s);
  mad = make_mad(a, 2000, 0, SA, GET, 1, 24, &self);
  write_mad(f, &mad, WHOLE);
  show("softibd's again", f, WHOLE, 3000);
  close(f);
}

static int is_sm(void) {
  return (read_number("/sys/class/infiniband/softib0/ports/1/cap_mask") & 2) != 0;
}

static void issm(void) {
  printf("IsSM: %d\n", is_sm());
  const int first = open("/dev/infiniband/issm0", O_RDWR | O_NONBLOCK);
  printf("issm0: %d, IsSM: %d\n", first >= 0, is_sm());
  SAY("a second time", open("/dev/infiniband/issm0", O_RDONLY | O_NONBLOCK));
  SAY("read", read(first, &self, 4));
  SAY("write", write(first, &self, 4));
  int ends[2];
  need(pipe(ends) == 0, "pipe");
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(first);
    char byte = 0;
    if (write(ends[1], &byte, 1) != 1) _exit(1);
    const int second = open("/dev/infiniband/issm0", O_RDWR);
    if (write(ends[1], &byte, 1) != 1) _exit(1);
    for (;;) pause();
    close(second);
  }
  char byte = 0;
  need(read(ends[0], &byte, 1) == 1, "child");
  printf("a child that waits for it has it: %d\n", wait_for(ends[0], 200));
  close(first);
  printf("when it is closed: %d, IsSM: %d\n", wait_for(ends[0], 5000), is_sm());
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  const int last = open("/dev/infiniband/issm0", O_RDWR | O_NONBLOCK);
  printf("when the child was killed: %d\n", last >= 0);
  close(last);
  for (int i = 0; is_sm() && i < 500; ++i) usleep(10000);
  printf("IsSM: %d\n", is_sm());
}

/* NodeInfo of the own port, over a route without hops. */
static void subnet(void) {
  if (is_ethernet) return;
  const int f = open_umad(O_NONBLOCK);
  const struct place permissive = {.lid = 0xffff};
  const int a = add_agent(f, 0, SUBNET_ROUTE, 1, 0, 0);
  struct mad mad = make_mad(a, 2000, 0, SUBNET_ROUTE, GET, 0x11, 31, &permissive);
  memset(mad.bytes + 32, 0xff, 4);
  SAY("NodeInfo", write_mad(f, &mad, WHOLE));
  struct mad got;
  need(wait_for(f, 2000) && read(f, &got, sizeof got) == WHOLE, "NodeInfo");
  printf("method %x, agent %u, status %u, tid %08x, is a CA: %d\n", got.bytes[3], got.head.id,
         got.head.status, (unsigned)tid_of(&got), got.bytes[64 + 2] == 1);
  mad = make_mad(a, 100, 1, SUBNET_ROUTE, GET, 0x11, 32, &permissive);
  memset(mad.bytes + 32, 0xff, 4);
  mad.bytes[7] = 1;       /* one hop, ... */
  mad.bytes[128 + 1] = 9; /* ... by port 9 */
  write_mad(f, &mad, WHOLE);
  show("a route that leads nowhere", f, WHOLE, 3000);
  const int b = add_agent(f, 0, SUBNET_LID, 1, 0, 0);
  mad = make_mad(b, 2000, 0, SUBNET_ROUTE, GET, 0x11, 33, &permissive);
  memset(mad.bytes + 32, 0xff, 4);
  write_mad(f, &mad, WHOLE);
  need(wait_for(f, 2000) && read(f, &got, sizeof got) == WHOLE, "NodeInfo");
  printf("class 0x81 by an agent of class 1: method %x, agent %d\n", got.bytes[3],
         (int)got.head.id - b);
  close(f);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  self = own_place();
  is_ethernet = self.lid == 0;
  nobody = self;
  nobody.gid[15] ^= 0x55;
  if (!is_ethernet) nobody.lid = 0x4000;
  const int f = open_umad(O_NONBLOCK);
  struct pollfd one = {f, POLLIN | POLLOUT, 0};
  poll(&one, 1, 0);
  printf("idle: %x\n", (unsigned)one.revents);
  char bytes[WHOLE];
  SAY("read", read(f, bytes, WHOLE));
  SAY("read of 10 bytes", read(f, bytes, 10));
  registrations(f);
  const int a = add_agent(f, 1, PERF, 1, 0, 0);
  printf("agent for what follows: %d\n", a);
  timeouts(f, a);
  bad_writes(f, a);
  exchanges(f, a);
  const struct mad mad = make_mad(a, 300, 0, PERF, GET_TABLE, 0x12, 0x77, &nobody);
  write_mad(f, &mad, WHOLE);
  printf("unregister while one is under way: %d\n", remove_agent(f, a));
  show("of that", f, WHOLE, 600);
  struct stat facts;
  fstat(f, &facts);
  printf("a character device: %d, %u:%u\n", S_ISCHR(facts.st_mode), (unsigned)(facts.st_rdev >> 8),
         (unsigned)facts.st_rdev & 0xff);
  SAY("lseek", lseek(f, 0, SEEK_SET));
  close(f);
  readers(f);
  short_headers();
  administrator();
  issm();
  subnet();
  return 0;
}
