// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loaded into osmtest of OpenSM 3.3.23: it writes the subnet prefix of the GID in its ServiceRecords in the byte order
// of the machine, and so names a port that does not exist. Here the prefix gets its bytes in order.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

enum { kHeader = 64, kAttribute = 16, kRecord = 56, kPrefix = kRecord + 8, kPrefixBytes = 8 };
static const uint8_t kServiceRecord[] = {0x00, 0x31};
static const uint8_t kWrong[kPrefixBytes] = {0, 0, 0, 0, 0, 0, 0x80, 0xfe};
static const uint8_t kRight[kPrefixBytes] = {0xfe, 0x80};

int umad_send(int port, int agent, void* umad, int length, int timeout_ms, int retries) {
  int (*send)(int, int, void*, int, int, int) =
      (int (*)(int, int, void*, int, int, int))dlsym(RTLD_NEXT, "umad_send");
  uint8_t* mad = (uint8_t*)umad + kHeader;
  if (memcmp(mad + kAttribute, kServiceRecord, sizeof kServiceRecord) == 0 &&
      memcmp(mad + kPrefix, kWrong, sizeof kWrong) == 0) {
    memcpy(mad + kPrefix, kRight, sizeof kRight);
  }
  return send(port, agent, umad, length, timeout_ms, retries);
}
