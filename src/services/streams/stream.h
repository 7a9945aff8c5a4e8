// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Stream: the record of one stream in the stream service, from its Connect until both ends are
// gone.
#pragma once

#include "io/irp_queue.h"
#include "platform/stream_host.h"
#include "services/rdma_cm/addresses/routes.h"
#include "services/rdma_cm/connector/connector.h"
#include "services/streams/stream_end.h"
#include "services/streams/stream_listeners.h"
#include "streams/shared_end.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ib::services {

// The program of a session.
struct StreamProgram {
  std::uint64_t session = 0;
  std::uint32_t pid = 0;
  std::string name;
};

struct Stream {
  enum class Stage : std::uint8_t {
    Preparing,   // HCAs are being opened, the path is being found
    Making,      // the ends
    Connecting,  // REQ, REP, RTU
    Open,
    Ending,  // both links are closed, or the HCA goes: the ends are being unmade
  };

  struct End {
    std::unique_ptr<StreamEnd> made;
    streams::SharedEnd* shared = nullptr;  // once it is set up
    rdma_cm::Endpoint endpoint = 0;
    bool link_is_closed = false;
    StreamProgram program;               // that has connected or accepted
    std::vector<std::uint64_t> holders;  // sessions that have got the end
    io::IrpQueue growing;                // wait for the ring
    bool has_ring = false;
    bool is_growing = false;
  };

  std::uint64_t number = 0;
  Stage stage = Stage::Preparing;
  std::array<End, 2> ends;
  std::uint32_t server_node = 0;
  StreamListeners::Key listener;
  rdma_cm::Way way;
  rdma_cm::Path path;
  std::unique_ptr<rdma_cm::Routes::Share> question;

  platform::NativeHandle tcp;                          // until it is claimed
  std::unique_ptr<platform::StreamHost::Watch> watch;  // of it
  platform::StreamHost::Links links;                   // that are not given out yet
  platform::TcpName local;                             // of the end that connects
  platform::TcpName remote;
  std::uint32_t family = 0;
  bool has_names = false;  // is in the table of names
  bool is_claimed = false;
  bool is_accepted = false;  // by some process, as the last look has found (ForeignAccepts)

  std::optional<io::IrpRef> connect;  // until it is answered
  io::IrpQueue accepts;               // wait until it is made
  Instant since;
  Instant end_by;                  // Ending: the locks are not waited for any longer
  unsigned looks = 0;              // at its links, that are still to come
  unsigned waiting = 0;            // for so many ends
  std::uint32_t starting_psn = 0;  // of what the end 0 receives
  Status failed = Status::Ok;      // of making an end
  std::string reason;
};

}  // namespace ib::services
