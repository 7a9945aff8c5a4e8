// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/streams/foreign_accepts.h"

#include <cstddef>
#include <utility>

namespace ib::services {

std::vector<Stream*> ForeignAccepts::look(Instant now) {
  if (now < next_look_) return {};
  std::vector<Stream*> waiting = table_.unclaimed();
  std::erase_if(waiting, [now](const Stream* one) { return now - one->since <= kInterval; });
  if (waiting.empty()) return {};
  next_look_ = now + kInterval;
  std::vector<platform::TcpPair> connections;
  connections.reserve(waiting.size());
  for (const Stream* one : waiting) connections.push_back({one->remote, one->local});
  const std::vector<bool> accepted = host_.are_accepted(connections);
  std::vector<Stream*> found;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (std::exchange(waiting[i]->is_accepted, accepted[i]) && accepted[i]) {
      found.push_back(waiting[i]);
    }
  }
  return found;
}

}  // namespace ib::services
