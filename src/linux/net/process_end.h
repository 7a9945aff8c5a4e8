// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Waits for the end of a process that need not be a child (pidfd).
#pragma once

#include "base/result.h"
#include "linux/server/event_loop.h"

#include <sys/types.h>

#include <functional>
#include <memory>

namespace ib::os::net {

class ProcessEnd {
 public:
  // `on_end`: once, on the loop's thread, never inside of this call; it may destroy this object.
  // ! NotFound: there is no such process; IoError
  static Result<std::unique_ptr<ProcessEnd>> wait(EventLoop& loop, pid_t pid,
                                                  std::function<void()> on_end);

  ProcessEnd(const ProcessEnd&) = delete;
  ProcessEnd& operator=(const ProcessEnd&) = delete;
  virtual ~ProcessEnd() = default;  // waits no longer

 protected:
  ProcessEnd() = default;
};

}  // namespace ib::os::net
