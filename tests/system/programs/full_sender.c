/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * A peer sends while it has no descriptor left for this process's completion channel. The message
 * arrives, and the event comes once the peer has one again. */
#include <poll.h>

#include "two_sides.h"

enum { NONE = 3, MANY = 1024, WAIT_MS = 10000 };

static void limit_peer(uint32_t descriptors) {
  if (order_peer(NULL, LIMIT, 0, NULL, descriptors, 0, NULL).status != 0) die("the peer's limit");
}

int main(void) {
  start_peer();
  struct side s = {0};
  struct ibv_comp_channel* channel = open_side_with_channel(&s);
  static unsigned char memory[4096];
  struct ibv_mr* mr = ibv_reg_mr(s.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  if (!mr) die("ibv_reg_mr");
  connect_peer(&s);
  expect_event(&s, memory, sizeof memory, mr->lkey);
  limit_peer(NONE);
  if (order_peer(&s, SEND, 0, NULL, 64, 0, NULL).status != 0) die("SEND");
  limit_peer(MANY);
  struct pollfd event = {channel->fd, POLLIN, 0};
  if (poll(&event, 1, WAIT_MS) != 1) {
    fprintf(stderr, "the event is lost\n");
    return 1;
  }
  struct ibv_wc wc;
  if (ibv_poll_cq(s.cq, 1, &wc) != 1 || wc.status != IBV_WC_SUCCESS || wc.byte_len != 64) {
    fprintf(stderr, "no completion\n");
    return 1;
  }
  end_peer();
  printf("all right\n");
  return 0;
}
