// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ioctl() on a uverbs descriptor. Everything gets ENOTTY, by which libibverbs learns to ask the
// provider, but for the one request that it makes of the descriptor itself: ibv_import_device()
// wants a descriptor for asynchronous events.
#include "host_abi/preload/hooks.h"
#include "host_abi/preload/real.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/eventfd.h>

#include <cstdarg>

namespace ib::host_abi::preload {
namespace {

constinit Real<int(int, unsigned long, ...)> real_ioctl{"ioctl"};

// An imported context shares its importer's device; the events stay with the context that opened
// it, so this descriptor never becomes readable.
int verbs_request(ib_uverbs_ioctl_hdr* header) {
  const bool wants_events = header != nullptr && header->object_id == UVERBS_OBJECT_ASYNC_EVENT &&
                            header->method_id == UVERBS_METHOD_ASYNC_EVENT_ALLOC;
  for (unsigned i = 0; wants_events && i < header->num_attrs; ++i) {
    if (header->attrs[i].attr_id != UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE) continue;
    const int events = ::eventfd(0, EFD_CLOEXEC);
    if (events < 0) return -1;
    header->attrs[i].data_s64 = events;
    return 0;
  }
  errno = ENOTTY;
  return -1;
}

}  // namespace

extern "C" {

int preload_ioctl(int fd, unsigned long request, ...) IB_STANDS_FOR("ioctl");
int preload_ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (request == RDMA_VERBS_IOCTL && softib_preload_is_uverbs(fd) != 0) {
    return verbs_request(static_cast<ib_uverbs_ioctl_hdr*>(argument));
  }
  return real_ioctl(fd, request, argument);
}

}  // extern "C"

}  // namespace ib::host_abi::preload
