// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamHcas: the HCAs where streams have ends, or have had.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "services/streams/stream_hca.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace ib::services {

class StreamHcas {
 public:
  using OnGone = std::function<void(const fabric::Hca& hca)>;
  StreamHcas(al::System& system, const fabric::Fabric& fabric, OnGone on_gone)
      : system_(system), fabric_(fabric), on_gone_(std::move(on_gone)) {}
  StreamHcas(const StreamHcas&) = delete;
  StreamHcas& operator=(const StreamHcas&) = delete;

  StreamHca& at(const fabric::Port& port);
  // It is to be removed: `go` is called at once, or when nothing of it is open here. Streams keep
  // it open, as the programs that use an HCA do.
  void let_go(const fabric::Hca& hca, std::function<void()> go);
  void let_back(const fabric::Hca& hca);
  // It is closed as soon as no stream has an end there.
  void close(const fabric::Hca& hca);
  void close_all(std::function<void()> done);

 private:
  al::System& system_;
  const fabric::Fabric& fabric_;
  OnGone on_gone_;
  io::DriverObject driver_{"streams"};
  std::map<std::uint32_t, std::unique_ptr<StreamHca>> all_;  // by index in the fabric
  std::size_t closing_ = 0;
};

}  // namespace ib::services
