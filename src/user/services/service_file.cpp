// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/services/service_file.h"

#include "user/control_connection.h"
#include "user/hca.h"

namespace ib::user {

ServiceFile::ServiceFile(ServiceChannel& channel, control::ServiceKind kind)
    : channel_(channel), kind_(kind) {
  ++channel_.files_;
}

ServiceFile::~ServiceFile() {
  --channel_.files_;
  channel_.forget(*this);
  if (file_ != 0) channel_.close(file_);
}

Status ServiceFile::open(Hca& hca, ServiceDone done) {
  if (file_ != 0 || is_opening_) {
    return failed(Status::InvalidState, "it is open, or being opened");
  }
  const control::AttachOut& process = channel_.process_.info();
  control::OpenServiceIn in;
  in.kind = kind_;
  in.slot = process.slot;
  in.slot_generation = process.slot_generation;
  in.ca_index = hca.info().ca_index;
  const auto opened = [this, done = std::move(done)](const ServiceEnd& end,
                                                     std::span<const std::byte>) {
    is_opening_ = false;
    if (end.status == Status::Ok) file_ = end.handle;
    if (done) done(end);
  };
  IB_CHECK(channel_.send(static_cast<std::uint32_t>(control::ServiceCode::Open), 0, bytes_of(in),
                         {this, true, opened}));
  is_opening_ = true;
  return Status::Ok;
}

Status ServiceFile::send(std::uint32_t code, std::span<const std::byte> in, OnOutput done) {
  if (file_ == 0) return failed(Status::InvalidState, "it is not open");
  return channel_.send(code, file_, in, {this, false, std::move(done)});
}

}  // namespace ib::user
