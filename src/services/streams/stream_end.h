// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamEnd: what softibd makes for one end of a stream: a place in device memory, a completion
// queue, a queue pair; and how it goes.
//
//   make() -> (Init) -> connect() -> (Rts) -> unmake()
//
// The order of unmaking: the queue pair first, which waits for posters; then nobody touches the
// rest, and the place may get another stream.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "services/rdma_cm/addresses/path.h"
#include "services/streams/stream_hca.h"

#include <cstdint>
#include <functional>
#include <string>

namespace ib::services {

// classes: allow(members) objects, the buffers of a request, and what waits for it
class StreamEnd {
 public:
  explicit StreamEnd(StreamHca& hca) : hca_(hca) { hca.add_user(); }
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;
  ~StreamEnd();  // it is unmade

  // `then` is called at once or later; with an error reason() says why, and unmake() is next. Not
  // called any more after unmake().
  using Then = std::function<void(Status status)>;
  // The queue pair is in Init afterwards, on the port of `path`.
  void make(const rdma_cm::Path& path, Then then);
  struct Peer {
    std::uint32_t qpn = 0;
    std::uint32_t receive_psn = 0;  // the first one that comes
    std::uint32_t send_psn = 0;
  };
  void connect(const rdma_cm::Path& path, const Peer& peer, Then then);
  // Memory for a large ring. Once.
  void grow(Then then);
  // In any state. `then` may destroy this.
  void unmake(std::function<void()> then);

  StreamHca& hca() const { return hca_; }
  const std::string& reason() const { return reason_; }
  const StreamMemory::Place& place() const { return place_; }
  const StreamMemory::Place& ring() const { return ring_; }
  std::uint32_t qpn() const { return qp_.qpn; }
  const verbs::control::QpOut& queue_pair() const { return qp_; }
  const verbs::control::CqOut& completions() const { return cq_; }
  std::uint32_t qp_index() const { return verbs::control::index_of(qp_handle_); }
  std::uint32_t cq_index() const { return verbs::control::index_of(cq_handle_); }

 private:
  enum class Step : std::uint8_t {
    New,
    Placing,
    MakingCq,
    MakingQp,
    ToInit,
    Made,
    ToRtr,
    ToRts,
    Connected,
    DestroyingQp,
    DestroyingCq,
    Gone,
  };
  bool is_busy() const { return busy_; }
  io::IrpRef start();
  void on_place(Status status, const std::string& reason, const StreamMemory::Place& place);
  void on_done();
  void make_cq();
  void make_qp();
  void to_init();
  void to_rts();
  void finish(Status status);
  void destroy();

  StreamHca& hca_;
  Step step_ = Step::New;
  bool busy_ = false;     // a request, or the place, is under way
  bool growing_ = false;  // so is the ring
  bool is_unmade_ = false;
  io::Irp irp_;
  union {
    verbs::control::CreateCqIn cq_in_{};
    verbs::control::CreateQpIn qp_in_;
    verbs::control::ModifyQpIn modify_in_;
    verbs::control::IndexIn gone_in_;
  };
  verbs::control::ModifyQpOut modified_;
  verbs::control::CqOut cq_;
  verbs::control::QpOut qp_;
  std::uint32_t cq_handle_ = 0;
  std::uint32_t qp_handle_ = 0;
  std::uint16_t pkey_index_ = 0;
  std::uint8_t port_ = 1;
  std::uint32_t send_psn_ = 0;
  StreamMemory::Place place_;
  StreamMemory::Place ring_;
  std::string reason_;
  Then then_;
  std::function<void()> on_gone_;
};

}  // namespace ib::services
