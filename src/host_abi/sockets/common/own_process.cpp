// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/sockets/common/own_process.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace ib::host_abi::sockets {
namespace {

// Relaxed: they change while a process has one thread, at its start or as the child of a fork.
constinit std::atomic<std::uint32_t> forks{0};
constinit std::atomic<pid_t> own_pid{0};

struct Variable {
  const char* name;
  char* value;
};
constinit Variable variables[] = {{"RDMAV_DRIVERS", nullptr},      {"SOFTIB_SOCKET", nullptr},
                                  {"SOFTIB_NODE", nullptr},        {"SOFTIB_FABRIC", nullptr},
                                  {"SOFTIB_RUNTIME_DIR", nullptr}, {"SOFTIB_MEMORY_PATH", nullptr}};

void keep_variables() {
  for (Variable& one : variables) {
    if (const char* value = ::secure_getenv(one.name)) one.value = ::strdup(value);
  }
}

void after_fork_in_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  own_pid.store(::getpid(), std::memory_order_relaxed);
  begin_as_child();
}

[[gnu::constructor]] void start() {
  keep_variables();
  own_pid.store(::getpid(), std::memory_order_relaxed);
  ::pthread_atfork(nullptr, nullptr, after_fork_in_child);
}

}  // namespace

std::uint32_t generation() {
  return forks.load(std::memory_order_relaxed);
}

bool in_vfork_child() {
  return ::getpid() != own_pid.load(std::memory_order_relaxed);
}

void restore_variables() {
  for (const Variable& one : variables) {
    if (one.value != nullptr) ::setenv(one.name, one.value, 0);
  }
}

WithoutSignals::WithoutSignals() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

WithoutSignals::~WithoutSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

WithoutCancel::WithoutCancel() {
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_);
}

WithoutCancel::~WithoutCancel() {
  ::pthread_setcancelstate(before_, nullptr);
}

void say_once(bool& said, const char* text) {
  if (said) return;
  said = true;
  static_cast<void>(::syscall(SYS_write, long{STDERR_FILENO}, text, std::strlen(text)));
}

}  // namespace ib::host_abi::sockets
