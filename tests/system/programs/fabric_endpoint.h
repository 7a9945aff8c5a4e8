/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * An endpoint of libfabric that is connected with one of another process, for fabric_check.c: of
 * any type, of any provider. The two processes also have a TCP connection, by which they exchange
 * addresses and keys and wait for each other; it is not of the fabric.
 *
 * A failure ends the program with a line on stderr: 2 if something is wrong, 3 if the peer is gone.
 */
#ifndef FABRIC_ENDPOINT_H
#define FABRIC_ENDPOINT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kPeerIsGone = 3, kSeconds = 100, kLastSeconds = 6, kPrefix = 64 };

struct memory {
  unsigned char* bytes;
  struct fid_mr* mr;
  void* desc;
};

struct side {
  int is_server, tcp;
  struct fi_info* info;
  struct fid_fabric* fabric;
  struct fid_domain* domain;
  struct fid_eq* eq; /* of MSG endpoints */
  struct fid_cq *sent, *received;
  struct fid_av* av; /* of the others */
  struct fid_ep* ep;
  fi_addr_t peer;
  struct memory in, out; /* what is received, and what is sent */
};

static inline void fail(const char* what, long code) {
  fprintf(stderr, "fabric_check: %s: %s\n", what, fi_strerror((int)-code));
  exit(2);
}
static inline void must(long code, const char* what) {
  if (code < 0) fail(what, code);
}
static inline void gone(const char* how) {
  fprintf(stderr, "fabric_check: the peer is gone: %s\n", how);
  exit(kPeerIsGone);
}

/* --- the TCP connection */

static inline void tell(const struct side* s, const void* bytes, size_t size) {
  if (send(s->tcp, bytes, size, MSG_NOSIGNAL) != (ssize_t)size) gone("TCP");
}
static inline void hear(const struct side* s, void* bytes, size_t size) {
  if (recv(s->tcp, bytes, size, MSG_WAITALL) != (ssize_t)size) gone("TCP");
}
static inline void meet(const struct side* s) {
  char byte = 1;
  tell(s, &byte, 1);
  hear(s, &byte, 1);
}
static inline int peer_has_ended(const struct side* s) {
  char byte = 0;
  return recv(s->tcp, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static inline void open_tcp(struct side* s, const char* port) {
  struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  const int sock = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (s->is_server) {
    setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(sock, (struct sockaddr*)&where, sizeof where) != 0 || listen(sock, 1) != 0)
      fail("TCP", -errno);
    if ((s->tcp = accept(sock, NULL, NULL)) < 0) fail("TCP", -errno);
  } else {
    s->tcp = sock;
    if (connect(sock, (struct sockaddr*)&where, sizeof where) != 0) fail("TCP", -errno);
  }
  /* Each word is awaited: none may wait for the acknowledgement of the one before. */
  if (setsockopt(s->tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) fail("TCP", -errno);
}

/* --- opening */

static inline enum fi_ep_type type_of(const char* name) {
  return strcmp(name, "msg") == 0 ? FI_EP_MSG : strcmp(name, "rdm") == 0 ? FI_EP_RDM : FI_EP_DGRAM;
}

static inline int has(const struct side* s, uint64_t capability) {
  return (s->info->caps & capability) == capability;
}

/* `address`: of the server's node. */
static inline void find(struct side* s, const char* provider, enum fi_ep_type type,
                        const char* address) {
  struct fi_info* const hints = fi_allocinfo();
  hints->ep_attr->type = type;
  hints->caps = FI_MSG | (type != FI_EP_DGRAM ? FI_RMA : 0) | (type == FI_EP_RDM ? FI_TAGGED : 0);
  hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_MSG_PREFIX | FI_RX_CQ_DATA;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->resource_mgmt = type == FI_EP_RDM ? FI_RM_ENABLED : FI_RM_UNSPEC;
  hints->fabric_attr->prov_name = strdup(provider);
  /* The others learn each other's address by TCP. */
  const char* const peer = s->is_server || type == FI_EP_MSG ? address : NULL;
  must(fi_getinfo(FI_VERSION(1, 17), peer, peer ? "7471" : NULL, s->is_server ? FI_SOURCE : 0,
                  hints, &s->info),
       "fi_getinfo");
  fi_freeinfo(hints);
}

static inline void open_queues(struct side* s) {
  struct fi_cq_attr sent = {.format = FI_CQ_FORMAT_CONTEXT, .size = 256};
  struct fi_cq_attr received = {.format = FI_CQ_FORMAT_TAGGED, .size = 256};
  if (!has(s, FI_TAGGED)) received.format = FI_CQ_FORMAT_DATA; /* the beginning of the same */
  must(fi_domain(s->fabric, s->info, &s->domain, NULL), "fi_domain");
  must(fi_cq_open(s->domain, &sent, &s->sent, NULL), "fi_cq_open");
  must(fi_cq_open(s->domain, &received, &s->received, NULL), "fi_cq_open");
  must(fi_endpoint(s->domain, s->info, &s->ep, NULL), "fi_endpoint");
  must(fi_ep_bind(s->ep, &s->sent->fid, FI_TRANSMIT), "fi_ep_bind");
  must(fi_ep_bind(s->ep, &s->received->fid, FI_RECV), "fi_ep_bind");
  if (s->info->ep_attr->type == FI_EP_MSG) {
    must(fi_ep_bind(s->ep, &s->eq->fid, 0), "fi_ep_bind");
  } else {
    struct fi_av_attr addresses = {.type = FI_AV_TABLE, .count = 4};
    must(fi_av_open(s->domain, &addresses, &s->av, NULL), "fi_av_open");
    must(fi_ep_bind(s->ep, &s->av->fid, 0), "fi_ep_bind");
  }
  must(fi_enable(s->ep), "fi_enable");
}

/* Returns the information of a request to connect. */
static inline struct fi_info* next_event(struct side* s, uint32_t wanted) {
  struct fi_eq_cm_entry entry = {0};
  uint32_t event = 0;
  const ssize_t size = fi_eq_sread(s->eq, &event, &entry, sizeof entry, kSeconds * 1000, 0);
  if (size == -FI_EAVAIL) {
    struct fi_eq_err_entry error = {0};
    must(fi_eq_readerr(s->eq, &error, 0), "fi_eq_readerr");
    fail("an event of the connection", -error.err);
  }
  must(size, "fi_eq_sread");
  if (event != wanted) fail("the next event of the connection", -FI_EOTHER);
  return entry.info;
}

static inline void open_msg(struct side* s) {
  struct fi_eq_attr events = {.wait_obj = FI_WAIT_FD};
  must(fi_eq_open(s->fabric, &events, &s->eq, NULL), "fi_eq_open");
  if (s->is_server) {
    struct fid_pep* listener = NULL;
    must(fi_passive_ep(s->fabric, s->info, &listener, NULL), "fi_passive_ep");
    must(fi_pep_bind(listener, &s->eq->fid, 0), "fi_pep_bind");
    must(fi_listen(listener), "fi_listen");
    meet(s);
    fi_freeinfo(s->info);
    s->info = next_event(s, FI_CONNREQ);
    open_queues(s);
    must(fi_accept(s->ep, NULL, 0), "fi_accept");
  } else {
    meet(s);
    open_queues(s);
    must(fi_connect(s->ep, s->info->dest_addr, NULL, 0), "fi_connect");
  }
  (void)next_event(s, FI_CONNECTED);
}

static inline void open_unconnected(struct side* s) {
  char own[256] = {0}, peer[256];
  size_t size = sizeof own;
  open_queues(s);
  must(fi_getname(&s->ep->fid, own, &size), "fi_getname");
  tell(s, own, sizeof own);
  hear(s, peer, sizeof peer);
  if (fi_av_insert(s->av, peer, 1, &s->peer, 0, NULL) != 1) fail("fi_av_insert", -FI_EADDRNOTAVAIL);
}

static inline void open_side(struct side* s, const char* provider, enum fi_ep_type type,
                             const char* address, const char* port) {
  find(s, provider, type, address);
  open_tcp(s, port);
  must(fi_fabric(s->info->fabric_attr, &s->fabric, NULL), "fi_fabric");
  if (type == FI_EP_MSG)
    open_msg(s);
  else
    open_unconnected(s);
}

static inline void close_side(struct side* s) {
  fi_close(&s->ep->fid);
  fi_close(&s->sent->fid);
  fi_close(&s->received->fid);
  if (s->av != NULL) fi_close(&s->av->fid);
  fi_close(&s->domain->fid);
  if (s->eq != NULL) fi_close(&s->eq->fid);
  fi_close(&s->fabric->fid);
  fi_freeinfo(s->info);
  close(s->tcp);
}

/* --- memory */

static inline struct memory new_memory(struct side* s, size_t size, uint64_t key) {
  struct memory out = {0};
  const uint64_t access =
      FI_SEND | FI_RECV |
      (has(s, FI_RMA) ? FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE : 0);
  if (posix_memalign((void**)&out.bytes, 4096, size) != 0) fail("memory", -FI_ENOMEM);
  must(fi_mr_reg(s->domain, out.bytes, size, access, 0, key, 0, &out.mr, NULL), "fi_mr_reg");
  out.desc = fi_mr_desc(out.mr);
  return out;
}
static inline void end_memory(struct memory* m) {
  must(fi_close(&m->mr->fid), "fi_close of memory");
  free(m->bytes);
}

/* --- completions */

/* The connection is closed, or requests of it have failed: that the peer's death does so is what is
 * asked for. */
static inline void on_error(struct side* s, struct fid_cq* cq) {
  struct fi_cq_err_entry error = {0};
  must(fi_cq_readerr(cq, &error, 0), "fi_cq_readerr");
  fprintf(stderr, "fabric_check: a request failed: %s\n", fi_strerror(error.err));
  const time_t give_up = time(NULL) + kSeconds;
  while (time(NULL) <= give_up) {
    struct pollfd tcp = {.fd = s->tcp, .events = POLLIN};
    if (poll(&tcp, 1, 1000) > 0) gone(fi_strerror(error.err));
  }
  fail("a request of a living peer", -error.err);
}

/* An RDM endpoint moves its data while its queues are read. */
static inline void progress(struct side* s) {
  if (s->info->ep_attr->type != FI_EP_RDM) return;
  if (fi_cq_read(s->sent, NULL, 0) == -FI_EAVAIL) on_error(s, s->sent);
  if (fi_cq_read(s->received, NULL, 0) == -FI_EAVAIL) on_error(s, s->received);
}

/* What takes longer than a transfer leaves the processor to others. */
static inline void nap_after(unsigned* looks) {
  if (++*looks > 20000) poll(NULL, 0, 1);
}

/* The peer's process has ended, and the endpoint has no connection that would say so. A request to
 * it may fail, get lost or be repeated by the provider for minutes (rxd), or the provider may ask
 * the caller to try again (rxm, whose new connection is refused). It may not block. */
static inline void last_words(struct side* s) {
  const time_t give_up = time(NULL) + kLastSeconds;
  unsigned looks = 0;
  ssize_t done = -FI_EAGAIN;
  for (; done == -FI_EAGAIN && time(NULL) <= give_up; progress(s)) {
    nap_after(&looks);
    done = fi_send(s->ep, s->out.bytes, 256, s->out.desc, s->peer, NULL);
    if (done < 0 && done != -FI_EAGAIN) gone(fi_strerror((int)-done));
  }
  if (done == -FI_EAGAIN) gone("no request to it is taken");
  while (time(NULL) <= give_up) {
    struct fi_cq_tagged_entry entry;
    const ssize_t count = fi_cq_read(s->sent, &entry, 1);
    if (count == 1) gone("what was sent to it is lost");
    if (count == -FI_EAVAIL) on_error(s, s->sent);
    progress(s);
    nap_after(&looks);
  }
  gone("what was sent to it is repeated");
}

/* The next completion. */
static inline struct fi_cq_tagged_entry next(struct side* s, struct fid_cq* cq) {
  struct fi_cq_tagged_entry entry = {0};
  const time_t give_up = time(NULL) + kSeconds;
  for (unsigned looks = 0;;) {
    const ssize_t count = fi_cq_read(cq, &entry, 1);
    if (count == 1) return entry;
    if (count == -FI_EAVAIL) on_error(s, cq);
    if (count != -FI_EAGAIN) must(count, "fi_cq_read");
    progress(s);
    nap_after(&looks);
    if (s->info->ep_attr->type != FI_EP_MSG && peer_has_ended(s)) last_words(s);
    if (time(NULL) > give_up) fail("no completion", -FI_ETIMEDOUT);
  }
}

/* Repeats a request until the endpoint takes it. */
#define POST(s, call)                                                   \
  do {                                                                  \
    ssize_t done_;                                                      \
    const time_t give_up_ = time(NULL) + kSeconds;                      \
    while ((done_ = (call)) == -FI_EAGAIN) {                            \
      progress(s);                                                      \
      if (time(NULL) > give_up_) fail(#call, -FI_ETIMEDOUT);            \
    }                                                                   \
    if (done_ < 0 && peer_has_ended(s)) gone(fi_strerror((int)-done_)); \
    must(done_, #call);                                                 \
  } while (0)

#endif
