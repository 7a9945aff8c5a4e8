// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/async_queue.h"

#include "host_abi/provider/errors.h"
#include "linux/descriptor_table.h"
#include "linux/process/client_handle.h"
#include "linux/process/kept_descriptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ib::host_abi {

AsyncQueue::~AsyncQueue() {
  if (application_end_ >= 0 && !handed_over_) ::close(application_end_);
}

Status AsyncQueue::open() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return status_of(errno);
  }
  application_end_ = ends[0];
  application_file_ = os::file_word(ends[0]);
  our_end_ = os::keep_descriptor(os::own_descriptor(ends[1]));
  return Status::Ok;
}

int AsyncQueue::hand_over() {
  handed_over_ = true;
  return application_end_;
}

bool AsyncQueue::take_number(int fd) {
  if (::dup3(application_end_, fd, O_CLOEXEC) < 0) return false;
  ::close(application_end_);
  application_end_ = fd;
  handed_over_ = true;
  return true;
}

bool AsyncQueue::send(const AsyncEventRecord& record) const {
  if (os::is_replaced(our_end_.get())) return true;  // closed by the program: it wants no events
  return ::send(our_end_.get(), &record, sizeof record, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof record);
}

void AsyncQueue::flush_locked() {
  while (!waiting_.empty() && send(waiting_.front())) waiting_.pop_front();
}

void AsyncQueue::post(const AsyncEventRecord& record) {
  const std::lock_guard lock(mutex_);
  flush_locked();
  if (!waiting_.empty() || !send(record)) waiting_.push_back(record);
}

void AsyncQueue::flush() {
  const std::lock_guard lock(mutex_);
  flush_locked();
}

std::uint32_t AsyncQueue::purge(std::uint64_t element) {
  const std::lock_guard lock(mutex_);
  std::deque<AsyncEventRecord> all;
  AsyncEventRecord record{};
  const bool is_open = os::file_word(application_end_) == application_file_;
  while (is_open && ::recv(application_end_, &record, sizeof record, MSG_DONTWAIT) ==
                        static_cast<ssize_t>(sizeof record)) {
    all.push_back(record);
  }
  all.insert(all.end(), waiting_.begin(), waiting_.end());
  const std::size_t before = all.size();
  std::erase_if(all, [&](const AsyncEventRecord& one) { return one.element == element; });
  const std::size_t removed = before - all.size();
  waiting_ = std::move(all);
  flush_locked();
  return static_cast<std::uint32_t>(removed);
}

}  // namespace ib::host_abi
