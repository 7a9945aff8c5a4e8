// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// node_names NAME IPV4: looks the name of a node up by every call that there is, and other names too.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static int wrong;
static const char* node;
static const char* address;

static void check(int good, const char* what) {
  if (good) return;
  printf("wrong: %s\n", what);
  ++wrong;
}

static int is_address(const void* bytes) {
  char text[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, bytes, text, sizeof text) && strcmp(text, address) == 0;
}

static int is_entry(const struct hostent* entry, const char* name) {
  return entry != NULL && strcmp(entry->h_name, name) == 0 && entry->h_addrtype == AF_INET && entry->h_length == 4 &&
         entry->h_addr_list[0] != NULL && is_address(entry->h_addr_list[0]) && entry->h_addr_list[1] == NULL;
}

static int info(const char* name, int family, int flags, struct addrinfo** result) {
  struct addrinfo hints = {.ai_family = family, .ai_flags = flags, .ai_socktype = SOCK_STREAM};
  return getaddrinfo(name, "7471", &hints, result);
}

static void* storm(void* mistakes) {
  for (int i = 0; i < 200; ++i) {
    struct hostent entry, *found = NULL;
    char buffer[512];
    int error = 0;
    if (gethostbyname_r(node, &entry, buffer, sizeof buffer, &found, &error) != 0 || !is_entry(found, node)) {
      __atomic_add_fetch((int*)mistakes, 1, __ATOMIC_RELAXED);
    }
  }
  return NULL;
}

static void by_getaddrinfo(void) {
  struct addrinfo* found = NULL;
  errno = 77;
  check(info(node, AF_UNSPEC, AI_CANONNAME | AI_ADDRCONFIG, &found) == 0, "getaddrinfo finds the node");
  if (found != NULL) {
    const struct sockaddr_in* in = (const struct sockaddr_in*)found->ai_addr;
    check(found->ai_family == AF_INET && is_address(&in->sin_addr), "getaddrinfo: address");
    check(ntohs(in->sin_port) == 7471, "getaddrinfo: port");
    check(found->ai_canonname != NULL && strcmp(found->ai_canonname, node) == 0, "getaddrinfo: canonical name");
    check(found->ai_next == NULL, "getaddrinfo: one answer");
    freeaddrinfo(found);
  }
  check(info(node, AF_INET, 0, &found) == 0, "getaddrinfo AF_INET");
  freeaddrinfo(found);
  check(info(node, AF_INET6, 0, &found) != 0, "getaddrinfo AF_INET6: the node has no such address");
  check(info(node, AF_INET, AI_NUMERICHOST, &found) == EAI_NONAME, "getaddrinfo: a name is no number");
  check(info("127.0.0.1", AF_INET, 0, &found) == 0, "getaddrinfo of a number");
  freeaddrinfo(found);
  check(info("localhost", AF_INET, 0, &found) == 0, "getaddrinfo of localhost");
  freeaddrinfo(found);
  check(info(NULL, AF_INET, AI_PASSIVE, &found) == 0, "getaddrinfo of no name");
  freeaddrinfo(found);
  check(info("no-such-node.invalid", AF_INET, 0, &found) != 0, "getaddrinfo of nobody");
}

static void by_gethostbyname(void) {
  struct hostent entry, *found = NULL;
  char buffer[512];
  int error = 0;
  check(is_entry(gethostbyname(node), node), "gethostbyname");
  check(is_entry(gethostbyname2(node, AF_INET), node), "gethostbyname2");
  check(gethostbyname2(node, AF_INET6) == NULL, "gethostbyname2 AF_INET6");
  check(gethostbyname2_r(node, AF_INET, &entry, buffer, sizeof buffer, &found, &error) == 0 && is_entry(found, node),
        "gethostbyname2_r");
  check(found == NULL || (found->h_name >= buffer && found->h_name < buffer + sizeof buffer), "the caller's buffer");
  for (size_t size = 0; size < 80; ++size) {
    memset(buffer, 0x5a, sizeof buffer);
    const int status = gethostbyname_r(node, &entry, buffer, size, &found, &error);
    check(status == ERANGE ? found == NULL : status == 0 && is_entry(found, node), "a small buffer");
    check(buffer[size] == 0x5a, "nothing behind a small buffer");
  }
  check(gethostbyname("localhost") != NULL, "gethostbyname of localhost");
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  node = argv[1];
  address = argv[2];
  by_getaddrinfo();
  by_gethostbyname();
  int mistakes = 0;
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, storm, &mistakes);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  check(mistakes == 0, "four threads at once");
  printf("wrong: %d\n", wrong);
  return wrong != 0;
}
