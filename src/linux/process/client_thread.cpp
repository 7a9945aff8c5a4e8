// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/process/client_signals.h"
#include "linux/process/client_wait.h"
#include "linux/process/process_number.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string>

namespace ib::os {
namespace {

constexpr std::size_t kStackSize = std::size_t{256} * 1024;
constexpr std::size_t kNameLength = 15;  // the length of a thread's name in the kernel

struct Start {
  std::function<void()> body;
  std::string name;
};

// The process in which the threads run, and their number.
constinit std::atomic<std::uint64_t> counted_in{0};
constinit std::atomic<std::uint32_t> running{0};

// Returns the start of this thread's vector of TLS blocks. glibc keeps a pointer into it only, so
// that leak checkers take it for lost unless they find this one.
void* start_of_tls_vector() {
  constexpr std::size_t kElement = 2 * sizeof(void*);
  std::byte* second = nullptr;
#if defined(__x86_64__)
  __asm__("movq %%fs:8, %0" : "=r"(second));
#elif defined(__aarch64__)
  second = *static_cast<std::byte**>(__builtin_thread_pointer());
#endif
  return second == nullptr ? nullptr : second - kElement;
}

void* run(void* argument) {
  [[maybe_unused]] void* const volatile vector = start_of_tls_vector();
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  (void)::prctl(PR_SET_NAME, start->name.c_str());
  start->body();
  running.fetch_sub(1, std::memory_order_acq_rel);
  return nullptr;
}

void count_one() {
  const std::uint64_t here = process_number();
  if (counted_in.exchange(here) != here) running.store(0);
  running.fetch_add(1, std::memory_order_acq_rel);
}

class BackgroundThread final : public platform::ClientHost::Thread {
 public:
  explicit BackgroundThread(pthread_t id) : id_(id), owner_(process_number()) {}
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;
  ~BackgroundThread() override {
    // In a forked child there is no such thread.
    if (process_number() == owner_) (void)pthread_join(id_, nullptr);
  }

 private:
  pthread_t id_;
  std::uint64_t owner_;
};

int create(pthread_t& id, std::size_t stack_size, Start* start) {
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes); error != 0) return error;
  if (stack_size != 0) (void)pthread_attr_setstacksize(&attributes, stack_size);
  const int error = pthread_create(&id, &attributes, run, start);
  (void)pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

std::uint32_t background_thread_count() {
  return counted_in.load() == process_number() ? running.load() : 0;
}

Result<std::unique_ptr<platform::ClientHost::Thread>> start_background_thread(
    const char* name, std::function<void()> body) {
  auto start =
      std::make_unique<Start>(Start{std::move(body), std::string(name).substr(0, kNameLength)});
  // The program's signals are for the program's threads; the new thread inherits the mask.
  const SignalGuard guard;
  count_one();
  pthread_t id{};
  int error = create(id, kStackSize, start.get());
  // glibc takes thread-local storage out of the stack: a program with a lot of it needs more.
  if (error == EINVAL) error = create(id, 0, start.get());
  if (error != 0) {
    running.fetch_sub(1, std::memory_order_acq_rel);
    return error == EAGAIN || error == ENOMEM ? Status::InsufficientResources : Status::IoError;
  }
  (void)start.release();  // the thread's now
  return std::unique_ptr<platform::ClientHost::Thread>(std::make_unique<BackgroundThread>(id));
}

}  // namespace ib::os
