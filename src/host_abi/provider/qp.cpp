// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Creating, opening and destroying queue pairs. libibverbs leaves all initialisation of an ibv_qp
// to the plug-in.
#include "host_abi/provider/abi/convert.h"
#include "host_abi/provider/ops.h"

namespace ib::host_abi {

namespace {

bool has_type(ibv_qp_type type) {
  return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD ||
         type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

void init_public_part(Qp& qp, ibv_context* context, void* qp_context, ibv_qp_type type) {
  qp.qp.context = context;
  qp.qp.qp_context = qp_context;
  qp.qp.handle = qp.engine->handle();
  qp.qp.qp_num = qp.engine->qpn();
  qp.qp.qp_type = type;
  qp.qp.state = static_cast<ibv_qp_state>(qp.engine->state());
  ::pthread_mutex_init(&qp.qp.mutex, nullptr);
  ::pthread_cond_init(&qp.qp.cond, nullptr);
}

// Returns whether the objects that the queue pair uses are undamaged.
bool parts_are_whole(const ibv_qp_init_attr_ex& attr, const char* verb) {
  if (attr.qp_type == IBV_QPT_XRC_RECV) return check_whole(verb, xrcd_of(attr.xrcd)) == 0;
  return check_whole(verb, pd_of(attr.pd)) == 0 && check_whole(verb, cq_of(attr.send_cq)) == 0 &&
         (attr.recv_cq == nullptr || check_whole(verb, cq_of(attr.recv_cq)) == 0) &&
         (attr.srq == nullptr || check_whole(verb, srq_of(attr.srq)) == 0);
}

// Returns the reason why the attributes cannot be used, or null. The engine checks limits.
const char* refusal(const ibv_qp_init_attr_ex& attr, int& error) {
  constexpr std::uint32_t kMask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                                  IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  error = EOPNOTSUPP;
  if (!has_type(attr.qp_type)) return "queue pairs are of type RC, UC, UD, XRC_SEND or XRC_RECV";
  if ((attr.comp_mask & ~kMask) != 0) return "comp_mask asks for TSO, RSS or something unknown";
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 &&
      (attr.create_flags & ~static_cast<std::uint32_t>(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)) != 0) {
    return "create_flags: only BLOCK_SELF_MCAST_LB is known";
  }
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 &&
      check_send_ops(attr.qp_type, attr.send_ops_flags) != 0) {
    return "send_ops_flags asks for an operation that this type of QP does not have";
  }
  error = EINVAL;
  const bool receives_xrc = attr.qp_type == IBV_QPT_XRC_RECV;
  const bool has_pd = (attr.comp_mask & IBV_QP_INIT_ATTR_PD) != 0 && attr.pd != nullptr;
  const bool has_xrcd = (attr.comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && attr.xrcd != nullptr;
  if (receives_xrc && !has_xrcd) return "an XRC_RECV QP needs an XRC domain";
  if (!receives_xrc && !has_pd) return "a protection domain must be given";
  if (!receives_xrc && attr.send_cq == nullptr) return "a send CQ must be given";
  const bool receives =
      attr.qp_type == IBV_QPT_RC || attr.qp_type == IBV_QPT_UC || attr.qp_type == IBV_QPT_UD;
  if (receives && attr.recv_cq == nullptr) return "a receive CQ must be given";
  return nullptr;
}

user::QpOptions to_options(const ibv_qp_init_attr_ex& attr) {
  user::QpOptions options;
  options.type = static_cast<verbs::QpType>(attr.qp_type);
  const bool receives_xrc = attr.qp_type == IBV_QPT_XRC_RECV;
  if (receives_xrc) {
    options.xrcd = xrcd_of(attr.xrcd).engine.get();
    return options;  // it has no queues of its own [IBA1 Annex A14]
  }
  const Pd& pd = pd_of(attr.pd);
  options.pd = pd.engine.get();
  options.single_threaded = pd.td != nullptr;
  options.send_cq = cq_of(attr.send_cq).engine.get();
  if (attr.recv_cq != nullptr) options.recv_cq = cq_of(attr.recv_cq).engine.get();
  if (attr.srq != nullptr) options.srq = srq_of(attr.srq).engine.get();
  options.caps = to_caps(attr.cap);
  options.signal_all = attr.sq_sig_all != 0;
  const bool flags = (attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0;
  if (flags && (attr.create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) != 0) {
    options.flags = verbs::control::qp_flag::kBlockLoopback;
  }
  return options;
}

Qp* make_qp(ibv_context* context, ibv_qp_init_attr_ex& attr, const char* verb) {
  int error = 0;
  if (const char* reason = refusal(attr, error)) return fail_null(verb, error, reason);
  if (!parts_are_whole(attr, verb)) return nullptr;
  DeviceFile& file = file_of(context);
  EventHub& events = Runtime::instance().events();
  auto qp = std::make_unique<Qp>();
  user::QpOptions options = to_options(attr);
  qp->cookie = events.add(&qp->qp, &file.async);
  options.cookie = qp->cookie;
  auto engine = file.hca->create_qp(options);
  if (!engine) {
    static_cast<void>(events.remove(qp->cookie));
    return fail_null(verb, engine.error());
  }
  qp->engine = *std::move(engine);
  qp->signal_all = options.signal_all;
  init_public_part(*qp, context, attr.qp_context, attr.qp_type);
  const bool receives_xrc = attr.qp_type == IBV_QPT_XRC_RECV;
  if (!receives_xrc) qp->domain.begin(pd_of(attr.pd));
  qp->qp.pd = (attr.comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? attr.pd : nullptr;
  if (!receives_xrc) {
    qp->qp.send_cq = attr.send_cq;
    qp->qp.recv_cq = attr.recv_cq;
    qp->qp.srq = attr.srq;
  }
  attr.cap = to_cap(qp->engine->caps());
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    set_qp_ex_functions(*qp, attr.send_ops_flags);
  }
  return seal(qp.release());
}

}  // namespace

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return guarded("ibv_create_qp", static_cast<ibv_qp*>(nullptr), [&]() -> ibv_qp* {
    ibv_qp_init_attr_ex extended{};
    extended.qp_context = attr->qp_context;
    extended.send_cq = attr->send_cq;
    extended.recv_cq = attr->recv_cq;
    extended.srq = attr->srq;
    extended.cap = attr->cap;
    extended.qp_type = attr->qp_type;
    extended.sq_sig_all = attr->sq_sig_all;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = pd;
    Qp* qp = make_qp(pd->context, extended, "ibv_create_qp");
    if (qp == nullptr) return nullptr;
    attr->cap = extended.cap;
    return &qp->qp;
  });
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  return guarded("ibv_create_qp_ex", static_cast<ibv_qp*>(nullptr), [&]() -> ibv_qp* {
    Qp* qp = make_qp(context, *attr, "ibv_create_qp_ex");
    return qp == nullptr ? nullptr : &qp->qp;
  });
}

// An XRC target QP that another context or process created.
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  constexpr std::uint32_t kNeeded =
      IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  constexpr std::uint32_t kKnown = kNeeded | IBV_QP_OPEN_ATTR_CONTEXT;
  if ((attr->comp_mask & kNeeded) != kNeeded || (attr->comp_mask & ~kKnown) != 0 ||
      attr->qp_type != IBV_QPT_XRC_RECV || attr->xrcd == nullptr) {
    return fail_null("ibv_open_qp", EINVAL,
                     "number, XRC domain and type XRC_RECV must be given, nothing unknown");
  }
  return guarded("ibv_open_qp", static_cast<ibv_qp*>(nullptr), [&]() -> ibv_qp* {
    if (check_whole("ibv_open_qp", xrcd_of(attr->xrcd)) != 0) return nullptr;
    DeviceFile& file = file_of(context);
    EventHub& events = Runtime::instance().events();
    auto qp = std::make_unique<Qp>();
    qp->cookie = events.add(&qp->qp, &file.async);
    auto engine = file.hca->open_qp(*xrcd_of(attr->xrcd).engine, attr->qp_num, qp->cookie);
    if (!engine) {
      static_cast<void>(events.remove(qp->cookie));
      return fail_null("ibv_open_qp", engine.error());
    }
    qp->engine = *std::move(engine);
    const bool has_context = (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0;
    init_public_part(*qp, context, has_context ? attr->qp_context : nullptr, attr->qp_type);
    return &seal(qp.release())->qp;
  });
}

int destroy_qp(ibv_qp* ibqp) {
  return guarded_int("ibv_destroy_qp", [&] {
    Qp& qp = qp_of(ibqp);
    if (const int error = check_whole("ibv_destroy_qp", qp)) return error;
    const Status status = destroy_engine(qp);
    if (status != Status::Ok) return fail("ibv_destroy_qp", status);
    if (!inherited(qp)) {
      const auto delivered = Runtime::instance().events().remove(qp.cookie);
      wait_acknowledged(ibqp->mutex, ibqp->cond, ibqp->events_completed, delivered.async);
    }
    drop(&qp);
    return 0;
  });
}

}  // namespace ib::host_abi
