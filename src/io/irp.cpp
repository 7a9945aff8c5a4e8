// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/irp.h"

#include "io/device.h"
#include "io/irp_queue.h"

namespace ib::io {

IrpRef Irp::start(OnDone on_done, void* context) {
  IB_ASSERT(!in_flight_ && on_done != nullptr);
  in_flight_ = true;
  on_done_ = on_done;
  on_done_context_ = context;
  depth_ = 0;
  cancelled_ = false;
  status = Status::Pending;
  information = 0;
  out_size = 0;
  for (NativeHandle& handle : out_handles) handle.reset();
  reason.clear();
  return IrpRef(*this);
}

// Pairs with IrpQueue::park(), which publishes the queue first and looks at cancelled_ second:
// one of the two sees the other.
void Irp::cancel() {
  cancelled_.store(true);
  if (IrpQueue* queue = parked_in_.load()) queue->cancel(*this);
}

void Irp::push(DeviceObject& device, Completion completion, void* context) {
  IB_ASSERT(depth_ < kMaxStackDepth);  // else a driver sends requests round in a circle
  DriverObject* sender = depth_ == 0 ? nullptr : &locations_[depth_ - 1].device->driver();
  if (sender != nullptr && completion != nullptr) sender->references.take(DriverUse::Callback);
  device.requests_.fetch_add(1);
  locations_[depth_++] = {&device, sender, completion, context};
}

// Goes up to the next completion routine, which then owns the request and returns here with
// pass_up(): the recursion is at most as deep as the device stack.
void Irp::run_completions() {
  while (depth_ > 0) {
    const Location location = locations_[--depth_];
    // The last touch: once its count is zero, the device may be destroyed on another thread.
    location.device->requests_.fetch_sub(1);
    if (location.completion == nullptr) continue;
    location.completion(IrpRef(*this), location.context);
    if (location.sender != nullptr) location.sender->references.release(DriverUse::Callback);
    return;
  }
  in_flight_ = false;
  on_done_(*this, on_done_context_);
}

void IrpRef::complete(Status status, std::uint64_t information) && {
  IB_ASSERT(status != Status::Pending);
  Irp& irp = take();
  irp.status = status;
  irp.information = information;
  irp.run_completions();
}

void IrpRef::fail(Status status, std::string reason) && {
  IB_ASSERT(status != Status::Pending && status != Status::Ok);
  irp_->out_size = 0;
  for (NativeHandle& handle : irp_->out_handles) handle.reset();
  irp_->reason = std::move(reason);
  std::move(*this).complete(status, 0);
}

void IrpRef::pass_up() && {
  IB_ASSERT(irp_->status != Status::Pending);  // only a completed request goes up
  take().run_completions();
}

}  // namespace ib::io
