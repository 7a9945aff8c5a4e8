// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/net/process_end.h"

#include <asio/posix/stream_descriptor.hpp>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace ib::os::net {
namespace {

class Waiting final : public ProcessEnd {
 public:
  Waiting(EventLoop& loop, int pidfd, std::function<void()> on_end)
      : file_(loop.context(), pidfd), on_end_(std::move(on_end)) {
    // Readable when the process has ended, reaped or not.
    file_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const asio::error_code& error) {
                       if (error) return;  // it is destroyed
                       const std::function<void()> work = std::move(on_end_);
                       work();
                     });
  }

 private:
  asio::posix::stream_descriptor file_;
  std::function<void()> on_end_;
};

}  // namespace

Result<std::unique_ptr<ProcessEnd>> ProcessEnd::wait(EventLoop& loop, pid_t pid,
                                                     std::function<void()> on_end) {
  const long pidfd = ::syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0) return errno == ESRCH ? Status::NotFound : Status::IoError;
  return std::unique_ptr<ProcessEnd>(
      std::make_unique<Waiting>(loop, static_cast<int>(pidfd), std::move(on_end)));
}

}  // namespace ib::os::net
