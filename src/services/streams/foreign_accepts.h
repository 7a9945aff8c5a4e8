// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ForeignAccepts: finds streams whose TCP connection was accepted without the socket switch: by a
// static child that has inherited the listener, or by io_uring. Nobody claims them, and the program
// that accepted speaks TCP, so their clients would wait without an end.
//
// A process with the switch accepts first and claims then, and may be stopped for a moment in
// between: two looks in a row have to find the connection accepted.
//
// Thread rule: the executor's thread.
#pragma once

#include "platform/executor.h"
#include "platform/stream_host.h"
#include "services/streams/stream_table.h"

#include <vector>

namespace ib::services {

class ForeignAccepts {
 public:
  ForeignAccepts(const StreamTable& table, platform::StreamHost& host)
      : table_(table), host_(host) {}

  // Returns the streams that were found. Queries the host at most once in kInterval, and only
  // while a stream has waited for longer than that.
  std::vector<Stream*> look(Instant now);

  static constexpr Duration kInterval = std::chrono::seconds(1);

 private:
  const StreamTable& table_;
  platform::StreamHost& host_;
  Instant next_look_{};
};

}  // namespace ib::services
