// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RawPeer: a kernel client that owns queue pair 1 of the first port of a node, which Gsi has not
// opened. It sends any MAD from there.
#pragma once

#include "services_world.h"

#include <functional>
#include <utility>

namespace ib::services::test {

class RawPeer {
 public:
  RawPeer(ServicesWorld& world, std::size_t node, std::function<void(const mad::Mad&)> on_mad)
      : w_(world), on_mad_(std::move(on_mad)) {
    run([&](io::IrpRef irp) { al_.open(w_.node(node).name, "peer", std::move(irp)); });
    run([&](io::IrpRef irp) { ca_.open("\\Device\\ibal", std::move(irp)); });
    qp_.set_on_receive([this](const al::MadAddress&, std::span<const std::byte, 256> bytes) {
      mad::Mad mad;
      std::copy(bytes.begin(), bytes.end(), mad.begin());
      on_mad_(mad);
    });
    run([&](io::IrpRef irp) { qp_.open(ca_, {verbs::QpType::Gsi, 1, 256}, std::move(irp)); });
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;
  ~RawPeer() {
    run([&](io::IrpRef irp) { qp_.close(std::move(irp)); });
    run([&](io::IrpRef irp) { ca_.close(std::move(irp)); });
    run([&](io::IrpRef irp) { al_.close(std::move(irp)); });
  }

  // If the queue is full, the MAD is lost, and the queue is drained.
  void send(const al::MadAddress& to, const mad::Mad& mad) {
    if (qp_.send(to, mad) == Status::LimitExceeded) w_.run(std::chrono::milliseconds(1));
  }

 private:
  template <class Send>
  void run(const Send& send) {
    Outcome outcome;
    send(outcome.start());
    EXPECT_TRUE(w_.comes([&] { return outcome.is_done(); }));
    EXPECT_EQ(outcome.irp.status, Status::Ok) << outcome.irp.reason;
  }

  ServicesWorld& w_;
  std::function<void(const mad::Mad&)> on_mad_;
  io::DriverObject driver_{"peer"};
  al::Al al_{w_.system, driver_};
  al::Ca ca_{al_};
  al::MadQp qp_;
};

}  // namespace ib::services::test
