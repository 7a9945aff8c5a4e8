// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PortQueue: queue pair 1 of a port, with a queue of MADs that wait for a place on it.
//
// Thread rule: as al::MadQp.
#pragma once

#include "al/mad_qp.h"
#include "mad/header.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

namespace ib::services {

class PortQueue {
 public:
  using OnReceive =
      std::function<void(std::uint32_t port, const al::MadAddress& from, const mad::Mad& mad)>;

  // `port`: its index in the graph. Device memory, without ports of switches, has others.
  PortQueue(al::Ca& ca, std::uint32_t port, std::uint32_t number, const OnReceive& on_receive);
  PortQueue(const PortQueue&) = delete;
  PortQueue& operator=(const PortQueue&) = delete;

  std::uint32_t port() const { return port_; }
  std::uint32_t number() const { return number_; }
  bool is_open() const { return qp_.is_open(); }
  // The port can send at this moment.
  bool is_up() const;
  Status status() const { return status_; }  // of the last open(); Pending: under way
  const std::string& reason() const { return reason_; }

  // Opens it, unless it is open or being opened; `done` is called when that has ended, at once if
  // there is nothing to do.
  void open(std::function<void()> done);
  // The CA is about to be closed. An open() that is under way ends, with its call.
  void abandon();
  bool is_busy() const { return qp_.is_busy(); }

  // DeviceRemoved: not open, or the port is down or asleep; LimitExceeded: too many wait.
  Status send(const al::MadAddress& to, const mad::Mad& mad);
  std::uint64_t failed() const { return failed_; }

 private:
  static constexpr std::uint32_t kDepth = 128;
  static constexpr std::uint32_t kReportEvery = 32;  // only room for more is of interest
  static constexpr std::size_t kMostWaiting = 4096;

  void send_waiting();

  al::Ca& ca_;
  std::uint32_t port_;
  std::uint32_t number_;  // at its HCA
  al::MadQp qp_;
  io::Irp irp_;
  Status status_ = Status::Pending;
  std::string reason_;
  std::function<void()> done_;
  std::deque<std::pair<al::MadAddress, mad::Mad>> waiting_;
  std::uint64_t failed_ = 0;  // sends
};

}  // namespace ib::services
