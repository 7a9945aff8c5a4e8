// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/abi/convert.h"

#include <algorithm>

namespace ib::host_abi {

namespace {

template <class A, class B>
constexpr bool same(A a, B b) {
  return static_cast<std::uint64_t>(a) == static_cast<std::uint64_t>(b);
}

static_assert(same(verbs::QpType::Rc, IBV_QPT_RC) && same(verbs::QpType::Uc, IBV_QPT_UC) &&
              same(verbs::QpType::Ud, IBV_QPT_UD) &&
              same(verbs::QpType::XrcSend, IBV_QPT_XRC_SEND) &&
              same(verbs::QpType::XrcRecv, IBV_QPT_XRC_RECV));
static_assert(same(verbs::QpState::Reset, IBV_QPS_RESET) &&
              same(verbs::QpState::Sqd, IBV_QPS_SQD) && same(verbs::QpState::Error, IBV_QPS_ERR));
static_assert(same(verbs::MigState::Armed, IBV_MIG_ARMED) &&
              same(verbs::MigState::Rearm, IBV_MIG_REARM));
static_assert(same(verbs::Mtu::B256, IBV_MTU_256) && same(verbs::Mtu::B4096, IBV_MTU_4096));
static_assert(same(verbs::PortState::Active, IBV_PORT_ACTIVE) &&
              same(verbs::PortState::Down, IBV_PORT_DOWN));
static_assert(same(verbs::LinkLayer::Unspecified, IBV_LINK_LAYER_UNSPECIFIED) &&
              same(verbs::LinkLayer::InfiniBand, IBV_LINK_LAYER_INFINIBAND) &&
              same(verbs::LinkLayer::Ethernet, IBV_LINK_LAYER_ETHERNET) &&
              same(verbs::control::port_flag::kGrhRequired, IBV_QPF_GRH_REQUIRED));
static_assert(same(verbs::GidType::InfiniBand, IBV_GID_TYPE_IB) &&
              same(verbs::GidType::RoceV1, IBV_GID_TYPE_ROCE_V1) &&
              same(verbs::GidType::RoceV2, IBV_GID_TYPE_ROCE_V2));
static_assert(same(verbs::SrqType::Basic, IBV_SRQT_BASIC) &&
              same(verbs::SrqType::Xrc, IBV_SRQT_XRC));
static_assert(same(verbs::access::kLocalWrite, IBV_ACCESS_LOCAL_WRITE) &&
              same(verbs::access::kRemoteAtomic, IBV_ACCESS_REMOTE_ATOMIC) &&
              same(verbs::access::kMwBind, IBV_ACCESS_MW_BIND) &&
              same(verbs::access::kZeroBased, IBV_ACCESS_ZERO_BASED) &&
              same(verbs::access::kOnDemand, IBV_ACCESS_ON_DEMAND) &&
              same(verbs::access::kHugeTlb, IBV_ACCESS_HUGETLB) &&
              same(verbs::access::kRelaxedOrdering, IBV_ACCESS_RELAXED_ORDERING) &&
              same(verbs::access::kOptionalRange, IBV_ACCESS_OPTIONAL_RANGE));
static_assert(same(verbs::WrOpcode::RdmaRead, IBV_WR_RDMA_READ) &&
              same(verbs::WrOpcode::BindMw, IBV_WR_BIND_MW) &&
              same(verbs::WrOpcode::SendWithInv, IBV_WR_SEND_WITH_INV) &&
              same(verbs::WrOpcode::AtomicWrite, IBV_WR_ATOMIC_WRITE));
static_assert(same(verbs::send_flag::kFence, IBV_SEND_FENCE) &&
              same(verbs::send_flag::kSignaled, IBV_SEND_SIGNALED) &&
              same(verbs::send_flag::kSolicited, IBV_SEND_SOLICITED) &&
              same(verbs::send_flag::kInline, IBV_SEND_INLINE));
static_assert(same(verbs::WcStatus::WrFlushErr, IBV_WC_WR_FLUSH_ERR) &&
              same(verbs::WcStatus::RnrRetryExcErr, IBV_WC_RNR_RETRY_EXC_ERR) &&
              same(verbs::WcStatus::GeneralErr, IBV_WC_GENERAL_ERR));
static_assert(same(verbs::WcOpcode::LocalInv, IBV_WC_LOCAL_INV) &&
              same(verbs::WcOpcode::AtomicWrite, IBV_WC_ATOMIC_WRITE) &&
              same(verbs::WcOpcode::Recv, IBV_WC_RECV) &&
              same(verbs::WcOpcode::RecvRdmaWithImm, IBV_WC_RECV_RDMA_WITH_IMM));
static_assert(same(verbs::wc_flag::kGrh, IBV_WC_GRH) &&
              same(verbs::wc_flag::kWithImm, IBV_WC_WITH_IMM) &&
              same(verbs::wc_flag::kWithInv, IBV_WC_WITH_INV));
static_assert(same(verbs::EventType::CqErr, IBV_EVENT_CQ_ERR) &&
              same(verbs::EventType::DeviceFatal, IBV_EVENT_DEVICE_FATAL) &&
              same(verbs::EventType::QpLastWqeReached, IBV_EVENT_QP_LAST_WQE_REACHED) &&
              same(verbs::EventType::GidChange, IBV_EVENT_GID_CHANGE));
static_assert(same(verbs::qp_attr::kState, IBV_QP_STATE) && same(verbs::qp_attr::kAv, IBV_QP_AV) &&
              same(verbs::qp_attr::kCap, IBV_QP_CAP) &&
              same(verbs::qp_attr::kAltPath, IBV_QP_ALT_PATH) &&
              same(verbs::qp_attr::kDestQpn, IBV_QP_DEST_QPN) &&
              same(verbs::qp_attr::kRateLimit, IBV_QP_RATE_LIMIT));

}  // namespace

verbs::AddressVector to_vector(const ibv_ah_attr& attr) {
  verbs::AddressVector av;
  av.dlid = attr.dlid;
  av.sl = attr.sl;
  av.src_path_bits = attr.src_path_bits;
  av.static_rate = attr.static_rate;
  av.port = attr.port_num;
  av.is_global = attr.is_global != 0 ? 1 : 0;
  if (av.is_global == 0) return av;  // `grh` is not set then
  std::copy_n(attr.grh.dgid.raw, av.dgid.size(), av.dgid.begin());
  av.flow_label = attr.grh.flow_label;
  av.sgid_index = attr.grh.sgid_index;
  av.hop_limit = attr.grh.hop_limit;
  av.traffic_class = attr.grh.traffic_class;
  return av;
}

ibv_ah_attr to_ah_attr(const verbs::AddressVector& av) {
  ibv_ah_attr attr{};
  attr.dlid = av.dlid;
  attr.sl = av.sl;
  attr.src_path_bits = av.src_path_bits;
  attr.static_rate = av.static_rate;
  attr.is_global = av.is_global;
  attr.port_num = av.port;
  std::copy(av.dgid.begin(), av.dgid.end(), attr.grh.dgid.raw);
  attr.grh.flow_label = av.flow_label;
  attr.grh.sgid_index = av.sgid_index;
  attr.grh.hop_limit = av.hop_limit;
  attr.grh.traffic_class = av.traffic_class;
  return attr;
}

verbs::control::QpAttr to_qp_attr(const ibv_qp_attr& attr, int mask) {
  const auto has = [mask](int bit) { return (mask & bit) != 0; };
  verbs::control::QpAttr to;
  if (has(IBV_QP_STATE)) to.state = static_cast<verbs::QpState>(attr.qp_state);
  if (has(IBV_QP_CUR_STATE)) to.cur_state = static_cast<verbs::QpState>(attr.cur_qp_state);
  if (has(IBV_QP_PATH_MTU)) to.path_mtu = static_cast<verbs::Mtu>(attr.path_mtu);
  if (has(IBV_QP_PATH_MIG_STATE)) to.mig_state = static_cast<verbs::MigState>(attr.path_mig_state);
  if (has(IBV_QP_AV)) to.av = to_vector(attr.ah_attr);
  if (has(IBV_QP_ALT_PATH)) to.alt_av = to_vector(attr.alt_ah_attr);
  to.qkey = attr.qkey;
  to.rq_psn = attr.rq_psn;
  to.sq_psn = attr.sq_psn;
  to.dest_qpn = attr.dest_qp_num;
  to.access = attr.qp_access_flags;
  to.pkey_index = attr.pkey_index;
  to.alt_pkey_index = attr.alt_pkey_index;
  to.en_sqd_async_notify = attr.en_sqd_async_notify;
  to.max_rd_atomic = attr.max_rd_atomic;
  to.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  to.min_rnr_timer = attr.min_rnr_timer;
  to.port = attr.port_num;
  to.timeout = attr.timeout;
  to.retry_cnt = attr.retry_cnt;
  to.rnr_retry = attr.rnr_retry;
  to.alt_port = attr.alt_port_num;
  to.alt_timeout = attr.alt_timeout;
  to.rate_limit = has(IBV_QP_RATE_LIMIT) ? attr.rate_limit : 0;
  return to;
}

void from_qp_attr(const verbs::control::QpAttr& from, ibv_qp_attr& to) {
  to.qp_state = static_cast<ibv_qp_state>(from.state);
  to.cur_qp_state = static_cast<ibv_qp_state>(from.cur_state);
  to.path_mtu = static_cast<ibv_mtu>(from.path_mtu);
  to.path_mig_state = static_cast<ibv_mig_state>(from.mig_state);
  to.ah_attr = to_ah_attr(from.av);
  to.alt_ah_attr = to_ah_attr(from.alt_av);
  to.qkey = from.qkey;
  to.rq_psn = from.rq_psn;
  to.sq_psn = from.sq_psn;
  to.dest_qp_num = from.dest_qpn;
  to.qp_access_flags = from.access;
  to.pkey_index = from.pkey_index;
  to.alt_pkey_index = from.alt_pkey_index;
  to.en_sqd_async_notify = from.en_sqd_async_notify;
  to.sq_draining = from.sq_draining;
  to.max_rd_atomic = from.max_rd_atomic;
  to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  to.min_rnr_timer = from.min_rnr_timer;
  to.port_num = from.port;
  to.timeout = from.timeout;
  to.retry_cnt = from.retry_cnt;
  to.rnr_retry = from.rnr_retry;
  to.alt_port_num = from.alt_port;
  to.alt_timeout = from.alt_timeout;
}

verbs::control::QpCaps to_caps(const ibv_qp_cap& cap) {
  return {.max_send_wr = cap.max_send_wr,
          .max_recv_wr = cap.max_recv_wr,
          .max_send_sge = cap.max_send_sge,
          .max_recv_sge = cap.max_recv_sge,
          .max_inline = cap.max_inline_data,
          .reserved = 0};
}

ibv_qp_cap to_cap(const verbs::control::QpCaps& caps) {
  ibv_qp_cap cap{};
  cap.max_send_wr = caps.max_send_wr;
  cap.max_recv_wr = caps.max_recv_wr;
  cap.max_send_sge = caps.max_send_sge;
  cap.max_recv_sge = caps.max_recv_sge;
  cap.max_inline_data = caps.max_inline;
  return cap;
}

}  // namespace ib::host_abi
