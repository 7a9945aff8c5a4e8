// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion channels. libibverbs makes them by a write() to the uverbs file and reads events with
// read(); the preload library forwards both to this file (host_abi/preload/hooks.h). The pipe of a
// channel carries indexes of completion queues; the application wants the addresses of its ibv_cq.
#include "base/address.h"
#include "host_abi/preload/hooks.h"
#include "host_abi/provider/deferred.h"
#include "host_abi/provider/ops.h"
#include "linux/adopt/adopt_advice.h"
#include "linux/adopt/pin_sources.h"
#include "linux/process/kept_descriptor.h"

#include <dlfcn.h>
#include <sys/types.h>

#include <cstring>
#include <optional>

namespace ib::host_abi {

namespace {

constexpr std::size_t kRecord = sizeof(std::uint64_t);

int create_channel(int) {
  return guarded("ibv_create_comp_channel", -ENOMEM, [] {
    const auto fd = Runtime::instance().create_channel();
    if (!fd) return -fail("ibv_create_comp_channel", fd.error());
    return *fd;
  });
}

// Turns the records in `bytes` into addresses, in place; returns the number of bytes left, since
// records of destroyed queues are removed.
std::size_t translate(std::byte* bytes, std::size_t length) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at + kRecord <= length; at += kRecord) {
    std::uint64_t index = 0;
    std::memcpy(&index, bytes + at, kRecord);
    void* const cq = Runtime::instance().deliver_completion(index);
    if (cq == nullptr) continue;
    const auto address = address_of(cq);
    std::memcpy(bytes + kept, &address, kRecord);
    kept += kRecord;
  }
  return kept;
}

ssize_t read_channel(int, void* buffer, std::size_t size, ssize_t result) noexcept {
  if (result > 0) {
    Runtime::instance().channel_read();
    const std::size_t kept =
        translate(static_cast<std::byte*>(buffer), static_cast<std::size_t>(result));
    return kept != 0 ? static_cast<ssize_t>(kept) : ssize_t{SOFTIB_PRELOAD_READ_AGAIN};
  }
  if (result == 0 && size != 0) {  // softibd is gone: as from the kernel, if the device is
    errno = EIO;
    return -1;
  }
  return result;
}

void channel_closed(int fd) {
  const int saved = errno;
  static_cast<void>(guarded_int("close", [fd] {
    Runtime::instance().channel_closed(fd);
    return 0;
  }));
  errno = saved;
}

int advise(void* address, std::size_t length, int advice, int* result) {
  const std::optional<int> done = os::advise_adopted(address_of(address), length, advice);
  if (done) *result = *done;
  return done ? 1 : 0;
}

void mappings_change(void* address, std::size_t length) noexcept {
  user::Process* const process = Runtime::attached();
  if (process != nullptr) process->regions().mappings_change(address_of(address), length);
}

// Of the preload library; nullptr if it is not there.
template <class Function>
Function function(const char* name) {
  void* const found = ::dlsym(RTLD_DEFAULT, name);
  Function result = nullptr;
  std::memcpy(&result, &found, sizeof found);
  return result;
}

}  // namespace

void register_preload_hooks() {
  const auto preload_register = function<softib_preload_register_fn>("softib_preload_register");
  if (preload_register == nullptr) return;  // no preload library: no completion channels
  softib_preload_hooks hooks{};
  hooks.size = sizeof hooks;
  hooks.create_comp_channel = deferred<create_channel>;
  hooks.read_comp_channel = read_channel;
  hooks.closed = deferred<channel_closed>;
  hooks.advise = deferred<advise>;
  hooks.mappings_change = mappings_change;
  hooks.spliced = [] { os::note_vmsplice(); };
  static_cast<void>(preload_register(&hooks));
  os::set_descriptor_guard({function<softib_preload_protect_fn>("softib_preload_protect"),
                            function<softib_preload_protect_fn>("softib_preload_unprotect")});
}

}  // namespace ib::host_abi
