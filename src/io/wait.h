// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Waiting for a request: for passive level only. At dispatch level give a completion routine.
#pragma once

#include "io/irp.h"
#include "platform/level.h"

#include <condition_variable>
#include <mutex>

namespace ib::io {

//   Irp irp;  IrpWait wait;
//   call_driver(device, wait.start(irp));
//   Status status = wait.wait();   // the results are in `irp`
class IrpWait {
 public:
  [[nodiscard]] IrpRef start(Irp& irp) {
    irp_ = &irp;
    done_ = false;
    return irp.start(&IrpWait::on_done, this);
  }
  Status wait() {
    require_passive("waiting for a request (IrpWait)");
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    return irp_->status;
  }

 private:
  static void on_done(Irp&, void* context) {
    auto& self = *static_cast<IrpWait*>(context);
    // Notified under the lock: the waiter may destroy this object as soon as it gets the lock.
    std::lock_guard guard(self.mutex_);
    self.done_ = true;
    self.changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Irp* irp_ = nullptr;
  bool done_ = false;
};

}  // namespace ib::io
