// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/rdma.h"

#include "host_abi/sockets/common/real_calls.h"
#include "host_abi/sockets/common/stdio_streams.h"
#include "host_abi/sockets/table.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ib::host_abi::sockets {
namespace {

enum class Library : int { NotTried, Loaded, Absent };

constinit std::atomic<Library> library{Library::NotTried};
constinit pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
constinit Rdma functions{};

// A request to a service thread of librdmacm, over a socket pair.
struct ServiceRequest {
  std::uint32_t command = 0;
  std::uint32_t status = 0;
  void* rsocket = nullptr;
};
constexpr std::uint32_t kNothing = 0;
constexpr std::uint32_t kWatchConnection = 6;
constinit thread_local bool accepting = false;

constexpr int kAddressChange = 14;  // RDMA_CM_EVENT_ADDR_CHANGE

enum class Abort : std::uint8_t { None, Begins, HasPolled };
constinit thread_local Abort aborting = Abort::None;

template <class Function>
bool resolve(void* from, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(from, name));
  return function != nullptr;
}

// Addresses of the code of a library.
struct Code {
  void* function = nullptr;  // one of its functions
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;

  bool has(const void* address) const {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return value >= start && value < end;
  }
};
constinit Code librdmacm{};
constinit Code libibverbs{};

int find_part(dl_phdr_info* object, std::size_t, void* argument) {
  Code& code = *static_cast<Code*>(argument);
  const auto wanted = reinterpret_cast<std::uintptr_t>(code.function);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    const std::uintptr_t start = object->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || wanted < start || wanted >= start + part.p_memsz) continue;
    code.start = start;
    code.end = start + part.p_memsz;
    return 1;
  }
  return 0;
}

bool find(Code& code) {
  return ::dl_iterate_phdr(find_part, &code) != 0;
}

bool load() {
  restore_variables();
  void* from = ::dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);
  if (from == nullptr) return false;
  Rdma& f = functions;
  return resolve(from, "rsocket", f.socket) && resolve(from, "rbind", f.bind) &&
         resolve(from, "rlisten", f.listen) && resolve(from, "raccept", f.accept) &&
         resolve(from, "rconnect", f.connect) && resolve(from, "rshutdown", f.shutdown) &&
         resolve(from, "rclose", f.close) && resolve(from, "rrecv", f.recv) &&
         resolve(from, "rsend", f.send) && resolve(from, "rpoll", f.poll) &&
         resolve(from, "rgetpeername", f.getpeername) &&
         resolve(from, "rgetsockname", f.getsockname) &&
         resolve(from, "rsetsockopt", f.setsockopt) && resolve(from, "rgetsockopt", f.getsockopt) &&
         resolve(from, "rfcntl", f.fcntl) && resolve(from, "rdma_get_cm_event", f.get_cm_event) &&
         resolve(from, "rdma_ack_cm_event", f.ack_cm_event) &&
         resolve(from, "rpoll", librdmacm.function) && find(librdmacm) &&
         resolve(from, "ibv_get_cq_event", libibverbs.function) && find(libibverbs);
}

void before_fork() {
  ::pthread_mutex_lock(&loading);
}
void after_fork_in_parent() {
  ::pthread_mutex_unlock(&loading);
}
void after_fork_in_child() {
  loading = PTHREAD_MUTEX_INITIALIZER;
  if (library.load() == Library::Loaded) library.store(Library::Absent);
}

[[gnu::constructor]] void start() {
  ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void end_of_program() {
  if (Inside::depth == 0) flush_streams();
  shut_down_all();
}

}  // namespace

const Rdma* loaded_rdma() {
  return library.load(std::memory_order_acquire) == Library::Loaded ? &functions : nullptr;
}

const Rdma* rdma() {
  if (library.load(std::memory_order_acquire) == Library::NotTried) {
    ::pthread_mutex_lock(&loading);
    if (library.load() == Library::NotTried) {
      const bool loaded = load();
      // Peers get the end of the stream, not an error, when the program has come to its end.
      if (loaded) std::atexit(end_of_program);
      library.store(loaded ? Library::Loaded : Library::Absent, std::memory_order_release);
    }
    ::pthread_mutex_unlock(&loading);
  }
  return loaded_rdma();
}

constinit thread_local int Inside::depth = 0;

bool is_in_librdmacm(const void* address) {
  return librdmacm.has(address);
}

int accept_rsocket(const Rdma& api, int listener) {
  const WithoutSignals no_signals;
  const Inside inside;
  accepting = true;
  const int rs = api.accept(listener, nullptr, nullptr);
  accepting = false;
  return rs;
}

bool is_handover(int fd, const void* message, std::size_t length, ssize_t& result) {
  if (!accepting || length != sizeof(ServiceRequest)) return false;
  ServiceRequest request;
  std::memcpy(&request, message, sizeof request);
  if (request.command != kWatchConnection) return false;
  request.command = kNothing;  // it answers, and ends if it has nothing else to do
  result = real::write(fd, static_cast<const void*>(&request), sizeof request);
  return true;
}

bool take_event_of_end(const Rdma& api, int rs) {
  CmChannel channel{rs};
  CmEvent* event = nullptr;
  if (api.get_cm_event(&channel, &event) != 0) return errno != EAGAIN && errno != EINTR;
  const bool is_end = event->kind != kAddressChange;
  api.ack_cm_event(event);
  return is_end;
}

void abort_rsocket(const Rdma& api, int rs) {
  const WithoutSignals no_signals;
  const Inside inside;
  pollfd entry{rs, 0, 0};
  aborting = Abort::Begins;
  api.poll(&entry, 1, -1);
  aborting = Abort::None;
  api.close(rs);
}

// The first call is to find an event. A connection that is not made yet has none to read.
bool is_poll_of_abort(pollfd* entries, int& result) {
  if (aborting == Abort::None) return false;
  const bool begins = std::exchange(aborting, Abort::HasPolled) == Abort::Begins;
  entries[0].revents = begins ? POLLIN : short{0};
  result = begins ? 1 : -1;
  errno = EINTR;
  return true;
}

bool is_read_of_abort(const void* caller) {
  return aborting == Abort::HasPolled && libibverbs.has(caller);
}

void begin_as_child() {
  release_locks_of_parent();
}

}  // namespace ib::host_abi::sockets
