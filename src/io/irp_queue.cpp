// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/irp_queue.h"

namespace ib::io {
namespace {

void complete_cancelled(IrpRef irp) {
  std::move(irp).fail(Status::Cancelled, "the request was cancelled");
}

}  // namespace

void IrpQueue::park(IrpRef ref) {
  Irp& irp = ref.take();
  {
    std::lock_guard guard(lock_);
    link(irp);
    irp.parked_in_.store(this);
    // Look only after publishing the queue (see Irp::cancel). If it is set, cancel() may find the
    // request here too; the lock decides which of the two completes it; here it is this one.
    if (!irp.cancelled_.load()) return;
    unlink(irp);
  }
  complete_cancelled(IrpRef(irp));
}

std::optional<IrpRef> IrpQueue::take() {
  std::lock_guard guard(lock_);
  if (first_ == nullptr) return std::nullopt;
  Irp& irp = *first_;
  unlink(irp);
  return IrpRef(irp);
}

std::optional<IrpRef> IrpQueue::take(Irp& which) {
  std::lock_guard guard(lock_);
  if (which.parked_in_.load() != this) return std::nullopt;
  unlink(which);
  return IrpRef(which);
}

std::optional<IrpRef> IrpQueue::take_of(const FileObject& file) {
  std::lock_guard guard(lock_);
  for (Irp* irp = first_; irp != nullptr; irp = irp->next_) {
    if (irp->file != &file) continue;
    unlink(*irp);
    return IrpRef(*irp);
  }
  return std::nullopt;
}

bool IrpQueue::cancel(Irp& which) {
  std::optional<IrpRef> irp = take(which);
  if (!irp) return false;  // its owner got there first and will complete it
  complete_cancelled(*std::move(irp));
  return true;
}

void IrpQueue::fail_all(Status status, std::string_view reason) {
  // Only those that are here now: a completion may park its request again.
  for (std::size_t left = size(); left > 0; --left) {
    std::optional<IrpRef> irp = take();
    if (!irp) return;
    (*std::move(irp)).fail(status, std::string(reason));
  }
}

std::size_t IrpQueue::size() const {
  std::lock_guard guard(lock_);
  return size_;
}

void IrpQueue::link(Irp& irp) {
  IB_ASSERT(irp.parked_in_.load() == nullptr);
  irp.next_ = nullptr;
  irp.previous_ = last_;
  (last_ != nullptr ? last_->next_ : first_) = &irp;
  last_ = &irp;
  ++size_;
}

void IrpQueue::unlink(Irp& irp) {
  (irp.previous_ != nullptr ? irp.previous_->next_ : first_) = irp.next_;
  (irp.next_ != nullptr ? irp.next_->previous_ : last_) = irp.previous_;
  irp.next_ = irp.previous_ = nullptr;
  irp.parked_in_.store(nullptr);
  --size_;
}

}  // namespace ib::io
