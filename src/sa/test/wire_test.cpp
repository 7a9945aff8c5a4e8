// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// tshark reads each attribute as it is meant, and complains about none of them, in every method
// that uses it.
#include "base/buffers.h"
#include "mad/class_port_info.h"
#include "mad/test/erf_capture_test.h"
#include "sa/records/header.h"
#include "sa/records/inform_info.h"
#include "sa/records/mc_member_record.h"
#include "sa/records/multi_path_record.h"
#include "sa/records/node_record.h"
#include "sa/records/notice.h"
#include "sa/records/path_record.h"
#include "sa/records/service_record.h"
#include "sa/records/subnet_records.h"
#include "sa/records/table_records.h"
#include "sa/test/sample_records_test.h"
#include "verbs/gid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ib::sa {
namespace {

using Row = std::vector<std::string>;

class SaWireTest : public testing::Test {
 protected:
  void add(std::uint8_t method, std::uint16_t attribute, std::uint64_t components,
           std::span<const std::byte> record) {
    SaMad mad;
    mad.header = {1, kMgmtClass, kClassVersion, method, 0, 0, ++tid_, attribute, 0, 0};
    mad.sa.component_mask = components;
    if (method == method::kGetTableResp) {
      mad.sa.attribute_offset = static_cast<std::uint16_t>(stride_of(record.size()) / 8);
      // RMPP: version 1, DATA, active, first and last; segment 1; the length of what follows.
      mad.rmpp = {1, 1, 0xff & (31 << 3 | 7), 0, 0, 0, 0, 1, 0, 0, 0, 0};
      mad.rmpp[11] = static_cast<std::uint8_t>(sizeof(SaHeader) + stride_of(record.size()));
    }
    std::copy(record.begin(), record.end(), mad.data.begin());
    capture_.add(std::as_bytes(std::span(&mad, 1)));
  }
  template <class Record>
  void add(std::uint8_t method, std::uint16_t attribute, std::uint64_t components,
           const Record& record) {
    const auto bytes = encode(record);
    add(method, attribute, components, std::span<const std::byte>(bytes));
  }
  // The fields of the only packet, and "" if tshark has no complaint.
  std::optional<Row> read(const std::string& name, const std::vector<std::string>& fields) {
    const auto rows = capture_.dissect(name, fields);
    if (!rows) return std::nullopt;
    return rows->empty() ? Row{} : rows->front();
  }

  mad::ErfCapture capture_;
  std::uint64_t tid_ = 0x100;
};

// A test of one attribute is skipped if there is no tshark.
#define IB_EXPECT_ROW(actual, ...)                       \
  do {                                                   \
    const auto row = (actual);                           \
    if (!row) GTEST_SKIP() << "tshark is not installed"; \
    EXPECT_EQ(*row, (Row{__VA_ARGS__}));                 \
  } while (false)

TEST_F(SaWireTest, TheHeaderHasItsFields) {
  add(method::kSet, attribute::kServiceRecord, 0x123456789, ServiceRecord{});
  IB_EXPECT_ROW(read("sa_header", {"infiniband.mad.method", "infiniband.mad.attributeid",
                                   "infiniband.sa.componentmask", "infiniband.mad.classversion"}),
                "0x02", "0x0031", "0x0000000123456789", "0x02", "");
}

TEST_F(SaWireTest, APathRecordIsReadAsItIsMeant) {
  add(method::kGetResp, attribute::kPathRecord, 0, sample_path());
  IB_EXPECT_ROW(
      read("sa_path", {"infiniband.pathrecord.dgid", "infiniband.pathrecord.sgid",
                       "infiniband.pathrecord.dlid", "infiniband.pathrecord.slid",
                       "infiniband.pathrecord.flowlabel", "infiniband.pathrecord.hoplimit",
                       "infiniband.pathrecord.tclass", "infiniband.pathrecord.reversible",
                       "infiniband.pathrecord.numbpath", "infiniband.pathrecord.p_key",
                       "infiniband.pathrecord.sl", "infiniband.pathrecord.mtuselector",
                       "infiniband.pathrecord.mtu", "infiniband.pathrecord.rateselector",
                       "infiniband.pathrecord.rate", "infiniband.pathrecord.packetlifetimeselector",
                       "infiniband.pathrecord.packetlifetime", "infiniband.pathrecord.preference"}),
      "fe80::22", "fe80::11", "0x1234", "0x5678", "0x0abcde", "0x40", "0x99", "0x01", "0x2a",
      "0x8001", "0x0007", "0x02", "0x05", "0x01", "0x10", "0x03", "0x12", "0x03", "");
}

TEST_F(SaWireTest, AnMcMemberRecordIsReadAsItIsMeant) {
  add(method::kSet, attribute::kMcMemberRecord, mc_component::kToCreate, sample_member());
  IB_EXPECT_ROW(
      read("sa_mc", {"infiniband.mcmemberrecord.mgid", "infiniband.mcmemberrecord.portgid",
                     "infiniband.mcmemberrecord.q_key", "infiniband.mcmemberrecord.mlid",
                     "infiniband.mcmemberrecord.mtuselector", "infiniband.mcmemberrecord.mtu",
                     "infiniband.mcmemberrecord.tclass", "infiniband.mcmemberrecord.p_key",
                     "infiniband.mcmemberrecord.rateselector", "infiniband.mcmemberrecord.rate",
                     "infiniband.mcmemberrecord.packetlifetime", "infiniband.mcmemberrecord.sl",
                     "infiniband.mcmemberrecord.flowlabel", "infiniband.mcmemberrecord.hoplimit",
                     "infiniband.mcmemberrecord.scope", "infiniband.mcmemberrecord.joinstate",
                     "infiniband.mcmemberrecord.proxyjoin"}),
      "ff12:401b::1", "fe80::11", "0x0b1b0c1c", "0xc001", "0x02", "0x04", "0x77", "0xffff", "0x02",
      "0x03", "0x13", "0x0a", "0x054321", "0xfe", "0x02", "0x05", "0x01", "");
}

TEST_F(SaWireTest, AServiceRecordIsReadAsItIsMeant) {
  add(method::kSet, attribute::kServiceRecord, 0, sample_service());
  IB_EXPECT_ROW(read("sa_service",
                     {"infiniband.linkrecord.serviceid", "infiniband.linkrecord.servicegid",
                      "infiniband.linkrecord.servicep_key", "infiniband.linkrecord.servicelease"}),
                "0x1000000001060000", "fe80::11", "0x8002", "0x0000003c", "");
}

TEST_F(SaWireTest, ANoticeIsReadAsItIsMeant) {
  const verbs::Gid gid = verbs::make_gid(0xfe80000000000000, 2);
  add(method::kReport, attribute::kNotice, 0,
      gid_notice(trap::kGidInService, gid, 7, verbs::make_gid(0xfe80000000000000, 4)));
  IB_EXPECT_ROW(read("sa_notice", {"infiniband.notice.isgeneric", "infiniband.notice.type",
                                   "infiniband.notice.producertypevendorid",
                                   "infiniband.notice.trapnumberdeviceid",
                                   "infiniband.notice.issuerlid", "infiniband.trap.gidaddr"}),
                "0x01", "0x03", "0x000004", "0x0040", "0x0007", "fe80::2", "");
}

TEST_F(SaWireTest, ASubscriptionIsReadAsItIsMeant) {
  add(method::kSet, attribute::kInformInfo, 0, sample_inform_info());
  IB_EXPECT_ROW(
      read("sa_inform", {"infiniband.informinfo.lidrangebegin", "infiniband.informinfo.lidrangeend",
                         "infiniband.informinfo.isgeneric", "infiniband.informinfo.subscribe",
                         "infiniband.informinfo.type", "infiniband.informinfo.trapnumberdeviceid",
                         "infiniband.informinfo.qpn", "infiniband.informinfo.resptimevalue",
                         "infiniband.informinfo.producertypevendorid"}),
      "0xffff", "0x0304", "0x01", "0x01", "0x0003", "0x0042", "0x123456", "0x12", "0x000004", "");
}

TEST_F(SaWireTest, AMultiPathRecordIsReadAsItIsMeant) {
  add(method::kGetMulti, attribute::kMultiPathRecord, 0, sample_multi_path());
  IB_EXPECT_ROW(read("sa_multi_path",
                     {"infiniband.multipathrecord.flowlabel", "infiniband.multipathrecord.hoplimit",
                      "infiniband.multipathrecord.tclass", "infiniband.multipathrecord.reversible",
                      "infiniband.multipathrecord.numbpath", "infiniband.multipathrecord.p_key",
                      "infiniband.multipathrecord.sl", "infiniband.multipathrecord.mtuselector",
                      "infiniband.multipathrecord.mtu", "infiniband.multipathrecord.rateselector",
                      "infiniband.multipathrecord.rate", "infiniband.multipathrecord.sgidcount",
                      "infiniband.multipathrecord.dgidcount"}),
                "0x0abcde", "0x40", "0x99", "0x01", "0x2a", "0x8001", "0x07", "0x02", "0x05",
                "0x01", "0x10", "0x02", "0x01", "");
}

TEST_F(SaWireTest, ALinkIsReadAsItIsMeant) {
  add(method::kGetResp, attribute::kLinkRecord, 0, LinkRecord{5, 1, 2, 6});
  IB_EXPECT_ROW(read("sa_link", {"infiniband.linkrecord.fromlid", "infiniband.linkrecord.fromport",
                                 "infiniband.linkrecord.toport", "infiniband.linkrecord.tolid"}),
                "0x0005", "0x01", "0x02", "0x0006", "");
}

TEST_F(SaWireTest, AManagerIsReadAsItIsMeant) {
  add(method::kGetResp, attribute::kSmInfoRecord, 0, SmInfoRecord{5, 0x17, 0, 2, 14, kMasterState});
  IB_EXPECT_ROW(read("sa_manager", {"infiniband.sminfo.guid", "infiniband.sminfo.actcount",
                                    "infiniband.sminfo.priority", "infiniband.sminfo.smstate"}),
                "0x0000000000000017", "0x00000002", "0x0e", "0x03", "");
}

TEST_F(SaWireTest, NoAttributeInAnyMethodIsMalformed) {
  NodeRecord node;
  node.lid = 5;
  PortInfoRecord port;
  port.lid = 5;
  const mad::ClassPortInfo info;
  for (const std::uint8_t method :
       {method::kGet, method::kGetTable, method::kGetResp, method::kGetTableResp}) {
    add(method, attribute::kPathRecord, 0, PathRecord{});
    add(method, attribute::kMcMemberRecord, 0, McMemberRecord{});
    add(method, attribute::kServiceRecord, 0, ServiceRecord{});
    add(method, attribute::kNodeRecord, 0, node);
    add(method, attribute::kPortInfoRecord, 0, port);
    add(method, attribute::kInformInfoRecord, 0, InformInfoRecord{});
    add(method, attribute::kGuidInfoRecord, 0, GuidInfoRecord{5, 1, {}});
    add(method, attribute::kPkeyTableRecord, 0, PkeyTableRecord{5, 1, 2, {}});
    add(method, attribute::kSlToVlRecord, 0, SlToVlRecord{5, 1, 2, {}});
    add(method, attribute::kVlArbitrationRecord, 0, VlArbitrationRecord{5, 1, 2, {}});
    add(method, attribute::kLinearForwardingRecord, 0, LinearForwardingRecord{5, 1, {}});
    add(method, attribute::kMulticastForwardingRecord, 0, MulticastForwardingRecord{5, 1, 2, {}});
    add(method, attribute::kLinkRecord, 0, LinkRecord{5, 1, 2, 6});
    add(method, attribute::kSwitchInfoRecord, 0, SwitchInfoRecord{5, {}});
    add(method, attribute::kSmInfoRecord, 0, SmInfoRecord{5, 1, 0, 2, 3, kMasterState});
  }
  add(method::kGetMulti, attribute::kMultiPathRecord, 0, sample_multi_path());
  add(method::kGetMultiResp, attribute::kMultiPathRecord, 0, sample_path());
  for (const std::uint8_t method : {method::kSet, method::kDelete, method::kDeleteResp}) {
    add(method, attribute::kMcMemberRecord, mc_component::kToJoin, McMemberRecord{});
    add(method, attribute::kServiceRecord, service_component::kNames, ServiceRecord{});
  }
  add(method::kGet, attribute::kClassPortInfo, 0, bytes_of(info));
  add(method::kGetResp, attribute::kClassPortInfo, 0, bytes_of(info));
  add(method::kSet, attribute::kInformInfo, 0, InformInfo{});
  add(method::kGetResp, attribute::kInformInfo, 0, InformInfo{});
  add(method::kReport, attribute::kNotice, 0, Notice{});
  add(method::kReportResp, attribute::kNotice, 0, Notice{});
  add(method::kReport, attribute::kNotice, 0, capability_notice(5, {}, 0x2));
  const auto rows = capture_.dissect("sa_all", {"infiniband.mad.mgmtclass"});
  if (!rows) GTEST_SKIP() << "tshark is not installed";
  for (std::size_t i = 0; i < rows->size(); ++i) EXPECT_EQ((*rows)[i], (Row{"0x03", ""})) << i;
}

}  // namespace
}  // namespace ib::sa
