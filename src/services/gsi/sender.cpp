// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/gsi/sender_internal.h"

namespace ib::services {

Status GsiSender::send(const GsiAddress& to, const mad::Mad& mad) {
  PortQueue* port = nodes_.find_port(to.port);
  return port == nullptr ? Status::DeviceRemoved : put(*port, to, mad);
}

void GsiSender::transmit(const GsiAddress& to, const mad::Mad& mad) {
  PortQueue* port = nodes_.find_port(to.port);
  if (port == nullptr) return count_failure();
  static_cast<void>(put(*port, to, mad));
}

Status GsiSender::put(PortQueue& port, const GsiAddress& to, const mad::Mad& mad) {
  if (on_send_) on_send_(to, mad);
  const bool is_taken = port.is_up() && closed_ends_.take(to, mad);
  const Status sent = is_taken ? Status::Ok : port.send(to.remote, mad);
  ++(sent == Status::Ok ? counters_.sent : counters_.sends_failed);
  return sent;
}

}  // namespace ib::services
