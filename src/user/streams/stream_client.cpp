// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A process at a fabric for its streams alone. A poster wants nothing of its process but time and
// patience, no memory of others, events or doorbells: all that a stream touches is device memory,
// or memory of the program that calls.
#include "user/streams/stream_client.h"

#include "base/buffers.h"

#include <array>
#include <utility>

namespace ib::user {

class StreamClient::Poster final : public hca::PosterHost {
 public:
  explicit Poster(platform::ClientHost& host) : host_(host) {}

  Instant now() override { return host_.now(); }
  void relax(std::uint32_t round) override { host_.relax(round); }
  platform::Barriers& barriers() override { return host_.barriers(); }
  platform::OwnCopy copy_own(void* to, const void* from, std::size_t n) override {
    return host_.copy_own(to, from, n);
  }
  bool is_accessible(const void* at, std::size_t n, bool write) override {
    return host_.is_accessible(at, n, write);
  }
  Status read_process(const platform::ProcessName& /*who*/, std::uint64_t /*from*/, void* /*to*/,
                      std::size_t /*n*/) override {
    return Status::NotSupported;
  }
  Status write_process(const platform::ProcessName& /*who*/, std::uint64_t /*to*/,
                       const void* /*from*/, std::size_t /*n*/) override {
    return Status::NotSupported;
  }
  std::byte* map_backing(std::uint32_t /*index*/, std::uint32_t /*generation*/,
                         std::uint64_t& /*size*/) override {
    return nullptr;
  }
  void kick(std::uint32_t /*slot*/) override {}
  void serve_bounces() override {}
  void notify(std::uint32_t /*cq*/) override {}
  void raise(const control::RaiseEventIn& /*event*/) override {}
  void trace(const control::TraceErrorIn& /*error*/) override {}

 private:
  platform::ClientHost& host_;
};

StreamClient::StreamClient(platform::ClientHost& host) : host_(host), connection_(host) {}

StreamClient::~StreamClient() = default;

Result<std::unique_ptr<StreamClient>> StreamClient::attach(platform::ClientHost& host,
                                                           const std::string& node,
                                                           const std::string& program) {
  std::unique_ptr<StreamClient> client(new StreamClient(host));
  std::string reason;
  const Status status = client->start(node, program, reason);
  if (status != Status::Ok) return failed(status, std::move(reason));
  return std::unique_ptr<StreamClient>(std::move(client));
}

Status StreamClient::start(const std::string& node, const std::string& program,
                           std::string& reason) {
  IB_CHECK(connection_.connect(reason));
  control::AttachOut out;
  IB_CHECK(mapping_.attach(host_, connection_, {node, program}, out, reason));
  poster_ = std::make_unique<Poster>(host_);
  plane_ =
      std::make_unique<hca::MemoryPlane>(mapping_.arena(), *poster_, out.slot, hca::Path::Auto);
  if (!plane_->valid()) {
    reason = "no room for the tables of this process (RLIMIT_DATA, `ulimit -d unlimited`)";
    return Status::InsufficientResources;
  }
  return Status::Ok;
}

Status StreamClient::listen(const control::StreamAddress& local) {
  const control::StreamListenIn in{local};
  const auto done =
      connection_.call(static_cast<control::Code>(control::StreamCode::Listen), 0, in);
  return done ? Status::Ok : done.error();
}

Status StreamClient::unlisten(const control::StreamAddress& local) {
  const control::StreamListenIn in{local};
  const auto done =
      connection_.call(static_cast<control::Code>(control::StreamCode::Unlisten), 0, in);
  return done ? Status::Ok : done.error();
}

Result<StreamClient::Opened> StreamClient::opened(control::StreamCode code,
                                                  std::span<const std::byte> in,
                                                  std::span<const int> handles) {
  Opened opened;
  platform::ControlReply reply =
      connection_.exchange(static_cast<control::Code>(code), 0, in,
                           std::as_writable_bytes(std::span(&opened.out, 1)), handles);
  if (reply.status != Status::Ok) return failed(reply.status, std::move(reply.reason));
  if (reply.out_size < sizeof opened.out) {
    return failed(Status::Malformed, "softibd's answer is too short");
  }
  auto end = streams::End::open(*plane_, opened.out);
  if (!end) return failed(end.error(), "device memory has no such end of a stream");
  opened.end = *std::move(end);
  opened.link = std::move(reply.handles[0]);
  return opened;
}

Result<StreamClient::Opened> StreamClient::connect(const control::StreamAddress& remote, int tcp) {
  const control::StreamConnectIn in{remote};
  const std::array<int, 1> handles{tcp};
  return opened(control::StreamCode::Connect, bytes_of(in), handles);
}

Result<StreamClient::Opened> StreamClient::accept(const control::StreamAddress& local,
                                                  const control::StreamAddress& remote) {
  const control::StreamAcceptIn in{local, remote};
  return opened(control::StreamCode::Accept, bytes_of(in), {});
}

Result<std::unique_ptr<streams::End>> StreamClient::open(std::uint64_t stream, std::uint32_t end) {
  const control::StreamNameIn in{stream, end, 0};
  auto found = opened(control::StreamCode::Open, bytes_of(in), {});
  if (!found) return found.error();
  return std::move(found->end);
}

Status StreamClient::grow(streams::End& end) {
  const control::StreamNameIn in{end.stream(), end.end(), 0};
  control::StreamRingOut out;
  const auto done =
      connection_.call_for(static_cast<control::Code>(control::StreamCode::Grow), 0, in, out);
  end.use_ring(done ? std::optional(out) : std::nullopt);
  return done ? Status::Ok : done.error();
}

}  // namespace ib::user
