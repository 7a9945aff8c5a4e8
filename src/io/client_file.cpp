// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/client_file.h"

#include <algorithm>
#include <utility>

namespace ib::io {

ClientFile::~ClientFile() {
  IB_ASSERT((state_ == State::New || state_ == State::Closed) && requests_.empty() && !close_);
}

void ClientFile::add(Irp& irp, Major major) {
  irp.major = major;
  irp.file = &object_;
  requests_.push_back(&irp);
}

void ClientFile::open(Irp& irp) {
  IB_ASSERT(state_ == State::New);
  state_ = State::Opening;
  add(irp, Major::Create);
}

bool ClientFile::begin(Irp& irp) {
  if (state_ != State::Open) return false;
  add(irp, Major::DeviceControl);
  return true;
}

void ClientFile::end(Irp& irp) {
  const auto found = std::find(requests_.begin(), requests_.end(), &irp);
  IB_ASSERT(found != requests_.end());
  requests_.erase(found);
  if (state_ == State::Closing) {
    state_ = State::Closed;
  } else if (!created_) {
    created_ = irp.status == Status::Ok;
    if (!created_) {
      state_ = State::Closed;
    } else if (state_ == State::Opening) {
      state_ = State::Open;
    }
  }
}

void ClientFile::clean_up() {
  if (state_ != State::Opening && state_ != State::Open) return;
  const bool was_open = is_open();
  state_ = State::CleaningUp;
  if (!was_open) return requests_.front()->cancel();
  // A request that is cancelled may complete others. Until this is over the file does not give out
  // Close, so it stays.
  cancelling_ = true;
  for (;;) {
    const auto next = std::find_if(requests_.begin(), requests_.end(),
                                   [](const Irp* irp) { return !irp->is_cancelled(); });
    if (next == requests_.end()) break;
    (*next)->cancel();
  }
  cancelling_ = false;
}

void ClientFile::close(IrpRef irp) {
  IB_ASSERT(created_ && !close_ && (state_ == State::Open || state_ == State::CleaningUp));
  irp->major = Major::Close;
  close_.emplace(std::move(irp));
  clean_up();
}

std::optional<IrpRef> ClientFile::take_close() {
  if (!close_ || cancelling_ || !requests_.empty()) return std::nullopt;
  std::optional<IrpRef> irp(std::move(*close_));
  close_.reset();
  state_ = State::Closing;
  add(**irp, Major::Close);
  return irp;
}

}  // namespace ib::io
