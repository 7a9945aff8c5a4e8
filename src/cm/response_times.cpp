// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cm/response_times_internal.h"
#include "cm/timeouts.h"

#include <algorithm>

namespace ib::cm {

Duration wait_of(const Limits& limits, Duration wanted) {
  return std::min(wanted, limits.longest_wait);
}

Duration response_time(const Limits& limits, const ConnectionInfo& info) {
  const Duration time = info.role == Role::Active ? time_of(info.remote_cm_response_timeout) +
                                                        2 * time_of(info.primary.packet_lifetime)
                                                  : time_of(info.local_cm_response_timeout);
  return wait_of(limits, std::max(time, limits.shortest_response));
}

Duration peer_response_time(const Limits& limits, const ConnectionInfo& info) {
  const Duration time = info.role == Role::Passive ? time_of(info.remote_cm_response_timeout) +
                                                         2 * time_of(info.primary.packet_lifetime)
                                                   : time_of(info.local_cm_response_timeout);
  return wait_of(limits, std::max(time, limits.shortest_response));
}

Duration time_wait(const Limits& limits, const ConnectionInfo& info) {
  const Duration time = info.role == Role::Passive ? time_of(info.primary.ack_timeout)
                                                   : 2 * time_of(info.primary.packet_lifetime) +
                                                         time_of(info.target_ack_delay);
  return wait_of(limits, time);
}

}  // namespace ib::cm
