/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * For programs that use /dev/infiniband/umad0 and issm0 themselves, without libibumad. */
#pragma once

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef ENABLE_PKEY
#define ENABLE_PKEY IB_USER_MAD_ENABLE_PKEY
#endif

enum { HEADER = 64, MAD = 256, WHOLE = HEADER + MAD, SA_HEADER = 56, SA_DATA = MAD - SA_HEADER };
enum { GET = 1, SET = 2, GET_TABLE = 0x12, RESPONSE = 0x80 };
enum { SUBNET_LID = 1, SUBNET_ROUTE = 0x81, SA = 3, PERF = 4, VENDOR = 9, VENDOR_OUI = 0x32 };

/* Where MADs go that the port sends to itself or to another: by LID, or by GID if that is 0. */
struct place {
  unsigned lid;
  unsigned char gid[16];
};

struct mad {
  struct ib_user_mad_hdr head;
  unsigned char bytes[MAD];
};

static inline void need(int right, const char* what) {
  if (right) return;
  printf("%s: %s\n", what, strerror(errno));
  exit(2);
}

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline unsigned read_number(const char* file) {
  char text[80] = "";
  const int fd = open(file, O_RDONLY);
  need(fd >= 0 && read(fd, text, sizeof text - 1) > 0, file);
  close(fd);
  return (unsigned)strtoul(text, NULL, 0);
}

static inline struct place own_place(void) {
  struct place place = {.lid = read_number("/sys/class/infiniband/softib0/ports/1/lid")};
  char text[80] = "";
  const int fd = open("/sys/class/infiniband/softib0/ports/1/gids/0", O_RDONLY);
  need(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "gids/0");
  close(fd);
  for (int i = 0; i < 8; ++i) {
    const unsigned word = (unsigned)strtoul(text + 5 * i, NULL, 16);
    place.gid[2 * i] = (unsigned char)(word >> 8);
    place.gid[2 * i + 1] = (unsigned char)word;
  }
  return place;
}

static inline int open_umad(int flags) {
  const int fd = open("/dev/infiniband/umad0", O_RDWR | flags);
  need(fd >= 0, "umad0");
  need(ioctl(fd, ENABLE_PKEY) == 0, "ENABLE_PKEY");
  return fd;
}

/* An agent's id, or an error number as a negative one. */
static inline int add_agent(int fd, unsigned qpn, unsigned mgmt_class, unsigned version,
                            uint32_t methods, unsigned rmpp_version) {
  struct ib_user_mad_reg_req request = {.qpn = (uint8_t)qpn,
                                        .mgmt_class = (uint8_t)mgmt_class,
                                        .mgmt_class_version = (uint8_t)version,
                                        .oui = {0, 0x14, 5},
                                        .rmpp_version = (uint8_t)rmpp_version};
  memcpy(request.method_mask, &methods, sizeof methods);
  return ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &request) ? -errno : (int)request.id;
}

static inline int remove_agent(int fd, int agent) {
  uint32_t id = (uint32_t)agent;
  return ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id) ? -errno : 0;
}

static inline void set_tid(struct mad* mad, uint64_t tid) {
  const uint64_t big = htobe64(tid);
  memcpy(mad->bytes + 8, &big, sizeof big);
}
static inline uint64_t tid_of(const struct mad* mad) {
  uint64_t big = 0;
  memcpy(&big, mad->bytes + 8, sizeof big);
  return be64toh(big);
}

static inline void address(struct ib_user_mad_hdr* head, const struct place* to) {
  head->lid = htons((uint16_t)to->lid);
  head->grh_present = to->lid == 0;
  head->hop_limit = 64;
  memcpy(head->gid, to->gid, sizeof head->gid);
}

static inline struct mad make_mad(int agent, unsigned timeout_ms, unsigned retries,
                                  unsigned mgmt_class, unsigned method, unsigned attribute,
                                  uint64_t tid, const struct place* to) {
  struct mad mad = {.head = {.id = (uint32_t)agent, .timeout_ms = timeout_ms, .retries = retries}};
  const int is_subnet = mgmt_class == SUBNET_LID || mgmt_class == SUBNET_ROUTE;
  mad.head.qpn = htonl(is_subnet ? 0 : 1);
  mad.head.qkey = htonl(is_subnet ? 0 : 0x80010000);
  address(&mad.head, to);
  mad.bytes[0] = 1;
  mad.bytes[1] = (unsigned char)mgmt_class;
  mad.bytes[2] = mgmt_class == SA ? 2 : 1;
  mad.bytes[3] = (unsigned char)method;
  mad.bytes[16] = (unsigned char)(attribute >> 8);
  mad.bytes[17] = (unsigned char)attribute;
  set_tid(&mad, tid);
  return mad;
}

/* Of a message with RMPP: it is one of several packets, or goes as one. */
static inline void set_rmpp(unsigned char* mad) {
  mad[24] = 1; /* version */
  mad[25] = 1; /* DATA */
  mad[26] = 1; /* active */
}

static inline int wait_for(int fd, int ms) {
  struct pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, ms) == 1 && (one.revents & POLLIN) != 0;
}
