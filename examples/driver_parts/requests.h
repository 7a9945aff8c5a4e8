// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The control requests of one client, one after another. They come in sequences that belong
// together; one ends at its first failure, and the next one begins.
//
// Thread rule: the executor's thread, as for all that a driver does here.
#pragma once

#include "io/irp.h"

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace parts {

using ib::Status;

class Requests {
 public:
  using Issue = std::function<void(ib::io::IrpRef irp)>;
  using Done = std::function<void(Status status, const std::string& reason)>;

  // Ignored after end().
  void run(std::vector<Issue> issues, Done done);
  // Ends the sequences: waiting requests are dropped, the one under way is cancelled. Then these
  // are executed, each whatever the result of the one before, and at last `done`, which may
  // destroy this object.
  void end(std::vector<Issue> issues, std::function<void()> done);

 private:
  struct Sequence {
    std::vector<Issue> issues;
    Done done;
    std::size_t at = 0;
  };

  void begin();
  static void answered(ib::io::Irp& irp, void* context);

  ib::io::Irp irp_;
  bool under_way_ = false;
  bool ending_ = false;
  bool orphan_ = false;           // what is under way was begun before end()
  std::deque<Sequence> waiting_;  // the first one is being done
};

}  // namespace parts
