// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations on the file of an HCA (control_matrix_ops_test.h).
#include "drivers/test/control_matrix_ops_test.h"
#include "hca/layout/first_use.h"

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

namespace a = verbs::qp_attr;
using verbs::QpState;
using verbs::QpType;

using W = MatrixWorld;
using Made = std::unique_ptr<Call>;

Made by_index(std::uint32_t index) {
  return call_of(IndexIn{index, 0});
}

std::uint32_t make_mr(W& w) {
  return w.p.good(w.p.mr(w.p.pd()));
}

std::uint32_t make_dm(W& w) {
  return w.p.good(w.p.call<DmOut>(Code::AllocDm, AllocDmIn{4096, 0, 0}));
}

// For kernel clients only.
Made of_kernel(Made call) {
  call->mode = io::RequestorMode::Kernel;
  return call;
}

Made physical(W& w, std::uint32_t region, std::uint32_t dm = kNoIndex) {
  PhysicalIn in;
  in.pd = w.p.pd();
  in.access = 1;
  in.iova = 0x10000;
  in.dm = dm;
  in.count = 2;
  in.region = region;
  in.ranges[0] = {2048, 1024};
  in.ranges[1] = {0, 1024};
  return of_kernel(call_of<MrOut>(in));
}

CreateAhIn ah_in(W& w) {
  CreateAhIn in;
  in.pd = w.p.pd();
  in.av.dlid = 3;
  in.av.port = 1;
  return in;
}

std::uint32_t make_xrcd(W& w) {
  return w.p.good(w.p.call(Code::OpenXrcd, OpenXrcdIn{0, 0, 1, 0}));
}

CreateSrqIn srq_in(W& w) {
  CreateSrqIn in;
  in.pd = w.p.pd();
  in.max_wr = 100;
  in.max_sge = 3;
  return in;
}

// Two completion queues with one producer each: no wait for posters.
CreateQpIn lone_qp_in(W& w) {
  CreateQpIn in = w.p.qp_in(QpType::Rc, w.p.pd(), w.p.cq());
  in.recv_cq = w.p.cq();
  return in;
}

// Nobody but this one has to be told that there will be others.
std::uint32_t cq_with_a_producer(W& w) {
  const CreateQpIn in = lone_qp_in(w);
  w.p.good(w.p.call<QpOut>(Code::CreateQp, in));
  return in.send_cq;
}

// Its queue pairs make completions too, so the completion queue has several producers.
CreateSrqIn xrc_srq_in(W& w) {
  CreateSrqIn in = srq_in(w);
  in.type = verbs::SrqType::Xrc;
  in.xrcd = make_xrcd(w);
  in.cq = cq_with_a_producer(w);
  return in;
}

std::uint32_t make_srq(W& w) {
  return w.p.good(w.p.call<SrqOut>(Code::CreateSrq, srq_in(w)));
}

Made special_qp(W& w) {
  CreateQpIn in = lone_qp_in(w);
  in.recv_cq = cq_with_a_producer(w);
  in.type = QpType::Gsi;
  in.port = 1;
  return of_kernel(call_of<QpOut>(in));
}

// One that has been used.
std::uint32_t make_qp(W& w, QpType type = QpType::Rc) {
  const std::uint32_t made = w.p.good(w.p.qp(type, w.p.pd(), w.p.cq()));
  hca::begin_use(*w.core().arena().qp(index_of(made)));
  return made;
}

Made modify_qp(std::uint32_t qp, QpState to, std::uint32_t mask) {
  ModifyQpIn in{qp, mask | a::kState, {}};
  in.attr.state = to;
  in.attr.port = 1;
  return call_of<ModifyQpOut>(in);
}

constexpr std::uint32_t kToInit = a::kPort | a::kPkeyIndex | a::kAccessFlags;

Made modify_from_init(W& w, QpState to) {
  const std::uint32_t qp = make_qp(w);
  QpAttr attr;
  attr.port = 1;
  w.p.good(w.p.modify(qp, QpState::Init, kToInit, attr));
  return modify_qp(qp, to, 0);
}

Made open_qp(W& w) {
  CreateQpIn in;
  in.type = QpType::XrcRecv;
  in.xrcd = make_xrcd(w);
  const auto made = w.p.call<QpOut>(Code::CreateQp, in);
  w.p.good(made);
  return call_of<QpOut>(OpenQpIn{in.xrcd, made.out.qpn, 5});
}

McastIn mcast_in(W& w) {
  McastIn in{make_qp(w, QpType::Ud), 0xc001, 0, {}};
  in.mgid[0] = 0xff;
  return in;
}

Made detach_mcast(W& w) {
  const McastIn in = mcast_in(w);
  w.p.good(w.p.call(Code::AttachMcast, in));
  return call_of(in);
}

Made open_hca(W& w) {
  auto call = call_of<OpenOut>(Nothing{});
  call->major = io::Major::Create;
  call->opened =
      std::make_unique<io::FileObject>(w.p.file().device(), 2, w.p.zero().client(), &w.p.zero());
  call->file = call->opened.get();
  return call;
}

Made close_hca(W& w) {
  make_qp(w);
  auto call = call_of(Nothing{});
  call->major = io::Major::Close;
  return call;
}

Made rereg_mr(W& w) {
  ReregMrIn in{make_mr(w), 4, {}};
  in.to.access = verbs::access::kLocalWrite | verbs::access::kRemoteWrite;
  return call_of<MrOut>(in);
}

constexpr Op kOperations[] = {
    {Code::Open, "Open (Create)", open_hca},
    {Code::Close, "Close", close_hca},
    {Code::QueryCa, "QueryCa", [](W&) { return call_of<CaAttr>(Nothing{}); }},
    {Code::QueryPort, "QueryPort",
     [](W&) {
       return call_of<PortAttr>(PortIn{1, 0});
     }},
    {Code::ModifyPort, "ModifyPort",
     [](W&) {
       return call_of(ModifyPortIn{1, 1u << 16, 0, 0});
     }},
    {Code::QueryGid, "QueryGid",
     [](W&) {
       return call_of<GidOut>(TableIn{1, 0});
     }},
    {Code::QueryPkey, "QueryPkey",
     [](W&) {
       return call_of<PkeyOut>(TableIn{1, 0});
     }},
    {Code::LocalMad, "LocalMad",
     [](W&) {
       return call_of<MadOut>(MadIn{1, 0, {1, 1, 1, 1}});
     }},
    {Code::AllocPd, "AllocPd", [](W&) { return call_of(Nothing{}); }},
    {Code::DeallocPd, "DeallocPd", [](W& w) { return by_index(w.p.pd()); }},
    {Code::RegMr, "RegMr",
     [](W& w) {
       return call_of<MrOut>(RegMrIn{w.p.pd(), 1, 0x10000, 4096, 0x10000, kNoIndex, 0});
     }},
    {Code::ReregMr, "ReregMr", rereg_mr},
    {Code::RegPhysical, "RegPhysical", [](W& w) { return physical(w, kNoIndex); }},
    {Code::RegPhysical, "RegPhysical (device memory)",
     [](W& w) { return physical(w, kNoIndex, make_dm(w)); }},
    {Code::ReregPhysical, "ReregPhysical", [](W& w) { return physical(w, make_mr(w)); }},
    {Code::DeregMr, "DeregMr", [](W& w) { return by_index(make_mr(w)); }},
    {Code::AllocMw, "AllocMw",
     [](W& w) {
       return call_of<MrOut>(AllocMwIn{w.p.pd(), 2});
     }},
    {Code::DeallocMw, "DeallocMw",
     [](W& w) {
       return by_index(w.p.good(w.p.call<MrOut>(Code::AllocMw, AllocMwIn{w.p.pd(), 2})));
     }},
    {Code::AllocDm, "AllocDm",
     [](W&) {
       return call_of<DmOut>(AllocDmIn{10000, 12, 0});
     }},
    {Code::FreeDm, "FreeDm", [](W& w) { return by_index(make_dm(w)); }},
    {Code::QueryMr, "QueryMr",
     [](W& w) {
       return call_of<MrOut>(IndexIn{make_mr(w), 0});
     }},
    {Code::CreateAh, "CreateAh", [](W& w) { return call_of(ah_in(w)); }},
    {Code::DestroyAh, "DestroyAh",
     [](W& w) { return by_index(w.p.good(w.p.call(Code::CreateAh, ah_in(w)))); }},
    {Code::CreateCq, "CreateCq",
     [](W&) {
       return call_of<CqOut>(CreateCqIn{10, kNoIndex, 0, 0, 77});
     }},
    {Code::ResizeCq, "ResizeCq",
     [](W& w) {
       return call_of<CqOut>(ResizeCqIn{w.p.cq(), 100});
     }},
    {Code::DestroyCq, "DestroyCq", [](W& w) { return by_index(w.p.cq()); }},
    {Code::OpenXrcd, "OpenXrcd",
     [](W&) {
       return call_of(OpenXrcdIn{0, 0, 1, 0});
     }},
    {Code::CloseXrcd, "CloseXrcd", [](W& w) { return by_index(make_xrcd(w)); }},
    {Code::CreateSrq, "CreateSrq", [](W& w) { return call_of<SrqOut>(srq_in(w)); }},
    {Code::CreateSrq, "CreateSrq (XRC)", [](W& w) { return call_of<SrqOut>(xrc_srq_in(w)); }},
    {Code::ModifySrq, "ModifySrq",
     [](W& w) {
       return call_of<SrqOut>(ModifySrqIn{make_srq(w), 2, 0, 7});
     }},
    {Code::QuerySrq, "QuerySrq",
     [](W& w) {
       return call_of<SrqOut>(IndexIn{make_srq(w), 0});
     }},
    {Code::DestroySrq, "DestroySrq", [](W& w) { return by_index(make_srq(w)); }},
    {Code::CreateQp, "CreateQp", [](W& w) { return call_of<QpOut>(lone_qp_in(w)); }},
    {Code::CreateQp, "CreateQp (GSI)", special_qp},
    {Code::CreateQp, "CreateQp (shared CQ)",
     [](W& w) { return call_of<QpOut>(w.p.qp_in(QpType::Rc, w.p.pd(), cq_with_a_producer(w))); }},
    {Code::OpenQp, "OpenQp", open_qp},
    {Code::ModifyQp, "ModifyQp (Init)",
     [](W& w) { return modify_qp(make_qp(w), QpState::Init, kToInit); }},
    {Code::ModifyQp, "ModifyQp (Error)", [](W& w) { return modify_from_init(w, QpState::Error); }},
    {Code::ModifyQp, "ModifyQp (Reset)", [](W& w) { return modify_from_init(w, QpState::Reset); }},
    {Code::QueryQp, "QueryQp",
     [](W& w) {
       return call_of<QueryQpOut>(IndexIn{make_qp(w), 0});
     }},
    {Code::DestroyQp, "DestroyQp", [](W& w) { return by_index(make_qp(w)); }},
    {Code::AttachMcast, "AttachMcast", [](W& w) { return call_of(mcast_in(w)); }},
    {Code::DetachMcast, "DetachMcast", detach_mcast},
};

}  // namespace

std::span<const Op> hca_operations() {
  return kOperations;
}

}  // namespace ib::drivers::test
