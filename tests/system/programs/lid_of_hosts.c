/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Loaded into dapltest over libdapl2's ucm. The program takes a host, and gives the provider its sockaddr with port 0:
 * ucm reads that as a LID and the address as a queue pair. This supplies the LID, by the variable LID_OF_HOSTS; dtest's
 * programs exchange both by a connection of their own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>

int getaddrinfo(const char* host, const char* service, const struct addrinfo* hints, struct addrinfo** found) {
  int (*next)(const char*, const char*, const struct addrinfo*, struct addrinfo**) = dlsym(RTLD_NEXT, "getaddrinfo");
  int error = next(host, service, hints, found);
  if (!error) ((struct sockaddr_in*)(void*)(*found)->ai_addr)->sin_port = htons(atoi(getenv("LID_OF_HOSTS")));
  return error;
}
