// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QpChanges: the changes of a queue pair's state and attributes (ModifyQp). The program waits for
// softibd only where that may refuse.
//
// Thread rule: under the process's control lock, but for is_behind().
#pragma once

#include "user/work_queues.h"

#include <atomic>
#include <cstdint>

namespace ib::user {

class QpChanges {
 public:
  QpChanges(Hca& hca, std::uint32_t handle, WorkQueues& queues)
      : hca_(hca), handle_(handle), queues_(queues) {}

  Result<control::ModifyQpOut> modify(std::uint32_t mask, const control::QpAttr& attr);
  // Before softibd looks at all attributes, or changes others.
  Status catch_up();
  // Returns true if catch_up() has something to do. Any thread.
  bool is_behind() const { return access_waits_; }

 private:
  // Not one of those that other processes can open, and change.
  bool is_own() const;
  bool stays_in_init(std::uint32_t mask, const control::QpAttr& attr) const;
  bool is_sure(std::uint32_t mask, const control::QpAttr& attr) const;

  // The last change; `mask` 0: it was not one to Init.
  struct Init {
    std::uint32_t mask = 0;
    control::QpAttr attr;
  };

  Hca& hca_;
  std::uint32_t handle_;
  WorkQueues& queues_;
  Init init_;
  std::atomic<bool> access_waits_ = false;  // its access flags have not reached softibd yet
};

}  // namespace ib::user
