/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
 * libfabric: data over an endpoint of any type, every byte checked, and the bytes beside it.
 *   fabric_check server PROVIDER msg|rdm|dgram ADDRESS PORT [endless]
 *   fabric_check client PROVIDER msg|rdm|dgram ADDRESS PORT [endless]
 * ADDRESS is the server's node, PORT the TCP port by which the two meet. Both print a line for each kind of transfer,
 * with the number of messages. `endless` sends messages to and fro until the peer is gone: that ends with 3. */
#include "fabric_endpoint.h"

enum { kMost = 4 << 20, kGuard = 64, kLaps = 3, kTags = 16, kEndless = 65536 };
enum { kMulti = 200, kMultiMost = 256, kMultiBuffer = 8192 };

static unsigned char expected(size_t index, size_t size, unsigned lap, int from_server) {
  return (unsigned char)(index * 31 + size * 7 + lap * 13 + (from_server ? 101 : 5) + (index >> 8));
}

static void fill(unsigned char* bytes, size_t size, unsigned lap, int from_server) {
  for (size_t i = 0; i < size; ++i) bytes[i] = expected(i, size, lap, from_server);
}

/* `size` bytes, and behind them bytes that nobody has written. */
static void check(const unsigned char* bytes, size_t size, unsigned lap, int from_server, const char* what) {
  for (size_t i = 0; i < size + kGuard; ++i) {
    const unsigned char right = i < size ? expected(i, size, lap, from_server) : 0xee;
    if (bytes[i] == right) continue;
    fprintf(stderr, "fabric_check: %s of %zu bytes, lap %u: byte %zu is %u, expected %u\n", what, size, lap, i,
            bytes[i], right);
    exit(2);
  }
}

/* 1, 2, 3, 4, 7, 8, 9 ... `most`: the powers of two and their neighbours. */
static size_t next_size(size_t size, size_t most) {
  for (size_t power = 1; power <= most; power *= 2) {
    if (size < power - 1) return power - 1;
    if (size < power) return power;
    if (size < power + 1 && power < most) return power + 1;
  }
  return most + 1;
}

/* Bytes in front of a received datagram. */
static size_t prefix_of(const struct side* s) {
  return (s->info->rx_attr->mode & FI_MSG_PREFIX) != 0 ? s->info->ep_attr->msg_prefix_size : 0;
}

static size_t largest(const struct side* s) {
  const size_t most = s->info->ep_attr->max_msg_size;
  return most < kMost ? most : kMost;
}

static struct fi_context2 contexts[kTags + 2];

static void expect_length(const struct side* s, struct fi_cq_tagged_entry entry, size_t size, const char* what) {
  if (entry.len == size + prefix_of(s) || entry.len == size) return;
  fprintf(stderr, "fabric_check: %s of %zu bytes: %zu have arrived\n", what, size, entry.len);
  exit(2);
}

/* --- messages */

static void post_receive(struct side* s, size_t size) {
  memset(s->in.bytes + prefix_of(s), 0xee, size + kGuard);
  POST(s, fi_recv(s->ep, s->in.bytes, size + prefix_of(s), s->in.desc, FI_ADDR_UNSPEC, &contexts[0]));
}
static void send_one(struct side* s, size_t size, unsigned lap) {
  fill(s->out.bytes, size, lap, s->is_server);
  POST(s, fi_send(s->ep, s->out.bytes, size, s->out.desc, s->peer, &contexts[1]));
  (void)next(s, s->sent);
}
static void receive_one(struct side* s, size_t size, unsigned lap, const char* what) {
  expect_length(s, next(s, s->received), size, what);
  check(s->in.bytes + prefix_of(s), size, lap, !s->is_server, what);
}

static void to_and_fro(struct side* s, size_t size, unsigned lap) {
  if (!s->is_server) send_one(s, size, lap);
  receive_one(s, size, lap, "a message");
  if (s->is_server) send_one(s, size, lap);
}

static void messages(struct side* s) {
  unsigned count = 0;
  for (size_t size = 1; size <= largest(s); size = next_size(size, largest(s))) {
    for (unsigned lap = 0; lap < kLaps; ++lap, ++count) {
      post_receive(s, size);
      meet(s); /* a datagram, and a message without RNR retries, needs a receive that waits for it */
      to_and_fro(s, size, lap);
    }
  }
  printf("messages: %u, to %zu bytes\n", count, largest(s));
}

/* Data without a buffer of one's own, and data for the completion. */
static void injected(struct side* s) {
  const size_t most = s->info->tx_attr->inject_size < 64 ? s->info->tx_attr->inject_size : 64;
  const uint64_t note = 0x12345678;
  const int notes = s->info->domain_attr->cq_data_size >= 4;
  unsigned count = 0;
  for (size_t size = 1; size <= most; ++size, ++count) {
    post_receive(s, size);
    meet(s);
    fill(s->out.bytes, size, 9, s->is_server);
    if (notes) POST(s, fi_injectdata(s->ep, s->out.bytes, size, note + size, s->peer));
    else POST(s, fi_inject(s->ep, s->out.bytes, size, s->peer));
    memset(s->out.bytes, 0xdd, size);
    const struct fi_cq_tagged_entry entry = next(s, s->received);
    expect_length(s, entry, size, "an injected message");
    check(s->in.bytes + prefix_of(s), size, 9, !s->is_server, "an injected message");
    if (notes && ((entry.flags & FI_REMOTE_CQ_DATA) == 0 || entry.data != note + size)) {
      fail("the data of a completion", -FI_EOTHER);
    }
  }
  printf("injected: %u%s\n", count, notes ? ", with data" : "");
}

/* --- tags: received in the opposite order of their sending */

static void tagged_size(struct side* s, size_t size) {
  const size_t step = size + kGuard;
  memset(s->in.bytes, 0xee, kTags * step);
  meet(s);
  for (unsigned tag = 0; tag < kTags; ++tag) {
    fill(s->out.bytes + tag * step, size, tag, s->is_server);
    POST(s, fi_tsend(s->ep, s->out.bytes + tag * step, size, s->out.desc, s->peer, tag, &contexts[tag]));
  }
  for (unsigned left = kTags; left-- > 0;) {
    struct fi_context2 context;
    POST(s, fi_trecv(s->ep, s->in.bytes + left * step, size, s->in.desc, s->peer, left, 0, &context));
    const struct fi_cq_tagged_entry entry = next(s, s->received);
    expect_length(s, entry, size, "a tagged message");
    if (entry.op_context != &context || entry.tag != left) fail("the tag of a message", -FI_EOTHER);
    check(s->in.bytes + left * step, size, left, !s->is_server, "a tagged message");
  }
  for (unsigned tag = 0; tag < kTags; ++tag) (void)next(s, s->sent);
}

static void tagged(struct side* s) {
  unsigned count = 0;
  for (size_t size = 1; size * kTags <= kMost; size *= 4, count += kTags) tagged_size(s, size);
  printf("tagged: %u\n", count);
}

/* --- RMA: the client writes to and reads from the server's memory */

struct place {
  uint64_t address, key;
};

static void rma_client(struct side* s, size_t size, unsigned lap) {
  struct place place;
  hear(s, &place, sizeof place);
  fill(s->out.bytes, size, lap, 0);
  POST(s, fi_write(s->ep, s->out.bytes, size, s->out.desc, s->peer, place.address, place.key, &contexts[0]));
  (void)next(s, s->sent);
  memset(s->in.bytes, 0xee, size + kGuard);
  POST(s, fi_read(s->ep, s->in.bytes, size, s->in.desc, s->peer, place.address, place.key, &contexts[0]));
  (void)next(s, s->sent);
  check(s->in.bytes, size, lap, 0, "what was written and read again");
  meet(s); /* the server has checked, and written its own bytes */
  memset(s->in.bytes, 0xee, size + kGuard);
  POST(s, fi_read(s->ep, s->in.bytes, size, s->in.desc, s->peer, place.address, place.key, &contexts[0]));
  (void)next(s, s->sent);
  check(s->in.bytes, size, lap, 1, "a read");
  meet(s);
}

/* Until the client says that it is done: an RDM endpoint serves it only while its queues are read. */
static void serve(struct side* s) {
  char byte = 1;
  while (recv(s->tcp, &byte, 1, MSG_DONTWAIT) != 1) {
    if (peer_has_ended(s)) gone("its process has ended");
    progress(s);
  }
}

static void rma_server(struct side* s, size_t size, unsigned lap) {
  const int by_address = (s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  const struct place place = {by_address ? (uintptr_t)s->in.bytes : 0, fi_mr_key(s->in.mr)};
  const char byte = 1;
  memset(s->in.bytes, 0xee, size + kGuard);
  tell(s, &place, sizeof place);
  serve(s);
  check(s->in.bytes, size, lap, 0, "a write");
  fill(s->in.bytes, size, lap, 1);
  tell(s, &byte, 1);
  serve(s);
  check(s->in.bytes, size, lap, 1, "memory that was read");
  tell(s, &byte, 1);
}

static void rma(struct side* s) {
  unsigned count = 0;
  for (size_t size = 1; size <= kMost; size = next_size(size, kMost)) {
    for (unsigned lap = 0; lap < kLaps; ++lap, count += 3) {
      if (s->is_server) rma_server(s, size, lap);
      else rma_client(s, size, lap);
    }
  }
  printf("reads and writes: %u\n", count);
}

/* --- one buffer for many messages */

static size_t multi_size(unsigned number) { return 1 + number * 37 % kMultiMost; }

static void post_multi(struct side* s, unsigned char* buffer) {
  const struct iovec where = {.iov_base = buffer, .iov_len = kMultiBuffer};
  const struct fi_msg message = {
      .msg_iov = &where, .desc = &s->in.desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &contexts[0]};
  POST(s, fi_recvmsg(s->ep, &message, FI_MULTI_RECV));
}

static void receive_many(struct side* s) {
  unsigned char* buffer = s->in.bytes;
  unsigned used = 0;
  post_multi(s, buffer);
  meet(s);
  for (unsigned number = 0; number < kMulti;) {
    const struct fi_cq_tagged_entry entry = next(s, s->received);
    if ((entry.flags & FI_RECV) != 0) {
      const unsigned char* const bytes = entry.buf;
      expect_length(s, entry, multi_size(number), "a message to a buffer of many");
      if (bytes < buffer || bytes + entry.len > buffer + kMultiBuffer) fail("the place of a message", -FI_EOTHER);
      for (size_t i = 0; i < entry.len; ++i) {
        if (bytes[i] != expected(i, entry.len, number, !s->is_server)) fail("the bytes of a message", -FI_EOTHER);
      }
      ++number;
    }
    if ((entry.flags & FI_MULTI_RECV) != 0) {
      buffer = s->in.bytes + ++used % 2 * kMultiBuffer;
      post_multi(s, buffer);
    }
  }
  if (used == 0) fail("the number of buffers used", -FI_EOTHER);
  printf("messages to buffers of many: %u, %u buffers used\n", kMulti, used);
}

static void send_many(struct side* s) {
  meet(s);
  for (unsigned number = 0; number < kMulti; ++number) send_one(s, multi_size(number), number);
}

static void multi_receive(struct side* s) {
  size_t least = kMultiMost;
  must(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least), "fi_setopt");
  if (s->is_server) {
    receive_many(s);
    send_many(s);
  } else {
    send_many(s);
    receive_many(s);
  }
}

/* --- until the peer is gone */

static void endless(struct side* s) {
  const size_t size = largest(s) < kEndless ? largest(s) : kEndless;
  post_receive(s, size);
  meet(s);
  for (unsigned lap = 0;; ++lap) {
    if (!s->is_server) send_one(s, size, lap);
    receive_one(s, size, lap, "a message");
    post_receive(s, size); /* before the peer sends again */
    if (s->is_server) send_one(s, size, lap);
  }
}

int main(int argc, char** argv) {
  struct side s = {.tcp = -1};
  if (argc < 6) return 2;
  s.is_server = strcmp(argv[1], "server") == 0;
  open_side(&s, argv[2], type_of(argv[3]), argv[4], argv[5]);
  s.in = new_memory(&s, 2 * kMost + kPrefix, 1);
  s.out = new_memory(&s, 2 * kMost + kPrefix, 2);
  if (argc > 6) endless(&s);
  messages(&s);
  injected(&s);
  if (has(&s, FI_TAGGED)) tagged(&s);
  if (has(&s, FI_RMA)) rma(&s);
  if (has(&s, FI_MULTI_RECV)) multi_receive(&s);
  meet(&s);
  end_memory(&s.in);
  end_memory(&s.out);
  close_side(&s);
  return 0;
}
