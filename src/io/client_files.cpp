// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/client_files.h"

#include <utility>

namespace ib::io {

ClientFile& ClientFiles::open(std::unique_ptr<ClientFile> file, Irp& irp) {
  IB_ASSERT(!ending_);
  const auto [entry, is_new] = files_.emplace(file->number(), std::move(file));
  IB_ASSERT(is_new);
  ++under_way_;
  entry->second->open(irp);
  return *entry->second;
}

std::uint32_t ClientFiles::new_number() {
  do {
    ++last_number_;
  } while (last_number_ == 0 || files_.contains(last_number_));
  return last_number_;
}

ClientFile* ClientFiles::find(std::uint32_t number) const {
  const auto found = files_.find(number);
  return found != files_.end() && found->second->is_open() ? found->second.get() : nullptr;
}

bool ClientFiles::begin(ClientFile& file, Irp& irp) {
  if (!file.begin(irp)) return false;
  ++under_way_;
  return true;
}

std::optional<IrpRef> ClientFiles::close(ClientFile& file, IrpRef irp) {
  ++under_way_;
  file.close(std::move(irp));
  return file.take_close();
}

std::optional<IrpRef> ClientFiles::end(ClientFile& file, Irp& irp) {
  --under_way_;
  file.end(irp);
  if (file.state() != ClientFile::State::Closed) return file.take_close();
  files_.erase(file.number());
  return std::nullopt;
}

void ClientFiles::end() {
  IB_ASSERT(!ending_);
  ending_ = true;
  in_step_ = true;  // the next step comes after all of them
  // A file that was being opened may go in here, if its Create fails.
  for (auto file = files_.begin(); file != files_.end();) {
    const std::uint32_t number = file->first;
    file->second->clean_up();
    file = files_.upper_bound(number);
  }
  in_step_ = false;
}

// Drivers complete some requests before they return: a loop, since recursion would find the client
// in mid-step.
void ClientFiles::go_on() {
  if (!ending_ || in_step_ || over_) return;
  in_step_ = true;
  while (under_way_ == 0 && !files_.empty()) {
    const auto first_of_others = files_.upper_bound(0);
    const auto next = first_of_others != files_.end() ? first_of_others : files_.begin();
    owner_.close_file(*next->second);
  }
  in_step_ = false;
  if (!files_.empty()) return;
  over_ = true;
  owner_.on_over();
}

}  // namespace ib::io
