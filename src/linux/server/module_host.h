// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ModuleHost over dlopen(), which reads files and runs constructors: each call, of which there are
// few, has a thread.
//
// dlopen() gets a copy of the file in memory. A mapped file that is written again (`cp` does that)
// changes under the code that runs, and ends the process where it is shorter meanwhile. The copy's
// name is /proc/<pid>/fd/<n>, which debuggers of the same user can open.
#pragma once

#include "platform/executor.h"
#include "platform/module_host.h"

#include <string>
#include <thread>
#include <vector>

namespace ib::os {

class DlopenHost final : public platform::ModuleHost {
 public:
  explicit DlopenHost(platform::Executor& executor) : executor_(executor) {}
  DlopenHost(const DlopenHost&) = delete;
  DlopenHost& operator=(const DlopenHost&) = delete;
  ~DlopenHost()
      override;  // waits for what is being loaded; its answer is dropped with the executor

  void open(const std::string& name, const std::string& path, Opened opened) override;

 private:
  platform::Executor& executor_;
  std::vector<std::thread> threads_;
};

}  // namespace ib::os
