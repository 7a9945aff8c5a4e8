// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/qp_values.h"

#include "verbs/limits.h"

#include <fmt/format.h>

namespace ib::verbs {
namespace {

constexpr std::uint32_t k24Bits = 0xffffff;

struct Bound {
  std::uint32_t mask;
  std::uint32_t value;
  std::uint32_t most;
  const char* name;
};

}  // namespace

bool check_qp_values(std::uint32_t mask, const control::QpAttr& attr, std::string& reason) {
  using limits::kMaxReadAtomic;
  const Bound bounds[] = {
      {qp_attr::kTimeout, attr.timeout, 31, "timeout"},
      {qp_attr::kAltPath, attr.alt_timeout, 31, "alt_timeout"},
      {qp_attr::kRetryCnt, attr.retry_cnt, 7, "retry_cnt"},
      {qp_attr::kRnrRetry, attr.rnr_retry, 7, "rnr_retry"},
      {qp_attr::kMinRnrTimer, attr.min_rnr_timer, 31, "min_rnr_timer"},
      {qp_attr::kRqPsn, attr.rq_psn, k24Bits, "rq_psn"},
      {qp_attr::kSqPsn, attr.sq_psn, k24Bits, "sq_psn"},
      {qp_attr::kDestQpn, attr.dest_qpn, k24Bits, "dest_qp_num"},
      {qp_attr::kMaxQpRdAtomic, attr.max_rd_atomic, kMaxReadAtomic, "max_rd_atomic"},
      {qp_attr::kMaxDestRdAtomic, attr.max_dest_rd_atomic, kMaxReadAtomic, "max_dest_rd_atomic"},
      {qp_attr::kPathMtu, static_cast<std::uint32_t>(attr.path_mtu),
       static_cast<std::uint32_t>(Mtu::B4096), "path_mtu"},
  };
  for (const Bound& bound : bounds) {
    if ((mask & bound.mask) == 0 || bound.value <= bound.most) continue;
    reason = fmt::format("{} {}; at most {}", bound.name, bound.value, bound.most);
    return false;
  }
  if ((mask & qp_attr::kPathMtu) != 0 && static_cast<std::uint32_t>(attr.path_mtu) == 0) {
    reason = "path_mtu 0; IBV_MTU_256 (1) to IBV_MTU_4096 (5)";
    return false;
  }
  return true;
}

}  // namespace ib::verbs
