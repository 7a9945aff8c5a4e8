// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Shared receive queues, basic and XRC.
#include "host_abi/provider/abi/convert.h"
#include "host_abi/provider/ops.h"
#include "host_abi/provider/post_refusal.h"

namespace ib::host_abi {

namespace {

constexpr std::uint32_t kAlwaysInMask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;

Srq* make_srq(ibv_pd* ibpd, user::SrqOptions options, ibv_srq_attr& attr, const char* verb) {
  if (check_whole(verb, pd_of(ibpd)) != 0) return nullptr;
  DeviceFile& file = file_of(ibpd->context);
  EventHub& events = Runtime::instance().events();
  auto srq = std::make_unique<Srq>();
  srq->cookie = events.add(static_cast<ibv_srq*>(srq.get()), &file.async);
  srq->type = options.type;
  options.pd = pd_of(ibpd).engine.get();
  options.max_wr = attr.max_wr;
  options.max_sge = attr.max_sge;
  options.limit = attr.srq_limit;
  options.cookie = srq->cookie;
  auto engine = file.hca->create_srq(options);
  if (!engine) {
    static_cast<void>(events.remove(srq->cookie));
    return fail_null(verb, engine.error());
  }
  srq->engine = *std::move(engine);
  srq->domain.begin(pd_of(ibpd));
  srq->context = ibpd->context;
  srq->pd = ibpd;
  srq->handle = srq->engine->handle();
  attr.max_wr = srq->engine->max_wr();
  attr.max_sge = srq->engine->max_sge();
  return seal(srq.release());
}

}  // namespace

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  return guarded("ibv_create_srq", static_cast<ibv_srq*>(nullptr),
                 [&]() -> ibv_srq* { return make_srq(pd, {}, attr->attr, "ibv_create_srq"); });
}

// libibverbs calls this only for queues that ibv_create_srq cannot make, and leaves all
// initialisation to the plug-in.
ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex* attr) {
  constexpr const char* kVerb = "ibv_create_srq_ex";
  const ibv_srq_type type =
      (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 ? attr->srq_type : IBV_SRQT_BASIC;
  if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC) {
    return fail_null(kVerb, EOPNOTSUPP, "only basic and XRC SRQs exist (no tag matching)");
  }
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    return fail_null(kVerb, EINVAL, "a protection domain must be given");
  }
  constexpr std::uint32_t kXrcMask = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  const std::uint32_t known = kAlwaysInMask | (type == IBV_SRQT_XRC ? kXrcMask : 0u);
  if ((attr->comp_mask & ~known) != 0) {
    return fail_null(kVerb, EOPNOTSUPP, "comp_mask has bits that this type of SRQ does not use");
  }
  user::SrqOptions options;
  options.type = static_cast<verbs::SrqType>(type);
  if (type == IBV_SRQT_XRC) {
    if ((attr->comp_mask & kXrcMask) != kXrcMask || attr->xrcd == nullptr || attr->cq == nullptr) {
      return fail_null(kVerb, EINVAL, "an XRC SRQ needs an XRC domain and a completion queue");
    }
    if (check_whole(kVerb, xrcd_of(attr->xrcd)) != 0 || check_whole(kVerb, cq_of(attr->cq)) != 0) {
      return nullptr;
    }
    options.xrcd = xrcd_of(attr->xrcd).engine.get();
    options.cq = cq_of(attr->cq).engine.get();
  }
  return guarded(kVerb, static_cast<ibv_srq*>(nullptr), [&]() -> ibv_srq* {
    Srq* srq = make_srq(attr->pd, options, attr->attr, kVerb);
    if (srq == nullptr) return nullptr;
    srq->srq_context = attr->srq_context;
    ::pthread_mutex_init(&srq->mutex, nullptr);
    ::pthread_cond_init(&srq->cond, nullptr);
    return srq;
  });
}

int modify_srq(ibv_srq* ibsrq, ibv_srq_attr* attr, int mask) {
  return guarded_int("ibv_modify_srq", [&] {
    Srq& srq = srq_of(ibsrq);
    if (const int error = check_whole("ibv_modify_srq", srq)) return error;
    control::ModifySrqIn in;
    in.index = srq.engine->handle();
    in.mask = static_cast<std::uint32_t>(mask);
    in.max_wr = attr->max_wr;
    in.limit = attr->srq_limit;
    return done("ibv_modify_srq", srq.engine->modify(in).error());
  });
}

int query_srq(ibv_srq* ibsrq, ibv_srq_attr* attr) {
  return guarded_int("ibv_query_srq", [&] {
    if (const int error = check_whole("ibv_query_srq", srq_of(ibsrq))) return error;
    const auto got = srq_of(ibsrq).engine->query();
    if (!got) return fail("ibv_query_srq", got.error());
    attr->max_wr = got->max_wr;
    attr->max_sge = got->max_sge;
    attr->srq_limit = got->limit;
    return 0;
  });
}

int destroy_srq(ibv_srq* ibsrq) {
  return guarded_int("ibv_destroy_srq", [&] {
    Srq& srq = srq_of(ibsrq);
    if (const int error = check_whole("ibv_destroy_srq", srq)) return error;
    const Status status = destroy_engine(srq);
    if (status != Status::Ok) return fail("ibv_destroy_srq", status);
    if (!inherited(srq)) {
      const auto delivered = Runtime::instance().events().remove(srq.cookie);
      wait_acknowledged(srq.mutex, srq.cond, srq.events_completed, delivered.async);
    }
    drop(&srq);
    return 0;
  });
}

int get_srq_num(ibv_srq* ibsrq, std::uint32_t* number) {
  const Srq& srq = srq_of(ibsrq);
  if (srq.type != verbs::SrqType::Xrc) {
    return fail("ibv_get_srq_num", EOPNOTSUPP, "only XRC SRQs have a number");
  }
  *number = srq.engine->srqn();
  return 0;
}

int post_srq_recv(ibv_srq* ibsrq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  user::SharedReceiveQueue& engine = *srq_of(ibsrq).engine;
  for (; wr != nullptr; wr = wr->next) {
    Status status = Status::InvalidParameter;
    if (wr->num_sge >= 0) status = engine.post_recv(wr->wr_id, to_sges(wr->sg_list, wr->num_sge));
    if (status == Status::Ok) continue;
    if (bad != nullptr) *bad = wr;
    tell_refusal(srq_of(ibsrq), *wr, status);
    return fail("ibv_post_srq_recv", errno_of_posting(status), status_text(status));
  }
  return 0;
}

}  // namespace ib::host_abi
