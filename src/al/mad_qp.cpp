// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "al/mad_qp.h"

#include "hca/requester/grh.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

namespace ib::al {

using verbs::QpState;
using verbs::QpType;
namespace attr = verbs::qp_attr;

namespace {

constexpr std::uint32_t kMostDepth = 4096;

// Room for any message: queue pairs 0 and 1 get MADs and nothing else, but any client may send any
// message to one of UD, and one that does not fit would break it.
std::uint32_t receive_room(QpType type) {
  return verbs::kGrhBytes + (type == QpType::Ud ? 4096 : kMadBytes);
}

}  // namespace

// Buffers 0 .. depth - 1 are for receives, the others for sends.
hca::Sge MadQp::buffer(std::size_t slot) const {
  const std::uint32_t room = receive_room(options_.type);
  const std::uint64_t receives = std::min<std::uint64_t>(slot, options_.depth);
  const std::uint64_t sends = slot - receives;
  const bool of_send = slot >= options_.depth;
  return {receives * room + sends * kMadBytes, of_send ? kMadBytes : room, region_.made.lkey};
}

std::uint32_t MadQp::qpn() const {
  return verbs::is_special(options_.type) ? static_cast<std::uint32_t>(options_.type)
                                          : qp_.made.qpn;
}

void MadQp::open(Ca& ca, const Options& options, io::IrpRef irp) {
  if (irp_ || open_) {
    return std::move(irp).fail(Status::InvalidState, "this MAD queue pair is in use");
  }
  if (!verbs::is_datagram(options.type) || options.depth == 0 || options.depth > kMostDepth ||
      options.report_every == 0 || options.report_every > options.depth) {
    return std::move(irp).fail(
        Status::InvalidParameter,
        fmt::format("a MAD queue pair is of type SMI, GSI or UD, has a depth of 1 to {}, and "
                    "reports every MAD that it sends, or every so manieth up to its depth",
                    kMostDepth));
  }
  ca_ = &ca;
  options_ = options;
  abandoned_ = false;
  refusal_ = Status::Ok;
  step_ = Step::Pd;
  irp_.emplace(std::move(irp));
  advance();
}

void MadQp::advance() {
  if ((*irp_)->is_cancelled()) {
    refusal_ = Status::Cancelled;
    refusal_reason_ = "it was cancelled";
    return retreat();
  }
  if (step_ == Step::Ready) return ready();
  begin(step_, request_.start(&advanced, this));
}

void MadQp::begin(Step step, io::IrpRef irp) {
  switch (step) {
    case Step::Pd: return alloc_pd(*ca_, pd_, std::move(irp));
    case Step::Memory:
      room_ = {std::uint64_t{receive_room(options_.type) + kMadBytes} * options_.depth, 6, 0};
      return alloc_dm(*ca_, room_, memory_, std::move(irp));
    case Step::Region:
      return reg_dm(pd_, memory_, verbs::access::kLocalWrite, region_, std::move(irp));
    case Step::Cq: return create_cq(*ca_, 2 * options_.depth, cq_, std::move(irp));
    case Step::Qp: {
      const control::QpCaps caps{options_.depth, options_.depth, 1, 1, 0, 0};
      if (options_.type == QpType::Ud) {
        return create_qp(pd_, QpType::Ud, caps, cq_, cq_, qp_, std::move(irp));
      }
      return create_special_qp(pd_, options_.type, options_.port, caps, cq_, cq_, qp_,
                               std::move(irp));
    }
    case Step::Init: {
      attr_ = {};
      attr_.port = static_cast<std::uint8_t>(options_.port);
      attr_.qkey = options_.type == QpType::Smi ? 0 : verbs::kGsiQkey;
      const std::uint32_t port = options_.type == QpType::Ud ? attr::kPort : 0;
      return modify(QpState::Init, attr::kPkeyIndex | attr::kQkey | port, std::move(irp));
    }
    case Step::Rtr: return modify(QpState::Rtr, 0, std::move(irp));
    case Step::Rts: return modify(QpState::Rts, attr::kSqPsn, std::move(irp));
    case Step::Ready: break;
  }
  IB_ASSERT(false);
}

void MadQp::modify(QpState state, std::uint32_t mask, io::IrpRef irp) {
  attr_.state = state;
  modify_qp(qp_, attr::kState | mask, attr_, std::move(irp));
}

void MadQp::advanced(io::Irp& irp, void* context) {
  MadQp& self = *static_cast<MadQp*>(context);
  if (self.abandoned_) return self.retreat();
  if (irp.status == Status::Ok) {
    self.step_ = static_cast<Step>(static_cast<int>(self.step_) + 1);
    return self.advance();
  }
  self.refusal_ = irp.status;
  self.refusal_reason_ = irp.reason;
  self.retreat();
}

void MadQp::ready() {
  contexts_.assign(options_.depth, 0);
  next_send_ = on_their_way_ = unreported_ = 0;
  open_ = true;
  cq_.on_completion = [this](Cq&) { take_completions(); };
  for (std::size_t slot = 0; slot < options_.depth; ++slot) {
    const Status posted = post(slot);
    IB_ASSERT(posted == Status::Ok);
  }
  arm(cq_);
  io::IrpRef irp = std::move(*irp_);
  irp_.reset();
  std::move(irp).complete(Status::Ok);
}

void MadQp::close(io::IrpRef irp) {
  if (irp_) return std::move(irp).fail(Status::InvalidState, "this MAD queue pair is in use");
  if (!open_) return std::move(irp).complete(Status::Ok);
  open_ = false;
  refusal_ = Status::Ok;
  irp_.emplace(std::move(irp));
  retreat();
}

void MadQp::abandon() {
  open_ = false;
  abandoned_ = true;
  if (irp_) {
    refusal_ = Status::Cancelled;
    refusal_reason_ = "its HCA is being closed";
    request_.cancel();
    return;
  }
  for (Object* object : std::initializer_list<Object*>{&qp_, &cq_, &region_, &memory_, &pd_}) {
    object->handle = control::kNoIndex;
  }
}

// Destroys the objects that exist, newest first. None of it is refused: no other client has handles
// of these objects. An HCA that was pulled out still destroys them.
void MadQp::retreat() {
  if (!ca_->is_open() || abandoned_) {  // all went with it, or will
    for (Object* object : std::initializer_list<Object*>{&qp_, &cq_, &region_, &memory_, &pd_}) {
      object->handle = control::kNoIndex;
    }
  }
  io::IrpRef request = request_.start(&retreated, this);
  if (qp_.exists()) return destroy(qp_, std::move(request));
  if (cq_.exists()) return destroy(cq_, std::move(request));
  if (region_.exists()) return destroy(region_, std::move(request));
  if (memory_.exists()) return destroy(memory_, std::move(request));
  if (pd_.exists()) return destroy(pd_, std::move(request));
  std::move(request).complete(Status::NotFound);
}

void MadQp::retreated(io::Irp& irp, void* context) {
  MadQp& self = *static_cast<MadQp*>(context);
  if (irp.status == Status::Ok || (self.abandoned_ && irp.status != Status::NotFound)) {
    return self.retreat();
  }
  io::IrpRef outer = std::move(*self.irp_);
  self.irp_.reset();
  if (irp.status != Status::NotFound) {
    return std::move(outer).fail(irp.status, std::move(irp.reason));
  }
  if (self.refusal_ == Status::Ok) return std::move(outer).complete(Status::Ok);
  std::move(outer).fail(self.refusal_, std::move(self.refusal_reason_));
}

Status MadQp::post(std::size_t slot) {
  const hca::Sge sge = buffer(slot);
  return post_recv(qp_, slot, {&sge, 1});
}

Status MadQp::send(const MadAddress& to, std::span<const std::byte, kMadBytes> mad,
                   std::uint64_t context) {
  if (!open_) return Status::InvalidState;
  if (on_their_way_ == options_.depth) return Status::LimitExceeded;
  const std::size_t slot = options_.depth + next_send_;
  const hca::Sge sge = buffer(slot);
  std::memcpy(memory_.bytes + sge.address, mad.data(), kMadBytes);
  hca::SendWqe wqe;
  wqe.wr_id = slot;
  const bool is_reported = unreported_ + 1 >= options_.report_every;
  if (is_reported) wqe.flags = verbs::send_flag::kSignaled;
  wqe.sge = &sge;
  wqe.num_sge = 1;
  wqe.av.dlid = to.lid;
  wqe.av.sl = to.sl;
  wqe.av.port = static_cast<std::uint8_t>(options_.port);
  if (to.route) {
    wqe.av.is_global = 1;
    wqe.av.dgid = to.route->gid;
    wqe.av.sgid_index = to.route->sgid_index;
    wqe.av.hop_limit = to.route->hop_limit;
    wqe.av.traffic_class = to.route->traffic_class;
    wqe.av.flow_label = to.route->flow_label;
  }
  wqe.remote_qpn = to.qpn;
  wqe.remote_qkey = to.qkey;
  wqe.pkey_index = to.pkey_index;
  const Status posted = post_send(qp_, wqe);
  if (posted != Status::Ok) return posted;
  contexts_[next_send_] = context;
  next_send_ = (next_send_ + 1) % options_.depth;
  ++on_their_way_;
  unreported_ = is_reported ? 0 : unreported_ + 1;
  return Status::Ok;
}

void MadQp::take_completions() {
  std::array<hca::Completion, 16> batch;
  while (open_) {
    const std::size_t count = poll(cq_, batch);
    if (count == 0) break;
    for (std::size_t i = 0; i < count && open_; ++i) {
      const hca::Completion& done = batch[i];
      done.wr_id < options_.depth ? received(done) : sent(done);
    }
  }
  if (open_) arm(cq_);
}

// Those before it have been sent, too.
void MadQp::sent(const hca::Completion& completion) {
  const auto last = static_cast<std::uint32_t>(completion.wr_id) - options_.depth;
  bool is_last = false;
  while (open_ && on_their_way_ > 0 && !is_last) {
    const std::uint32_t oldest = (next_send_ + options_.depth - on_their_way_) % options_.depth;
    is_last = oldest == last;
    --on_their_way_;
    if (on_sent_) {
      on_sent_(contexts_[oldest], is_last ? completion.status : verbs::WcStatus::Success);
    }
  }
}

// Bytes that are no route header are left out, as a peer with access to device memory may write
// any.
MadAddress MadQp::source_of(const hca::Completion& completion, const std::byte* header) const {
  MadAddress from{completion.slid,       completion.sl, completion.src_qp, 0,
                  completion.pkey_index, std::nullopt};
  if ((completion.flags & verbs::wc_flag::kGrh) == 0) return from;
  hca::RouteHeader copy;
  std::memcpy(copy.data(), header, copy.size());
  const hca::PortEntry* port =
      ca_->al().system().arena.port(ca_->info().first_port + options_.port - 1);
  const auto layer = port->link_layer.load(std::memory_order_relaxed);
  if (layer == verbs::LinkLayer::Ethernet) from.sl = 0;  // there it tells the kind of packet
  const auto route = hca::read_route(copy, layer);
  if (!route) return from;
  from.route.emplace();
  from.route->gid = route->source;
  from.route->traffic_class = route->traffic_class;
  from.route->flow_label = route->flow_label;
  for (std::size_t i = 0; i < port->gids.size(); ++i) {
    if (verbs::Gid(port->gids[i]) == route->destination) {
      from.route->sgid_index = static_cast<std::uint8_t>(i);
    }
  }
  return from;
}

void MadQp::received(const hca::Completion& completion) {
  const auto slot = static_cast<std::size_t>(completion.wr_id);
  const bool whole = completion.status == verbs::WcStatus::Success &&
                     completion.byte_len == verbs::kGrhBytes + kMadBytes;
  if (whole && on_receive_) {
    // Peers may write to device memory: what is looked at must not change.
    std::array<std::byte, kMadBytes> mad;
    const std::byte* const at = memory_.bytes + buffer(slot).address;
    std::memcpy(mad.data(), at + verbs::kGrhBytes, kMadBytes);
    on_receive_(source_of(completion, at), mad);
  }
  // After an error the receive would only be flushed again.
  if (open_ && completion.status == verbs::WcStatus::Success) (void)post(slot);
}

}  // namespace ib::al
