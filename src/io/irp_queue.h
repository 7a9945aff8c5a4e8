// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// IrpQueue: where a request waits; the C++ form of the WDK's cancel-safe queue.
//
// Of take() and cancel() racing for one request, exactly one gets it. Parking a request that was
// cancelled already completes it. Removal costs the same wherever a request stands.
// Lock rule: no request is completed, and no code outside is called, while lock_ is held.
// Lifetime: the queue outlives every cancel() of a request that was ever parked in it.
#pragma once

#include "io/irp.h"

#include <cstddef>
#include <mutex>
#include <optional>
#include <string_view>

namespace ib::io {

class IB_DRIVER_API IrpQueue {
 public:
  IrpQueue() = default;
  IrpQueue(const IrpQueue&) = delete;
  IrpQueue& operator=(const IrpQueue&) = delete;
  ~IrpQueue() { IB_ASSERT(first_ == nullptr); }  // its owner fails what is left first: fail_all()

  void park(IrpRef irp);
  [[nodiscard]] std::optional<IrpRef> take();  // the oldest
  // Takes this request; returns nothing if it is not parked here. The caller keeps its memory
  // alive.
  [[nodiscard]] std::optional<IrpRef> take(Irp& which);
  // The oldest that was sent to `file`.
  [[nodiscard]] std::optional<IrpRef> take_of(const FileObject& file);

  // Returns true if it was parked here; it is then completed with Cancelled.
  bool cancel(Irp& which);
  // Completes every request that is here when it is called.
  void fail_all(Status status, std::string_view reason);

  std::size_t size() const;

 private:
  void link(Irp& irp);
  void unlink(Irp& irp);

  mutable std::mutex lock_;
  Irp* first_ = nullptr;  // oldest
  Irp* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ib::io
