// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "al/mad_qp.h"

#include "hca/requester/grh.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace ib::al {

namespace {

constexpr std::uint32_t kMostDepth = 4096;

}  // namespace

std::uint32_t MadQp::qpn() const {
  return verbs::is_special(options_.type) ? static_cast<std::uint32_t>(options_.type)
                                          : objects_.qp().made.qpn;
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
  refusal_ = {};
  step_ = Step::Pd;
  irp_.emplace(std::move(irp));
  advance();
}

void MadQp::advance() {
  if ((*irp_)->is_cancelled()) {
    refusal_ = {Status::Cancelled, "it was cancelled"};
    return retreat();
  }
  if (step_ == Step::Ready) return ready();
  objects_.begin(step_, *ca_, options_, request_.start(&advanced, this));
}

void MadQp::advanced(io::Irp& irp, void* context) {
  MadQp& self = *static_cast<MadQp*>(context);
  if (self.abandoned_) return self.retreat();
  if (irp.status == Status::Ok) {
    self.step_ = static_cast<Step>(static_cast<int>(self.step_) + 1);
    return self.advance();
  }
  self.refusal_ = {irp.status, irp.reason};
  self.retreat();
}

void MadQp::ready() {
  sends_.reset(options_.depth, options_.report_every);
  open_ = true;
  objects_.cq().on_completion = [this](Cq&) { take_completions(); };
  for (std::size_t slot = 0; slot < options_.depth; ++slot) {
    const Status posted = post(slot);
    IB_ASSERT(posted == Status::Ok);
  }
  arm(objects_.cq());
  io::IrpRef irp = std::move(*irp_);
  irp_.reset();
  std::move(irp).complete(Status::Ok);
}

void MadQp::close(io::IrpRef irp) {
  if (irp_) return std::move(irp).fail(Status::InvalidState, "this MAD queue pair is in use");
  if (!open_) return std::move(irp).complete(Status::Ok);
  open_ = false;
  refusal_ = {};
  irp_.emplace(std::move(irp));
  retreat();
}

void MadQp::abandon() {
  open_ = false;
  abandoned_ = true;
  if (irp_) {
    refusal_ = {Status::Cancelled, "its HCA is being closed"};
    request_.cancel();
    return;
  }
  objects_.forget();
}

// Destroys the objects that exist, newest first. None of it is refused: no other client has handles
// of these objects. An HCA that was pulled out still destroys them.
void MadQp::retreat() {
  if (!ca_->is_open() || abandoned_) objects_.forget();  // all went with it, or will
  objects_.destroy_newest(request_.start(&retreated, this));
}

void MadQp::retreated(io::Irp& irp, void* context) {
  MadQp& self = *static_cast<MadQp*>(context);
  const bool refused = irp.status != Status::Ok && !self.abandoned_;
  if (!refused && self.objects_.exist()) return self.retreat();
  io::IrpRef outer = std::move(*self.irp_);
  self.irp_.reset();
  if (refused) return std::move(outer).fail(irp.status, std::move(irp.reason));
  std::move(self.refusal_).end(std::move(outer));
}

Status MadQp::post(std::size_t slot) {
  const hca::Sge sge = objects_.buffer(options_, slot);
  return post_recv(objects_.qp(), slot, {&sge, 1});
}

Status MadQp::send(const MadAddress& to, std::span<const std::byte, kMadBytes> mad,
                   std::uint64_t context) {
  if (!open_) return Status::InvalidState;
  if (sends_.is_full()) return Status::LimitExceeded;
  const std::size_t slot = options_.depth + sends_.next();
  const hca::Sge sge = objects_.buffer(options_, slot);
  std::memcpy(objects_.bytes(sge), mad.data(), kMadBytes);
  hca::SendWqe wqe;
  wqe.wr_id = slot;
  if (sends_.is_next_reported()) wqe.flags = verbs::send_flag::kSignaled;
  wqe.sge = &sge;
  wqe.num_sge = 1;
  wqe.av.dlid = to.lid;
  wqe.av.sl = to.sl;
  wqe.av.src_path_bits = to.path_bits;
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
  const Status posted = post_send(objects_.qp(), wqe);
  if (posted == Status::Ok) sends_.push(context);
  return posted;
}

void MadQp::take_completions() {
  std::array<hca::Completion, 16> batch;
  while (open_) {
    const std::size_t count = poll(objects_.cq(), batch);
    if (count == 0) break;
    for (std::size_t i = 0; i < count && open_; ++i) {
      const hca::Completion& done = batch[i];
      done.wr_id < options_.depth ? received(done) : sent(done);
    }
  }
  if (open_) arm(objects_.cq());
}

// Those before it have been sent, too.
void MadQp::sent(const hca::Completion& completion) {
  const auto last = static_cast<std::uint32_t>(completion.wr_id) - options_.depth;
  bool is_last = false;
  while (open_ && !sends_.is_empty() && !is_last) {
    const std::uint32_t oldest = sends_.pop();
    is_last = oldest == last;
    if (on_sent_) {
      on_sent_(sends_.context_of(oldest), is_last ? completion.status : verbs::WcStatus::Success);
    }
  }
}

// Bytes that are no route header are left out, as a peer with access to device memory may write
// any.
MadAddress MadQp::source_of(const hca::Completion& completion, const std::byte* header) const {
  MadAddress from{completion.slid,       completion.sl, completion.src_qp,   0,
                  completion.pkey_index, std::nullopt,  completion.path_bits};
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
    const std::byte* const at = objects_.bytes(objects_.buffer(options_, slot));
    std::memcpy(mad.data(), at + verbs::kGrhBytes, kMadBytes);
    on_receive_(source_of(completion, at), mad);
  }
  // After an error the receive would only be flushed again.
  if (open_ && completion.status == verbs::WcStatus::Success) (void)post(slot);
}

}  // namespace ib::al
