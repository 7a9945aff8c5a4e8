// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The requests of programs: what each is, and its answer.
#include "services/streams/stream_service.h"

#include "services/rdma_cm/addresses/places.h"
#include "services/streams/stream_names.h"
#include "ulp/sdp/hello.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ib::services {

namespace control = verbs::control;
using control::StreamCode;
using platform::TcpName;
using Stage = Stream::Stage;

namespace {

// A process in the middle of a call is not waited for any longer when an HCA goes.
constexpr Duration kPatience = std::chrono::seconds(1);

bool is_at(const Stream& stream, const fabric::Fabric& fabric, const fabric::Hca& hca) {
  return fabric.hca_of(*stream.way.from) == &hca || fabric.hca_of(*stream.way.to) == &hca;
}

}  // namespace

StreamService::StreamService(const Parts& parts, StreamServiceOptions options)
    : parts_(parts),
      options_(std::move(options)),
      foreign_accepts_(table_, parts.host),
      hcas_(parts.system, parts.fabric, [this](const fabric::Hca& hca) { on_gone(hca); }),
      maker_({parts.system, table_, hcas_, parts.connector, parts.routes, parts.host},
             options_.random, *this),
      burial_(parts.system, table_, parts.host, *this) {
  driver_.on(io::Major::DeviceControl) = &StreamService::control;
  device_.set_extension(this);
}

StreamService::~StreamService() {
  IB_ASSERT(table_.is_empty());
}

std::vector<std::uint64_t> StreamService::service_ids() {
  return {sdp::service_id(0)};
}

void StreamService::control(io::DeviceObject& device, io::IrpRef irp) {
  device.extension<StreamService>().dispatch(std::move(irp));
}

void StreamService::dispatch(io::IrpRef irp) {
  if (is_closing_) return std::move(irp).fail(Status::Disconnected, "softibd is going down");
  switch (static_cast<StreamCode>(irp->code)) {
    case StreamCode::Listen: return listen(std::move(irp), true);
    case StreamCode::Unlisten: return listen(std::move(irp), false);
    case StreamCode::Connect: return connect(std::move(irp));
    case StreamCode::Accept: return accept(std::move(irp));
    case StreamCode::Open: return open(std::move(irp));
    case StreamCode::Grow: return grow(std::move(irp));
  }
  std::move(irp).fail(Status::NotSupported, "no request about streams has this code");
}

void StreamService::listen(io::IrpRef irp, bool on) {
  const auto in = irp->input<control::StreamListenIn>();
  const fabric::Node* node = parts_.fabric.find_node(irp->file->client().node);
  if (!in || node == nullptr || in->local.port == 0) {
    return std::move(irp).fail(Status::InvalidParameter,
                               "a listener has an address with a port, in 24 bytes");
  }
  const StreamListeners::Key key{rdma_cm::index_of(parts_.fabric, *node), in->local.address,
                                 in->local.port};
  const io::Client& client = irp->file->client();
  if (!on) {
    listeners_.remove(key, client.session);
    return std::move(irp).complete(Status::Ok);
  }
  if (listeners_.add(key, client.session, client.pid) != Status::Ok) {
    return std::move(irp).fail(
        Status::LimitExceeded,
        fmt::format("a program has at most {} listeners", StreamListeners::kMostOfSession));
  }
  std::move(irp).complete(Status::Ok);
}

void StreamService::refuse(io::IrpRef irp, Status status, const TcpName& remote,
                           const fabric::Node& peer, const std::string& why) {
  if (options_.on_refused) {
    const io::Client& client = irp->file->client();
    options_.on_refused({fmt::format("TCP to {} stays TCP: {}", text_of(remote), why),
                         client.session, client.pid, client.node, peer.name});
  }
  std::move(irp).fail(status, why);
}

StreamProgram StreamService::program_of(const io::Client& client) const {
  return {client.session, client.pid,
          options_.program_of ? options_.program_of(client.session) : std::string()};
}

void StreamService::connect(io::IrpRef irp) {
  const auto in = irp->input<control::StreamConnectIn>();
  const fabric::Node* node = parts_.fabric.find_node(irp->file->client().node);
  if (!in || node == nullptr || !irp->in_handles[0].valid() || in->remote.port == 0) {
    return std::move(irp).fail(Status::InvalidParameter,
                               "Connect takes a TCP socket, and 24 bytes of input with an address");
  }
  const TcpName remote = name_of(in->remote);
  const fabric::Node* peer = node_of(parts_.fabric, *node, remote);
  if (peer == nullptr) {  // of no node: there is nothing to tell
    return std::move(irp).fail(Status::NotFound, "the address is that of no node");
  }
  const std::uint32_t peer_index = rdma_cm::index_of(parts_.fabric, *peer);
  const StreamListeners::Key* listener = listeners_.find({peer_index, remote.address, remote.port});
  if (listener == nullptr) {
    return refuse(std::move(irp), Status::NotFound, remote, *peer,
                  fmt::format("no program of {} listens there with the socket switch", peer->name));
  }
  rdma_cm::Way way;
  const rdma_cm::EndpointAddress destination = destination_of(*node, *peer, remote);
  const auto error = rdma_cm::find_way(parts_.fabric, *node,
                                       rdma_cm::any_address(destination.family), destination, way);
  if (error != rdma_cm::ucma::Error::None || way.to == nullptr) {
    return refuse(std::move(irp), Status::InvalidState, remote, *peer,
                  fmt::format("{} has no active port that leads to {}", node->name, peer->name));
  }
  Stream& stream = table_.add();
  stream.server_node = peer_index;
  stream.listener = *listener;
  stream.way = way;
  stream.remote = remote;
  stream.tcp = std::move(irp->in_handles[0]);
  stream.ends[0].program = program_of(irp->file->client());
  stream.connect.emplace(std::move(irp));
  burial_.arm();
  maker_.begin(stream);
}

void StreamService::accept(io::IrpRef irp) {
  const auto in = irp->input<control::StreamAcceptIn>();
  const fabric::Node* node = parts_.fabric.find_node(irp->file->client().node);
  if (!in || node == nullptr) {
    return std::move(irp).fail(Status::InvalidParameter, "Accept takes 48 bytes of input");
  }
  const std::uint32_t index = rdma_cm::index_of(parts_.fabric, *node);
  const io::Client& client = irp->file->client();
  listeners_.on_accepted({index, in->local.address, in->local.port}, client.session, client.pid);
  Stream* stream = table_.find_by_names(*in, index);
  if (stream == nullptr) return std::move(irp).fail(Status::NotFound, "this connection stays TCP");
  if (stream->stage != Stage::Open) return stream->accepts.park(std::move(irp));
  answer(*stream, 1, std::move(irp));
}

// Gives out the link of an end: the first time.
void StreamService::answer(Stream& stream, std::uint32_t end, io::IrpRef irp) {
  Stream::End& of = stream.ends[end];
  control::StreamOut out;
  out.stream = stream.number;
  out.offset = of.made->place().offset;
  out.end = end;
  out.local = of.shared->local;
  out.remote = of.shared->remote;
  if (!irp->set_output(out)) {
    return std::move(irp).fail(Status::InvalidParameter, "the answer has 72 bytes");
  }
  const io::Client& client = irp->file->client();
  if (stream.links[end].valid()) {
    irp->out_handles[0] = std::move(stream.links[end]);
    if (end == 1) of.program = program_of(client);
    if (end == 1) claim(stream);
  }
  table_.hold(stream, end, client.session);
  std::move(irp).complete(Status::Ok);
}

// The TCP connection is needed no more.
void StreamService::claim(Stream& stream) {
  stream.is_claimed = true;
  stream.watch.reset();
  parts_.host.reset(std::move(stream.tcp));
  table_.leave_names(stream);
}

void StreamService::open(io::IrpRef irp) {
  const auto in = irp->input<control::StreamNameIn>();
  if (!in) return std::move(irp).fail(Status::InvalidParameter, "Open takes 16 bytes of input");
  Stream* stream = table_.find(in->stream);
  // An end whose link nobody has been given is nobody's.
  if (stream == nullptr || stream->stage != Stage::Open || in->end > 1 ||
      stream->links[in->end].valid() || stream->ends[in->end].link_is_closed) {
    return std::move(irp).fail(Status::NotFound, "there is no such end of a stream");
  }
  answer(*stream, in->end, std::move(irp));
}

void StreamService::grow(io::IrpRef irp) {
  const auto in = irp->input<control::StreamNameIn>();
  if (!in) return std::move(irp).fail(Status::InvalidParameter, "Grow takes 16 bytes of input");
  Stream* stream = table_.find(in->stream);
  if (stream == nullptr || stream->stage != Stage::Open || in->end > 1) {
    return std::move(irp).fail(Status::NotFound, "there is no such end of a stream");
  }
  const auto complete = [](const Stream::End& of, io::IrpRef request) {
    const control::StreamRingOut out{of.made->ring().offset, control::kStreamLargeRing};
    if (!request->set_output(out)) {
      return std::move(request).fail(Status::InvalidParameter, "the answer has 16 bytes");
    }
    std::move(request).complete(Status::Ok);
  };
  Stream::End& end = stream->ends[in->end];
  if (end.has_ring) return complete(end, std::move(irp));
  end.growing.park(std::move(irp));
  if (std::exchange(end.is_growing, true)) return;
  end.made->grow([&end, complete](Status status) {
    end.is_growing = false;
    end.has_ring = status == Status::Ok;
    while (auto waiting = end.growing.take()) {
      if (status == Status::Ok) {
        complete(end, *std::move(waiting));
      } else {
        std::move(*waiting).fail(Status::InsufficientResources, end.made->reason());
      }
    }
  });
}

// --- what happens to them ---

void StreamService::on_refused_tcp(const StreamListeners::Key& listener) {
  listeners_.forget(listener);
}

// The first Accept gets the link; there are no others, unless a program accepts twice. Often it
// waits already: then TCP is needed no more.
void StreamService::on_made(Stream& stream) {
  io::IrpRef irp = *std::move(stream.connect);
  stream.connect.reset();
  answer(stream, 0, std::move(irp));
  while (auto waiting = stream.accepts.take()) {
    if (stream.links[1].valid()) {
      answer(stream, 1, *std::move(waiting));
    } else {
      std::move(*waiting).fail(Status::NotFound, "this connection was accepted already");
    }
  }
  if (stream.is_claimed) return;
  stream.watch =
      parts_.host.watch(stream.tcp, [this, number = stream.number] { on_tcp_ended(number); });
}

// The program goes on with TCP. The ends are unmade.
void StreamService::on_failed(Stream& stream, Status status, const std::string& reason) {
  if (stream.stage == Stage::Ending) return;
  stream.tcp.reset();  // a copy of the program's
  table_.leave_names(stream);
  stream.accepts.fail_all(Status::NotFound, "this connection stays TCP");
  if (stream.connect) {
    io::IrpRef irp = *std::move(stream.connect);
    stream.connect.reset();
    // Of TCP itself there is nothing to tell.
    if (status == Status::DeviceBusy || status == Status::IoError) {
      std::move(irp).fail(status, reason);
    } else {
      refuse(std::move(irp), status, stream.remote, parts_.fabric.nodes()[stream.server_node],
             reason);
    }
  }
  burial_.begin(stream, Duration::zero());
}

// Before it was accepted: the listener was closed, or somebody speaks TCP there.
void StreamService::on_tcp_ended(std::uint64_t number) {
  Stream* stream = table_.find(number);
  if (stream == nullptr || stream->is_claimed || stream->stage != Stage::Open) return;
  table_.leave_names(*stream);
  stream->watch.reset();
  stream->tcp.reset();
  burial_.break_stream(*stream);
  stream->links[1].reset();  // the client's hangs up
  stream->ends[1].link_is_closed = true;
  burial_.suspect(*stream, 1);
}

// The program that has accepted finds its connection reset, too.
void StreamService::on_foreign_accept(Stream& stream) {
  if (options_.on_refused) {
    const fabric::Node& peer = parts_.fabric.nodes()[stream.server_node];
    const StreamProgram& client = stream.ends[0].program;
    options_.on_refused(
        {fmt::format("TCP to {} is reset: the program of {} that has accepted it on port {} does "
                     "not use the socket switch",
                     text_of(stream.remote), peer.name, stream.remote.port),
         client.session, client.pid,
         parts_.fabric.node_of(*parts_.fabric.hca_of(*stream.way.from)).name, peer.name});
  }
  stream.watch.reset();
  parts_.host.reset(std::move(stream.tcp));
  on_tcp_ended(stream.number);
}

void StreamService::on_round() {
  maker_.look_at_time();
  for (Stream* stream : foreign_accepts_.look(parts_.system.executor.now())) {
    on_foreign_accept(*stream);
  }
}

void StreamService::on_process_ended(std::uint64_t session, std::uint32_t slot) {
  listeners_.on_session_ended(session);
  burial_.on_process_ended(session, slot);
}

void StreamService::on_gone(const fabric::Hca& hca) {
  std::vector<Stream*> there;
  for (const auto& [number, stream] : table_.all()) {
    if (stream->stage != Stage::Ending && is_at(*stream, parts_.fabric, hca)) {
      there.push_back(stream.get());
    }
  }
  for (Stream* stream : there) {
    if (stream->stage != Stage::Open) {
      on_failed(*stream, Status::DeviceRemoved, "an HCA was pulled out");
      continue;
    }
    burial_.break_stream(*stream);
    burial_.begin(*stream, kPatience);
  }
  hcas_.close(hca);
}

// In order if both sides are there to send and answer.
void StreamService::on_ending(Stream& stream, bool was_open) {
  const bool are_present = parts_.fabric.hca_of(*stream.way.from)->present &&
                           parts_.fabric.hca_of(*stream.way.to)->present;
  maker_.disconnect(stream, was_open && are_present && !is_closing_);
}

void StreamService::on_none_left() {
  if (!is_closing_ || on_closed_ == nullptr) return;
  hcas_.close_all([this, done = std::exchange(on_closed_, nullptr)] {
    burial_.stop();
    done();
  });
}

void StreamService::close(std::function<void()> done) {
  is_closing_ = true;
  on_closed_ = std::move(done);
  std::vector<Stream*> all;
  for (const auto& [number, stream] : table_.all()) all.push_back(stream.get());
  for (Stream* stream : all) {
    if (stream->stage == Stage::Open) {
      burial_.break_stream(*stream);
      burial_.begin(*stream, Duration::zero());
    } else {
      on_failed(*stream, Status::Disconnected, "softibd is going down");
    }
  }
  burial_.hurry();
  maker_.close();
  if (table_.is_empty()) on_none_left();
}

}  // namespace ib::services
