// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "ipoib/event_queue.h"

#include "linux/process/client_handle.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace ib::ipoib::driver {

Status EventQueue::open() {
  signal_ = os::own_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return signal_.valid() ? Status::Ok : os::no_descriptor(errno);
}

void EventQueue::on_event(const user::control::EventOut& event) {
  {
    const std::lock_guard guard(lock_);
    events_.push_back(event);
  }
  const std::uint64_t one = 1;
  // It fails only if the count is at its end: then the loop is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(signal_.get(), &one, sizeof one);
}

std::vector<user::control::EventOut> EventQueue::take() {
  const std::lock_guard guard(lock_);
  if (events_.empty()) return {};
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(signal_.get(), &count, sizeof count);
  return std::exchange(events_, {});
}

}  // namespace ib::ipoib::driver
