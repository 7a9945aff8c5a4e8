// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/printed_output.h"

#include "linux/process/client_handle.h"

#include <asio/posix/stream_descriptor.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

namespace ib::os {
namespace {

constexpr std::size_t kLongestLine = 1024;

constinit std::atomic<int> the_pipe{-1};

class Pipe final : public PrintedOutput {
 public:
  Pipe(EventLoop& loop, int reader, OnLine on_line)
      : reader_(loop.context(), reader), on_line_(std::move(on_line)) {
    the_pipe = reader;
    wait();
  }
  ~Pipe() override {
    the_pipe = -1;
    drain();
    if (!begun_.empty()) on_line_(begun_);
  }

 private:
  void wait() {
    reader_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [this](const asio::error_code& error) {
                         if (error) return;  // it is destroyed
                         drain();
                         wait();
                       });
  }
  void drain() {
    std::array<char, 4096> some{};
    for (;;) {
      const ssize_t got = ::read(reader_.native_handle(), some.data(), some.size());
      if (got <= 0) return;
      take({some.data(), static_cast<std::size_t>(got)});
    }
  }
  void take(std::string_view text) {
    for (const char c : text) {
      const bool is_end = c == '\n';
      if (!is_end) begun_ += c;
      if (!is_end && begun_.size() < kLongestLine) continue;
      if (!begun_.empty()) on_line_(begun_);
      begun_.clear();
    }
  }

  asio::posix::stream_descriptor reader_;
  OnLine on_line_;
  std::string begun_;  // a line whose end has not come
};

}  // namespace

std::unique_ptr<PrintedOutput> PrintedOutput::take(EventLoop& loop, OnLine on_line) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return nullptr;
  const platform::NativeHandle writer = own_descriptor(ends[1]);
  ::dup2(writer.get(), STDOUT_FILENO);
  ::dup2(writer.get(), STDERR_FILENO);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // lines, as on a terminal
  return std::make_unique<Pipe>(loop, ends[0], std::move(on_line));
}

int printed_output_pipe() {
  return the_pipe.load();
}

}  // namespace ib::os
