// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory windows. Type 2 windows are bound by work requests (post.cpp, qp_ex.cpp).
#include "host_abi/provider/ops.h"

namespace ib::host_abi {

void describe_bind(const Mw& mw, const ibv_mw_bind_info& info, std::uint32_t rkey,
                   hca::SendWqe& wqe) {
  wqe.window = mw.engine->index();
  wqe.bind_region = info.mr != nullptr ? mr_of(info.mr).engine->index() : hca::kNone;
  wqe.bind_address = info.addr;
  wqe.bind_length = info.length;
  wqe.bind_access = info.mw_access_flags;
  wqe.bind_rkey = mw.engine->next_rkey(rkey);
}

ibv_mw* alloc_mw(ibv_pd* ibpd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
    return fail_null("ibv_alloc_mw", EINVAL, "the type must be 1 or 2");
  }
  return guarded("ibv_alloc_mw", static_cast<ibv_mw*>(nullptr), [&]() -> ibv_mw* {
    if (check_whole("ibv_alloc_mw", pd_of(ibpd)) != 0) return nullptr;
    auto engine =
        hca_of(ibpd->context).alloc_window(*pd_of(ibpd).engine, static_cast<std::uint32_t>(type));
    if (!engine) return fail_null("ibv_alloc_mw", engine.error());
    auto mw = std::make_unique<Mw>();
    mw->engine = *std::move(engine);
    mw->context = ibpd->context;
    mw->pd = ibpd;
    mw->rkey = mw->engine->rkey();
    mw->engine->show_rkey(&mw->rkey);
    mw->handle = mw->engine->handle();
    mw->type = type;
    return seal(mw.release());
  });
}

int bind_mw(ibv_qp* ibqp, ibv_mw* ibmw, ibv_mw_bind* bind) {
  Mw& mw = mw_of(ibmw);
  const ibv_mw_bind_info& info = bind->bind_info;
  if (info.mr == nullptr && info.length != 0) {
    return fail("ibv_bind_mw", EINVAL, "a memory region must be given");
  }
  hca::SendWqe wqe;
  wqe.opcode = verbs::WrOpcode::BindMw;
  wqe.wr_id = bind->wr_id;
  user::set_flags(wqe, bind->send_flags);
  // Each bind gives a window of type 1 a new key, which the caller may use at once [IBA1 10.6.7.2].
  describe_bind(mw, info, ibv_inc_rkey(ibmw->rkey), wqe);
  user::WorkQueues& queues = qp_of(ibqp).engine->queues();
  queues.send_lock().lock();
  const Status status = queues.post_bind(wqe, *mw.engine);
  queues.send_lock().unlock();
  return status == Status::Ok ? 0
                              : fail("ibv_bind_mw", errno_of_posting(status), status_text(status));
}

int dealloc_mw(ibv_mw* ibmw) {
  return guarded_int("ibv_dealloc_mw", [&] {
    Mw& mw = mw_of(ibmw);
    if (const int error = check_whole("ibv_dealloc_mw", mw)) return error;
    const Status status = destroy_engine(mw);
    if (status != Status::Ok) return fail("ibv_dealloc_mw", status);
    drop(&mw);
    return 0;
  });
}

}  // namespace ib::host_abi
