// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/abi/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ib::host_abi {
namespace {

TEST(Convert, AddressVectorSurvivesTheRoundTrip) {
  ibv_ah_attr attr{};
  for (std::uint8_t i = 0; i < 16; ++i) attr.grh.dgid.raw[i] = i;
  attr.grh.flow_label = 0xabcde;
  attr.grh.sgid_index = 2;
  attr.grh.hop_limit = 64;
  attr.grh.traffic_class = 7;
  attr.dlid = 0x1234;
  attr.sl = 3;
  attr.src_path_bits = 1;
  attr.static_rate = 5;
  attr.is_global = 1;
  attr.port_num = 2;
  const ibv_ah_attr back = to_ah_attr(to_vector(attr));
  EXPECT_TRUE(std::equal(std::begin(attr.grh.dgid.raw), std::end(attr.grh.dgid.raw),
                         std::begin(back.grh.dgid.raw)));
  EXPECT_EQ(back.grh.flow_label, attr.grh.flow_label);
  EXPECT_EQ(back.grh.sgid_index, attr.grh.sgid_index);
  EXPECT_EQ(back.grh.hop_limit, attr.grh.hop_limit);
  EXPECT_EQ(back.grh.traffic_class, attr.grh.traffic_class);
  EXPECT_EQ(back.dlid, attr.dlid);
  EXPECT_EQ(back.sl, attr.sl);
  EXPECT_EQ(back.src_path_bits, attr.src_path_bits);
  EXPECT_EQ(back.static_rate, attr.static_rate);
  EXPECT_EQ(back.is_global, attr.is_global);
  EXPECT_EQ(back.port_num, attr.port_num);
}

TEST(Convert, UnsetGlobalRouteIsNotRead) {
  ibv_ah_attr attr{};
  std::memset(&attr.grh, 0x5a, sizeof attr.grh);
  EXPECT_EQ(to_vector(attr).flow_label, 0u);
}

TEST(Convert, QueuePairAttributesKeepTheirValues) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_2048;
  attr.dest_qp_num = 0x123456;
  attr.rq_psn = 77;
  attr.min_rnr_timer = 12;
  attr.ah_attr.dlid = 9;
  attr.port_num = 1;
  const auto to = to_qp_attr(attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV);
  EXPECT_EQ(to.state, verbs::QpState::Rtr);
  EXPECT_EQ(to.path_mtu, verbs::Mtu::B2048);
  EXPECT_EQ(to.av.dlid, 9);
  ibv_qp_attr back{};
  from_qp_attr(to, back);
  EXPECT_EQ(back.dest_qp_num, attr.dest_qp_num);
  EXPECT_EQ(back.rq_psn, attr.rq_psn);
  EXPECT_EQ(back.min_rnr_timer, attr.min_rnr_timer);
}

// That of a receive is copied, that of a request converted: the results are equal. The copy counts,
// even if shared memory has changed since.
TEST(Convert, CompletionBecomesIbvWc) {
  hca::Cqe from;
  from.wqe = 17;
  from.srq = 18;
  from.status = static_cast<std::uint32_t>(verbs::WcStatus::Success);
  from.opcode = static_cast<std::uint32_t>(verbs::WcOpcode::RecvRdmaWithImm);
  from.vendor_err = 77;
  from.byte_len = 4096;
  from.imm = 0xdeadbeef;
  from.qpn = 0x999;
  from.src_qp = 0x123;
  from.flags = verbs::wc_flag::kWithImm;
  from.pkey_index = 2;
  from.slid = 0x8001;
  from.sl = 5;
  from.path_bits = 3;
  for (const bool received : {false, true}) {
    const user::TakenCompletion taken{0x1122334455667788, 0x456, verbs::WcStatus::RnrRetryExcErr,
                                      received};
    ibv_wc to{};
    to_wc(from, taken, to);
    EXPECT_EQ(to.wr_id, taken.wr_id);
    EXPECT_EQ(to.status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(to.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(to.vendor_err, 77u);
    EXPECT_EQ(to.byte_len, 4096u);
    EXPECT_EQ(to.imm_data, 0xdeadbeefu);
    EXPECT_EQ(to.qp_num, 0x456u);
    EXPECT_EQ(to.src_qp, 0x123u);
    EXPECT_EQ(to.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(to.pkey_index, 2);
    EXPECT_EQ(to.slid, 0x8001);
    EXPECT_EQ(to.sl, 5);
    EXPECT_EQ(to.dlid_path_bits, 3);
  }
}

}  // namespace
}  // namespace ib::host_abi
