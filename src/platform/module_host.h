// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ModuleHost: code that is loaded into this process, for drivers from the driver store.
#pragma once

#include "base/result.h"

#include <functional>
#include <memory>
#include <string>

namespace ib::platform {

// Loaded code. Destroying it unmaps the code: no thread may be inside or return into it. Does not
// block.
class Module {
 public:
  virtual ~Module() = default;
  virtual void* symbol(const char* name) = 0;  // nullptr: no symbol of that name
};

class ModuleHost {
 public:
  using Opened = std::function<void(Result<std::shared_ptr<Module>> module, std::string reason)>;

  virtual ~ModuleHost() = default;
  // Loads what a file holds now; the file may change afterwards. It may take long: on a thread of
  // its own. `name`: the driver's, for people. `opened` runs on the executor that the host was made
  // with. Dispatch level.
  virtual void open(const std::string& name, const std::string& path, Opened opened) = 0;
};

}  // namespace ib::platform
