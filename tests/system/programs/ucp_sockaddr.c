/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* UCX's UCP over connections by address, as its own connection managers (rdmacm, tcp) make them. The client sends
 * tagged messages of 1 B to 4 MiB, the server checks every byte and sends the inverse, which the client checks.
 *
 *   ucp_sockaddr PORT            server; prints "listening"
 *   ucp_sockaddr PORT HOST       client; prints the lanes of its endpoint
 *
 * Both print "ok". */
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

enum { LARGEST = 4 << 20, TAG = 5 };

static ucp_worker_h worker;
static ucp_conn_request_h request;
static ucs_status_t broken = UCS_OK;

static void check(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
  exit(1);
}

static void on_request(ucp_conn_request_h wanted, void* unused) {
  (void)unused;
  request = wanted;
}

/* The peer closes its end when it has what it wants. */
static void on_error(void* unused, ucp_ep_h endpoint, ucs_status_t status) {
  (void)unused;
  (void)endpoint;
  broken = status;
}

static void finish(void* operation, const char* what) {
  if (operation == NULL) return;
  if (UCS_PTR_IS_ERR(operation)) check(UCS_PTR_STATUS(operation), what);
  while (ucp_request_check_status(operation) == UCS_INPROGRESS) {
    if (ucp_worker_progress(worker) == 0) check(broken, what);
  }
  check(ucp_request_check_status(operation), what);
  ucp_request_free(operation);
}

static unsigned char expected(size_t index, size_t size) {
  return (unsigned char)(index * 29 + (index >> 9) * 3 + size);
}

static void send_one(ucp_ep_h endpoint, unsigned char* data, size_t size, unsigned char mask) {
  ucp_request_param_t plain = {0};
  for (size_t i = 0; i < size; ++i) data[i] = expected(i, size) ^ mask;
  finish(ucp_tag_send_nbx(endpoint, data, size, TAG, &plain), "sending");
}

static void receive_one(unsigned char* data, size_t size, unsigned char mask) {
  ucp_request_param_t plain = {0};
  memset(data, 0, size);
  finish(ucp_tag_recv_nbx(worker, data, size, TAG, (ucp_tag_t)-1, &plain), "receiving");
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == (expected(i, size) ^ mask)) continue;
    fprintf(stderr, "byte %zu of %zu is %u, expected %u\n", i, size, data[i], expected(i, size) ^ mask);
    exit(1);
  }
}

static void close_endpoint(ucp_ep_h endpoint) {
  ucp_request_param_t plain = {0};
  void* closing = ucp_ep_close_nbx(endpoint, &plain);
  if (closing == NULL || UCS_PTR_IS_ERR(closing)) return;
  while (ucp_request_check_status(closing) == UCS_INPROGRESS) ucp_worker_progress(worker);
  ucp_request_free(closing);
}

static void set_up(ucp_context_h* context) {
  ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
  ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
  check(ucp_init(&params, NULL, context), "ucp_init");
  check(ucp_worker_create(*context, &single, &worker), "ucp_worker_create");
}

static struct addrinfo* resolve(const char* host, const char* port) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = host == NULL ? AI_PASSIVE : 0};
  struct addrinfo* found;
  const int error = getaddrinfo(host, port, &hints, &found);
  if (error == 0) return found;
  fprintf(stderr, "%s: %s\n", host, gai_strerror(error));
  exit(1);
}

static ucp_ep_h accept_one(ucp_listener_h* listener, const struct addrinfo* address) {
  ucp_listener_params_t params = {
      .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
      .sockaddr = {.addr = address->ai_addr, .addrlen = address->ai_addrlen},
      .conn_handler = {.cb = on_request}};
  ucp_ep_h endpoint;
  check(ucp_listener_create(worker, &params, listener), "ucp_listener_create");
  printf("listening\n");
  fflush(stdout);
  while (request == NULL) ucp_worker_progress(worker);
  ucp_ep_params_t accepted = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                              .conn_request = request,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = on_error}};
  check(ucp_ep_create(worker, &accepted, &endpoint), "ucp_ep_create of the server");
  return endpoint;
}

static ucp_ep_h connect_to(const struct addrinfo* address) {
  ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                                          UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                            .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
                            .sockaddr = {.addr = address->ai_addr, .addrlen = address->ai_addrlen},
                            .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                            .err_handler = {.cb = on_error}};
  ucp_ep_h endpoint;
  check(ucp_ep_create(worker, &params, &endpoint), "ucp_ep_create of the client");
  return endpoint;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int is_server = argc == 2;
  ucp_context_h context;
  ucp_listener_h listener = NULL;
  set_up(&context);
  struct addrinfo* address = resolve(is_server ? NULL : argv[2], argv[1]);
  ucp_ep_h endpoint = is_server ? accept_one(&listener, address) : connect_to(address);
  unsigned char* data = malloc(LARGEST);
  for (size_t size = 1; size <= LARGEST; size = size == 1 ? 2 : size * 2 - size % 2) {
    for (size_t some = size; some <= size + (size < LARGEST); ++some) {
      if (is_server) receive_one(data, some, 0);
      send_one(endpoint, data, some, is_server ? 0xff : 0);
      if (!is_server) receive_one(data, some, 0xff);
    }
  }
  if (!is_server) {
    ucp_ep_print_info(endpoint, stdout);
    close_endpoint(endpoint);
  } else {
    while (broken == UCS_OK) ucp_worker_progress(worker);
    close_endpoint(endpoint);
    ucp_listener_destroy(listener);
  }
  printf("ok\n");
  free(data);
  freeaddrinfo(address);
  ucp_worker_destroy(worker);
  ucp_cleanup(context);
  return 0;
}
