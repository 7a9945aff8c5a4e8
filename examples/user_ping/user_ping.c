/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * Two processes ping each other over RC, and handle the events of their adapters. Plain libibverbs: nothing here
 * depends on softib.
 *
 *   user_ping [-d DEVICE] [-p TCP_PORT]                 waits for the other one, answers its pings
 *   user_ping [-d DEVICE] [-p TCP_PORT] HOST            pings it (HOST: an IPv4 address) until it is interrupted
 *
 * Addresses are exchanged over TCP, in rounds: a side whose queue pair is broken resets it and sends its address for
 * the next round; a side that gets an address of a later round does the same; when both have the same round they
 * connect.
 *
 * Exit code: 0 interrupted, 1 an error, 2 usage, 3 the device is gone, 4 the other side is gone. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, ERROR = 1, USAGE = 2, DEVICE_GONE = 3, PEER_GONE = 4 };
enum { SLOTS = 4, SLOT = 64, PORT = 1, INTERVAL_MS = 10 };
enum { SEND_ID = SLOTS };

struct address {
  uint32_t round, lid, qpn, psn;
};

struct ping {
  int tcp;
  int is_client;
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_mr* mr;
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  char memory[(SLOTS + 1) * SLOT]; /* receives, and one send */
  struct address own, peer;        /* peer.round 0: none yet */
  int port_is_up, is_broken, is_connected;
  int is_sending, is_waiting; /* the send is under way; the answer has not come */
  unsigned long answered, reconnected;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number) {
  (void)number;
  interrupted = 1;
}

static void fail(const char* what) {
  fprintf(stderr, "user_ping: %s: %s\n", what, strerror(errno));
  exit(ERROR);
}

static void say(const char* format, ...) {
  va_list words;
  va_start(words, format);
  vprintf(format, words);
  va_end(words);
  putchar('\n');
}

/* --- out of band --- */

static int listen_or_connect(const char* host, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) fail("socket");
  if (inet_pton(AF_INET, host ? host : "127.0.0.1", &address.sin_addr) != 1) {
    fprintf(stderr, "user_ping: %s is no IPv4 address\n", host);
    exit(USAGE);
  }
  if (host) {
    if (connect(fd, (struct sockaddr*)&address, sizeof address)) fail("connect");
    return fd;
  }
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, (struct sockaddr*)&address, sizeof address) || listen(fd, 1)) fail("listen");
  int accepted = accept(fd, NULL, NULL);
  if (accepted < 0) fail("accept");
  close(fd);
  return accepted;
}

static void send_address(const struct ping* p) {
  uint32_t words[4] = {htonl(p->own.round), htonl(p->own.lid), htonl(p->own.qpn), htonl(p->own.psn)};
  if (send(p->tcp, words, sizeof words, MSG_NOSIGNAL) != sizeof words) say("the address could not be sent");
}

/* Whether the other side is there. */
static int receive_address(struct ping* p) {
  uint32_t words[4];
  if (recv(p->tcp, words, sizeof words, MSG_WAITALL) != sizeof words) return 0;
  p->peer = (struct address){ntohl(words[0]), ntohl(words[1]), ntohl(words[2]), ntohl(words[3])};
  return 1;
}

/* --- the queue pair --- */

static void open_device(struct ping* p, const char* name) {
  int count = 0, i = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (!list) fail("ibv_get_device_list");
  while (i < count && name && strcmp(ibv_get_device_name(list[i]), name)) ++i;
  if (i == count) {
    fprintf(stderr, "user_ping: there is no device %s\n", name ? name : "");
    exit(ERROR);
  }
  if (!(p->context = ibv_open_device(list[i]))) fail("ibv_open_device");
  ibv_free_device_list(list);
  if (!(p->pd = ibv_alloc_pd(p->context))) fail("ibv_alloc_pd");
  if (!(p->mr = ibv_reg_mr(p->pd, p->memory, sizeof p->memory, IBV_ACCESS_LOCAL_WRITE))) fail("ibv_reg_mr");
  if (!(p->channel = ibv_create_comp_channel(p->context))) fail("ibv_create_comp_channel");
  if (!(p->cq = ibv_create_cq(p->context, 4 * SLOTS, NULL, p->channel, 0))) fail("ibv_create_cq");
  struct ibv_qp_init_attr attr = {.send_cq = p->cq, .recv_cq = p->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  attr.cap.max_send_wr = 1;
  attr.cap.max_recv_wr = SLOTS;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  if (!(p->qp = ibv_create_qp(p->pd, &attr))) fail("ibv_create_qp");
  if (ibv_req_notify_cq(p->cq, 0)) fail("ibv_req_notify_cq");
}

static struct ibv_sge piece(struct ping* p, unsigned slot) {
  return (struct ibv_sge){(uintptr_t)p->memory + slot * SLOT, SLOT, p->mr->lkey};
}

/* Completions carry the round, so that those of a round before are known. */
static uint64_t id_of(const struct ping* p, unsigned slot) { return ((uint64_t)p->own.round << 32) | slot; }

static int post_receive(struct ping* p, unsigned slot) {
  struct ibv_sge sge = piece(p, slot);
  struct ibv_recv_wr wr = {.wr_id = id_of(p, slot), .sg_list = &sge, .num_sge = 1}, *bad;
  return ibv_post_recv(p->qp, &wr, &bad);
}

static void send_message(struct ping* p, const char* text) {
  struct ibv_sge sge = piece(p, SEND_ID);
  struct ibv_send_wr wr = {.wr_id = id_of(p, SEND_ID), .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
  snprintf(p->memory + SEND_ID * SLOT, SLOT, "%s", text);
  if (ibv_post_send(p->qp, &wr, &bad)) {
    p->is_broken = 1;
    return;
  }
  p->is_sending = 1;
}

/* Resets the queue pair, and notifies the other side. An adapter that has just gone refuses: its event follows. */
static void begin_round(struct ping* p, uint32_t round) {
  struct ibv_port_attr port;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
  p->is_connected = p->is_broken = p->is_sending = p->is_waiting = 0;
  if (ibv_query_port(p->context, PORT, &port) || ibv_modify_qp(p->qp, &attr, IBV_QP_STATE)) return;
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = PORT};
  if (ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) return;
  p->own = (struct address){round, port.lid, p->qp->qp_num, (uint32_t)time(NULL) & 0xffffff};
  for (unsigned slot = 0; slot < SLOTS; ++slot) {
    if (post_receive(p, slot)) return;
  }
  send_address(p);
}

static void connect_queue_pair(struct ping* p) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .min_rnr_timer = 12};
  attr.dest_qp_num = p->peer.qpn;
  attr.rq_psn = p->peer.psn;
  attr.ah_attr.dlid = (uint16_t)p->peer.lid;
  attr.ah_attr.port_num = PORT;
  if (ibv_modify_qp(p->qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
    return;
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  attr.sq_psn = p->own.psn;
  if (ibv_modify_qp(p->qp, &attr,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC))
    return;
  p->is_connected = 1;
  p->reconnected += p->own.round > 1;
  say("connected to queue pair 0x%x at LID %u, round %u", p->peer.qpn, p->peer.lid, p->own.round);
}

/* --- what comes in --- */

static void on_completion(struct ping* p, const struct ibv_wc* wc) {
  const unsigned slot = (unsigned)wc->wr_id;
  if (wc->wr_id >> 32 != p->own.round) return;
  if (wc->status != IBV_WC_SUCCESS) {
    if (!p->is_broken) say("the connection broke: %s", ibv_wc_status_str(wc->status));
    p->is_broken = 1;
  } else if (slot == SEND_ID) {
    p->is_sending = 0;
  } else if (post_receive(p, slot) == 0) {
    if (p->is_client) {
      p->is_waiting = 0;
    } else {
      send_message(p, "pong");
    }
    ++p->answered;
  }
}

static void take_completions(struct ping* p) {
  struct ibv_cq* cq;
  void* context;
  struct ibv_wc wc[4];
  int count;
  if (ibv_get_cq_event(p->channel, &cq, &context)) return;
  ibv_ack_cq_events(cq, 1);
  if (ibv_req_notify_cq(cq, 0)) return;
  while ((count = ibv_poll_cq(cq, 4, wc)) > 0) {
    for (int i = 0; i < count; ++i) on_completion(p, &wc[i]);
  }
}

/* Whether the device is there. */
static int take_event(struct ping* p) {
  struct ibv_async_event event;
  if (ibv_get_async_event(p->context, &event)) return 1;
  const enum ibv_event_type type = event.event_type;
  ibv_ack_async_event(&event);
  say("event: %s", ibv_event_type_str(type));
  if (type == IBV_EVENT_PORT_ERR) p->port_is_up = 0;
  if (type == IBV_EVENT_PORT_ACTIVE) p->port_is_up = 1;
  return type != IBV_EVENT_DEVICE_FATAL;
}

static void go_on(struct ping* p) {
  if (!p->port_is_up) return; /* a new connection would break like the old one */
  if (p->peer.round > p->own.round) {
    begin_round(p, p->peer.round);
  } else if (p->is_broken) {
    begin_round(p, p->own.round + 1);
  }
  if (!p->is_connected && !p->is_broken && p->peer.round == p->own.round && p->own.round > 0) connect_queue_pair(p);
}

static int run(struct ping* p) {
  time_t last_said = time(NULL);
  while (!interrupted) {
    struct pollfd fds[] = {{p->context->async_fd, POLLIN, 0}, {p->channel->fd, POLLIN, 0}, {p->tcp, POLLIN, 0}};
    const int ready = poll(fds, 3, INTERVAL_MS);
    if (ready < 0 && errno != EINTR) fail("poll");
    if (ready > 0) {
      if (fds[0].revents && !take_event(p)) return DEVICE_GONE;
      if (fds[1].revents) take_completions(p);
      if (fds[2].revents && !receive_address(p)) return PEER_GONE;
    }
    go_on(p);
    if (ready == 0 && p->is_client && p->is_connected && !p->is_broken && !p->is_sending && !p->is_waiting) {
      p->is_waiting = 1;
      send_message(p, "ping");
    }
    if (time(NULL) != last_said) {
      last_said = time(NULL);
      say("%lu pings answered", p->answered);
    }
  }
  return OK;
}

static void close_device(struct ping* p) {
  if (ibv_destroy_qp(p->qp) || ibv_destroy_cq(p->cq) || ibv_destroy_comp_channel(p->channel) || ibv_dereg_mr(p->mr) ||
      ibv_dealloc_pd(p->pd) || ibv_close_device(p->context))
    fail("closing the device");
}

int main(int argc, char** argv) {
  static struct ping p = {.port_is_up = 1, .is_broken = 1};
  static const char* const words[] = {"interrupted", "", "", "the device is gone", "the other side is gone"};
  const char* device = NULL;
  int option, tcp_port = 18520;
  struct sigaction action = {.sa_handler = on_signal};
  while ((option = getopt(argc, argv, "d:p:")) != -1) {
    if (option == 'd') device = optarg;
    if (option == 'p') tcp_port = atoi(optarg);
    if (option == '?') return USAGE;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  p.is_client = optind < argc;
  p.tcp = listen_or_connect(p.is_client ? argv[optind] : NULL, tcp_port);
  open_device(&p, device); /* a side that waits for the other one does not keep a device that has gone */
  const int code = run(&p);
  close_device(&p);
  say("end: %s; %lu pings answered, connected again %lu times", words[code], p.answered, p.reconnected);
  return code;
}
