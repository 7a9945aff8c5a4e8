// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/closed_numbers.h"

#include "host_abi/sockets/epoll_sets.h"
#include "host_abi/sockets/rdma.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>

namespace ib::host_abi::sockets {
namespace {

constexpr long kRound = 250'000'000;  // ns
constexpr int kAtOnce = 64;
constexpr long kNap = 50'000;  // ns
constexpr int kMostNaps = 1'000;

constinit std::atomic<Socket*> given_away{nullptr};
constinit std::atomic<int> bell{0};
constinit std::atomic<int> ending{0};  // threads that end some of them
// The thread runs in the process of this generation. 0: in none.
constinit std::atomic<std::uint32_t> runs_in{0};

std::uint32_t this_process() {
  return generation() + 1;
}

void end_all() {
  ending.fetch_add(1);
  Socket* next = given_away.exchange(nullptr);
  while (next != nullptr) {
    Socket& socket = *next;
    next = socket.next_given_away;
    // From here on it may be given away again.
    for (std::uint32_t left = socket.given_away.exchange(0); left > 0; --left) Ref{&socket};
  }
  ending.fetch_sub(1);
}

void* look_after(void*) {
  while (true) {
    const int heard = bell.load();
    end_all();
    if (given_away.load() == nullptr) {
      const timespec time{0, kRound};
      ::syscall(SYS_futex, &bell, FUTEX_WAIT_PRIVATE, heard, &time, nullptr, 0);
    }
    for (int fd = next_in_table(0); fd >= 0; fd = next_in_table(fd + 1)) find(fd);
    forget_closed_sets();
  }
}

}  // namespace

void look_after_numbers() {
  if (runs_in.exchange(this_process()) == this_process()) return;
  const WithoutSignals no_signals;
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, look_after, nullptr) == 0) {
    ::pthread_detach(thread);
  } else {
    runs_in.store(0);
  }
}

void end_elsewhere(Ref socket) {
  const int error = errno;
  // There is nothing to end but memory: the connection is another process's.
  if (!socket->is_own()) return;
  Socket* one = socket.take();
  if (one->given_away.fetch_add(1) > 0) return;  // it waits already
  one->next_given_away = given_away.load();
  while (!given_away.compare_exchange_weak(one->next_given_away, one)) continue;
  bell.fetch_add(1);
  ::syscall(SYS_futex, &bell, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = error;
}

void look_for_closed() {
  static constinit std::atomic<int> from{0};  // relaxed: threads may look at the same numbers
  int fd = next_in_table(from.load(std::memory_order_relaxed));
  for (int i = 0; i < kAtOnce && fd >= 0; ++i) {
    find(fd);
    fd = next_in_table(fd + 1);
  }
  from.store(fd < 0 ? 0 : fd, std::memory_order_relaxed);
  if (runs_in.load() != this_process()) end_all();
}

void end_the_rest() {
  end_all();
  const timespec nap{0, kNap};
  for (int i = 0; i < kMostNaps && ending.load() > 0; ++i) ::nanosleep(&nap, nullptr);
}

}  // namespace ib::host_abi::sockets
