// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The last lines of a softibd that crashes: the signal and, if code of a driver module runs or is
// among the callers, that driver. Written to the log by the handler of the signal; the process then
// ends as it would have ended without it.
//
// Process-wide, as signals are.
#pragma once

#include <string>

namespace ib::os {

struct ModulePlace;

// A module that is being loaded or is loaded.
class ModuleRecord {
 public:
  // The calling thread loads the module of driver `name` from the file `path`. It counts from now
  // on, since a module can crash while it is being loaded. Any thread.
  ModuleRecord(const std::string& name, const std::string& path);
  ModuleRecord(ModuleRecord&& other) noexcept;
  ModuleRecord& operator=(ModuleRecord&&) = delete;
  ModuleRecord(const ModuleRecord&) = delete;
  ModuleRecord& operator=(const ModuleRecord&) = delete;
  ~ModuleRecord();

  // `handle`: of dlopen().
  void on_loaded(void* handle);

 private:
  ModulePlace* place_;  // nullptr: there are more modules than the table has room for
};

// From now on the lines go to the end of the file `log`. Does nothing under a sanitizer, whose own
// report has more.
void report_crashes_to(const std::string& log);

}  // namespace ib::os
