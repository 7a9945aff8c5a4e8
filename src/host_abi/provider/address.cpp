// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Address handles and multicast groups.
#include "host_abi/provider/abi/convert.h"
#include "host_abi/provider/ops.h"

#include <algorithm>

namespace ib::host_abi {

namespace {

verbs::Gid to_gid(const ibv_gid& gid) {
  verbs::Gid to{};
  std::copy_n(gid.raw, to.size(), to.begin());
  return to;
}

}  // namespace

ibv_ah* create_ah(ibv_pd* ibpd, ibv_ah_attr* attr) {
  return guarded("ibv_create_ah", static_cast<ibv_ah*>(nullptr), [&]() -> ibv_ah* {
    if (check_whole("ibv_create_ah", pd_of(ibpd)) != 0) return nullptr;
    if (inherited(pd_of(ibpd))) {
      return fail_null("ibv_create_ah", EINVAL, "the PD belongs to the process before fork()");
    }
    auto engine = hca_of(ibpd->context).create_ah(*pd_of(ibpd).engine, to_vector(*attr));
    if (!engine) return fail_null("ibv_create_ah", engine.error());
    auto ah = std::make_unique<Ah>();
    ah->engine = *std::move(engine);
    ah->context = ibpd->context;
    ah->pd = ibpd;
    return seal(ah.release());
  });
}

int destroy_ah(ibv_ah* ibah) {
  return guarded_int("ibv_destroy_ah", [&] {
    Ah& ah = ah_of(ibah);
    if (const int error = check_whole("ibv_destroy_ah", ah)) return error;
    const Status status = destroy_engine(ah);
    if (status != Status::Ok) return fail("ibv_destroy_ah", status);
    drop(&ah);
    return 0;
  });
}

int attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return guarded_int("ibv_attach_mcast", [&] {
    if (const int error = check_whole("ibv_attach_mcast", qp_of(qp))) return error;
    return done("ibv_attach_mcast", qp_of(qp).engine->attach_mcast(to_gid(*gid), lid));
  });
}

int detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return guarded_int("ibv_detach_mcast", [&] {
    if (const int error = check_whole("ibv_detach_mcast", qp_of(qp))) return error;
    return done("ibv_detach_mcast", qp_of(qp).engine->detach_mcast(to_gid(*gid), lid));
  });
}

}  // namespace ib::host_abi
