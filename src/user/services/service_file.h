// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServiceFile: this process's part of a service at one HCA; what Sa (sa.h) and Cm (cm.h) have in
// common. The requests are theirs. Callbacks, threads: service_channel.h.
#pragma once

#include "base/buffers.h"
#include "user/services/service_channel.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace ib::user {

class Hca;

class ServiceFile {
 public:
  ServiceFile(const ServiceFile&) = delete;
  ServiceFile& operator=(const ServiceFile&) = delete;

  // Once; the file is open when `done` comes with Ok. After another status it may be tried again.
  // InvalidState: it is open, or being opened.
  Status open(Hca& hca, ServiceDone done);
  bool is_open() const { return file_ != 0; }
  ServiceChannel& channel() const { return channel_; }

 protected:
  ServiceFile(ServiceChannel& channel, control::ServiceKind kind);
  // Withdraws all that the file has, without waiting: what would have called back does not.
  ~ServiceFile();

  template <class Code, class In>
  Status call(Code code, const In& in, ServiceDone done) {
    return send(static_cast<std::uint32_t>(code), bytes_of(in),
                [done = std::move(done)](const ServiceEnd& end, std::span<const std::byte>) {
                  if (done) done(end);
                });
  }
  template <class Out, class Code, class In>
  Status call_for(Code code, const In& in, ServiceAnswer<Out> done) {
    return send(static_cast<std::uint32_t>(code), bytes_of(in),
                [done = std::move(done)](const ServiceEnd& end, std::span<const std::byte> bytes) {
                  Out out{};
                  if (bytes.size() == sizeof out) {
                    std::memcpy(static_cast<void*>(&out), bytes.data(), sizeof out);
                  } else if (end.status == Status::Ok) {
                    return done({Status::Malformed, 0, kBadAnswer}, out);
                  }
                  done(end, out);
                });
  }

 private:
  static constexpr std::string_view kBadAnswer = "softibd's answer has the wrong size";
  using OnOutput = ServiceChannel::OnOutput;
  Status send(std::uint32_t code, std::span<const std::byte> in, OnOutput done);

  ServiceChannel& channel_;
  control::ServiceKind kind_;
  std::uint32_t file_ = 0;  // 0: not open
  bool is_opening_ = false;
};

}  // namespace ib::user
