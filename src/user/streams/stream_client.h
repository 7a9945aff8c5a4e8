// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamClient: this process at a fabric, as far as it needs that for streams: a slot, device
// memory and one connection to softibd, but no threads and no HCA.
//
// A child of fork() has none of its parent's: it attaches itself, and opens the ends of the links
// that it has inherited by their names.
#pragma once

#include "hca/memory/memory_plane.h"
#include "platform/client_host.h"
#include "streams/end.h"
#include "user/arena_mapping.h"
#include "user/control_connection.h"
#include "verbs/control_streams.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ib::user {

class StreamClient {
 public:
  // Connects to softibd, attaches to `node`, maps device memory. A failure has its reason in
  // last_reason().
  static Result<std::unique_ptr<StreamClient>> attach(platform::ClientHost& host,
                                                      const std::string& node,
                                                      const std::string& program);
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;
  ~StreamClient();

  struct Opened {
    std::unique_ptr<streams::End> end;
    platform::NativeHandle link;  // close-on-exec; blocks
    verbs::control::StreamOut out;
  };
  // The requests of verbs/control_streams.h, with their errors. They wait for softibd, never for a
  // peer. Disconnected: softibd is gone; streams that exist go on.
  Status listen(const verbs::control::StreamAddress& local);
  Status unlisten(const verbs::control::StreamAddress& local);
  // `tcp`: the program's socket, which must not block.
  Result<Opened> connect(const verbs::control::StreamAddress& remote, int tcp);
  Result<Opened> accept(const verbs::control::StreamAddress& local,
                        const verbs::control::StreamAddress& remote);
  Result<std::unique_ptr<streams::End>> open(std::uint64_t stream, std::uint32_t end);
  // After Verdict::WantsRing.
  Status grow(streams::End& end);

  // False in a child that was forked after attach().
  bool is_mine() const { return connection_.is_mine(); }

 private:
  class Poster;
  explicit StreamClient(platform::ClientHost& host);
  Status start(const std::string& node, const std::string& program, std::string& reason);
  Result<Opened> opened(verbs::control::StreamCode code, std::span<const std::byte> in,
                        std::span<const int> handles);

  platform::ClientHost& host_;
  ArenaMapping mapping_;
  std::unique_ptr<Poster> poster_;
  std::unique_ptr<hca::MemoryPlane> plane_;
  ControlConnection connection_;
};

}  // namespace ib::user
