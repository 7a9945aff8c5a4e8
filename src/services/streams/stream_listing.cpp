// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Listeners and streams as people see them.
#include "services/streams/stream_service.h"
#include "ulp/sdp/hello.h"

namespace ib::services {

using Stage = Stream::Stage;

namespace {

const char* state_of(const Stream& stream) {
  switch (stream.stage) {
    case Stage::Preparing:
    case Stage::Making:
    case Stage::Connecting: return "connecting";
    case Stage::Open: break;
    case Stage::Ending: return "ending";
  }
  // A process may scribble over these; they are only shown.
  for (const Stream::End& end : stream.ends) {
    if (end.shared->broken.load(std::memory_order_relaxed) != 0) return "broken";
  }
  if (stream.ends[0].link_is_closed || stream.ends[1].link_is_closed) return "half closed";
  return "established";
}

StreamListing::End end_of(const Stream& stream, std::uint32_t number, std::uint32_t node) {
  const Stream::End& end = stream.ends[number];
  StreamListing::End one;
  one.node = node;
  one.pid = end.program.pid;
  one.program = end.program.name;
  one.name = number == 0 ? stream.local : stream.remote;
  one.port = number == 0 ? stream.way.from : stream.way.to;
  if (end.made != nullptr) one.qpn = end.made->qpn();
  if (end.shared == nullptr) return one;
  one.last_slot = end.shared->last_user.load(std::memory_order_relaxed);
  one.bytes_sent = end.shared->bytes_sent;
  one.bytes_received = end.shared->bytes_received;
  return one;
}

}  // namespace

std::vector<StreamListing> StreamService::list() const {
  std::vector<StreamListing> all;
  listeners_.for_each([&](const StreamListeners::Key& key, const auto& holders) {
    for (const StreamListeners::Holder& holder : holders) {
      StreamListing& one = all.emplace_back();
      one.is_listener = true;
      one.state = "listening";
      one.service_id = sdp::service_id(key.port);
      one.ends[0].node = key.node;
      one.ends[0].pid = holder.pid;
      if (options_.program_of) one.ends[0].program = options_.program_of(holder.session);
      one.ends[0].name = {key.address, key.port, 0};
    }
  });
  const Instant now = parts_.system.executor.now();
  for (const auto& [number, stream] : table_.all()) {
    StreamListing& one = all.emplace_back();
    one.stream = number;
    one.state = state_of(*stream);
    one.service_id = sdp::service_id(stream->remote.port);
    one.age = now - stream->since;
    one.ends[0] = end_of(*stream, 0, parts_.fabric.hca_of(*stream->way.from)->node);
    if (!stream->is_claimed && stream->stage == Stage::Open) {
      one.waits_for = "the program that listens to accept it";
    }
    one.ends[1] = end_of(*stream, 1, stream->server_node);
  }
  return all;
}

}  // namespace ib::services
