// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The beginning and the end of an end, by softibd.
#include "streams/end_setup.h"

#include "hca/layout/first_use.h"
#include "streams/queue_view.h"
#include "ulp/sdp/stream.h"

#include <new>

namespace ib::streams {

SharedEnd* find_end(const hca::Arena& arena, std::uint64_t place) {
  if (place % kPage != 0) return nullptr;
  return reinterpret_cast<SharedEnd*>(arena.heap(place, kPlaceBytes));
}

Status set_up(const hca::Arena& arena, const EndParts& parts) {
  SharedEnd* const at = find_end(arena, parts.place);
  if (at == nullptr || find_end(arena, parts.peer_place) == nullptr || parts.stream == 0) {
    return Status::InvalidParameter;
  }
  SharedEnd& end = *new (at) SharedEnd;
  end.peer = parts.peer_place;
  end.small_ring = parts.place + kEndBytes;
  end.buffers = end.small_ring + kSmallRing;
  end.buffers_address = parts.buffers_address;
  end.rq_ring = parts.queue_pair.rq_ring;
  end.cq_ring = parts.completions.ring;
  end.end = parts.end;
  end.qp = parts.qp;
  end.cq = parts.cq;
  end.pd = parts.pd;
  end.lkey = parts.lkey;
  end.rq_slots = parts.queue_pair.rq_slots;
  end.rq_stride = parts.queue_pair.rq_stride;
  end.cq_slots = parts.completions.slots;
  end.local = parts.local;
  end.remote = parts.remote;
  end.ring = end.small_ring;
  sdp::Settings settings;
  settings.send_ring_bytes = kSmallRing;
  settings.receive_buffer_bytes = kBufferBytes;
  settings.receive_buffers = kBuffers;
  settings.send_slots = sdp::kMostSendSlots;
  IB_CHECK(sdp::init(end.state, settings));
  auto rings = Rings::find(arena, end);
  if (!rings) return rings.error();
  for (std::uint32_t i = 0; i < kBuffers; ++i) rings->post_receive(i);
  sdp::on_posted(end.state, kBuffers);
  // A process may be stopped in a section before it has sent anything: destroying the queue pair
  // waits for it.
  hca::begin_use(*arena.qp(parts.qp));
  end.stream.store(parts.stream, std::memory_order_release);
  return Status::Ok;
}

void take_down(SharedEnd& end) {
  end.stream.store(0, std::memory_order_release);
}

void break_stream(const hca::Arena& arena, SharedEnd& end) {
  end.broken.store(1, std::memory_order_release);
  if (SharedEnd* const peer = find_end(arena, end.peer); peer != nullptr) {
    peer->broken.store(1, std::memory_order_release);
  }
}

}  // namespace ib::streams
