// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The tables are in the order of the specification's, where reserved fields have a bit as well.
#include "sa/records/components.h"

#include "sa/records/header.h"
#include "sa/records/inform_info.h"
#include "sa/records/mc_member_record.h"
#include "sa/records/node_record.h"
#include "sa/records/path_record.h"
#include "sa/records/selector.h"
#include "sa/records/service_record.h"
#include "sa/records/subnet_records.h"
#include "sa/records/table_records.h"

#include <array>
#include <iterator>
#include <optional>

namespace ib::sa {
namespace {

constexpr Component reserved() {
  return {{}, Compare::Ignored};
}

// The service id has two bits, for its upper and its lower half. Rules about these are in
// sa/server/paths.cpp: the number of paths, and paths that are reversible though they need not be.
constexpr std::array kPath{
    Component{{0, 0, 32}},
    Component{{4, 0, 32}},
    Component{path_field::kDgid},
    Component{path_field::kSgid},
    Component{path_field::kDlid},
    Component{path_field::kSlid},
    Component{path_field::kRawTraffic},
    reserved(),
    Component{path_field::kFlowLabel},
    Component{path_field::kHopLimit},
    Component{path_field::kTrafficClass},
    Component{path_field::kReversible, Compare::Ignored},
    Component{path_field::kNumbPath, Compare::Ignored},
    Component{path_field::kPkey},
    Component{path_field::kQosClass},
    Component{path_field::kSl},
    Component{path_field::kMtuSelector, Compare::Selector},
    Component{path_field::kMtu, Compare::Number},
    Component{path_field::kRateSelector, Compare::Selector},
    Component{path_field::kRate, Compare::Rate},
    Component{path_field::kLifeSelector, Compare::Selector},
    Component{path_field::kLife, Compare::Number},
    Component{path_field::kPreference},
};

constexpr std::array kMcMember{
    Component{mc_field::kMgid},
    Component{mc_field::kPortGid},
    Component{mc_field::kQkey},
    Component{mc_field::kMlid},
    Component{mc_field::kMtuSelector, Compare::Selector},
    Component{mc_field::kMtu, Compare::Number},
    Component{mc_field::kTrafficClass},
    Component{mc_field::kPkey},
    Component{mc_field::kRateSelector, Compare::Selector},
    Component{mc_field::kRate, Compare::Rate},
    Component{mc_field::kLifeSelector, Compare::Selector},
    Component{mc_field::kLife, Compare::Number},
    Component{mc_field::kSl},
    Component{mc_field::kFlowLabel},
    Component{mc_field::kHopLimit},
    Component{mc_field::kScope},
    Component{mc_field::kJoinState},
    Component{mc_field::kProxyJoin},
};

constexpr auto kService = [] {
  std::array<Component, 37> all{};
  all[0].field = service_field::kId;
  all[1].field = service_field::kGid;
  all[2].field = service_field::kPkey;
  all[3] = reserved();
  all[4].field = service_field::kLease;
  all[5].field = service_field::kKey;
  all[6].field = service_field::kName;
  std::size_t next = 7;
  std::uint16_t byte = service_field::kData8.byte;
  for (std::uint16_t size = 1; size <= 8; size = static_cast<std::uint16_t>(size * 2)) {
    for (std::uint16_t i = 0; i < 16 / size; ++i) {
      all[next++].field = whole(byte, size);
      byte = static_cast<std::uint16_t>(byte + size);
    }
  }
  return all;
}();
static_assert(kService[36].field.byte == 168 && kService[36].field.width == 64);

constexpr Field of_info(Field field) {
  field.byte = static_cast<std::uint16_t>(field.byte + InformInfoRecord::kInfoAt);
  return field;
}
constexpr std::array kInformInfoRecord{
    Component{inform_record_field::kSubscriberGid},
    Component{inform_record_field::kNumber},
    reserved(),
    Component{of_info(inform_field::kGid)},
    Component{of_info(inform_field::kLidFirst)},
    Component{of_info(inform_field::kLidLast)},
    reserved(),
    Component{of_info(inform_field::kIsGeneric)},
    Component{of_info(inform_field::kSubscribe)},
    Component{of_info(inform_field::kType)},
    Component{of_info(inform_field::kTrap)},
    Component{of_info(inform_field::kQpn)},
    reserved(),
    Component{of_info(inform_field::kResponseTime)},
    reserved(),
    Component{of_info(inform_field::kProducer)},
};

constexpr std::array kNode{
    Component{{0, 0, 16}},    // LID
    reserved(),               //
    Component{{4, 0, 8}},     // BaseVersion
    Component{{5, 0, 8}},     // ClassVersion
    Component{{6, 0, 8}},     // NodeType
    Component{{7, 0, 8}},     // NumPorts
    Component{{8, 0, 64}},    // SystemImageGUID
    Component{{16, 0, 64}},   // NodeGUID
    Component{{24, 0, 64}},   // PortGUID
    Component{{32, 0, 16}},   // PartitionCap
    Component{{34, 0, 16}},   // DeviceID
    Component{{36, 0, 32}},   // Revision
    Component{{40, 0, 8}},    // LocalPortNum
    Component{{41, 0, 24}},   // VendorID
    Component{{44, 0, 512}},  // NodeDescription
};

// PortInfo starts at byte 4.
constexpr std::array kPortInfo{
    Component{{0, 0, 16}},                    // EndportLID
    Component{{2, 0, 8}},                     // PortNum
    Component{{3, 0, 8}, Compare::Ignored},   // Options
    Component{{4, 0, 64}, Compare::Ignored},  // M_Key: nobody is told whether he guessed it
    Component{{12, 0, 64}},                   // GidPrefix
    Component{{20, 0, 16}},                   // LID
    Component{{22, 0, 16}},                   // MasterSMLID
    Component{{24, 0, 32}},                   // CapabilityMask
    Component{{28, 0, 16}},                   // DiagCode
    Component{{30, 0, 16}},                   // M_KeyLeasePeriod
    Component{{32, 0, 8}},                    // LocalPortNum
    Component{{33, 0, 8}},                    // LinkWidthEnabled
    Component{{34, 0, 8}},                    // LinkWidthSupported
    Component{{35, 0, 8}},                    // LinkWidthActive
    Component{{36, 0, 4}},                    // LinkSpeedSupported
    Component{{36, 4, 4}},                    // PortState
    Component{{37, 0, 4}},                    // PortPhysicalState
    Component{{37, 4, 4}},                    // LinkDownDefaultState
    Component{{38, 0, 2}},                    // M_KeyProtectBits
    reserved(),                               //
    Component{{38, 5, 3}},                    // LMC
    Component{{39, 0, 4}},                    // LinkSpeedActive
    Component{{39, 4, 4}},                    // LinkSpeedEnabled
    Component{{40, 0, 4}},                    // NeighborMTU
    Component{{40, 4, 4}},                    // MasterSMSL
    Component{{41, 0, 4}},                    // VLCap
    Component{{41, 4, 4}},                    // InitType
    Component{{42, 0, 8}},                    // VLHighLimit
    Component{{43, 0, 8}},                    // VLArbitrationHighCap
    Component{{44, 0, 8}},                    // VLArbitrationLowCap
    Component{{45, 0, 4}},                    // InitTypeReply
    Component{{45, 4, 4}},                    // MTUCap
    Component{{46, 0, 3}},                    // VLStallCount
    Component{{46, 3, 5}},                    // HOQLife
    Component{{47, 0, 4}},                    // OperationalVLs
    Component{{47, 4, 1}},                    // PartitionEnforcementInbound
    Component{{47, 5, 1}},                    // PartitionEnforcementOutbound
    Component{{47, 6, 1}},                    // FilterRawInbound
    Component{{47, 7, 1}},                    // FilterRawOutbound
    Component{{48, 0, 16}},                   // M_KeyViolations
    Component{{50, 0, 16}},                   // P_KeyViolations
    Component{{52, 0, 16}},                   // Q_KeyViolations
    Component{{54, 0, 8}},                    // GUIDCap
    Component{{55, 0, 1}},                    // ClientReregister
    reserved(),                               //
    Component{{55, 3, 5}},                    // SubnetTimeOut
    reserved(),                               //
    Component{{56, 3, 5}},                    // RespTimeValue
    Component{{57, 0, 4}},                    // LocalPhyErrors
    Component{{57, 4, 4}},                    // OverrunErrors
    Component{{58, 0, 16}},                   // MaxCreditHint
    reserved(),                               //
    Component{{61, 0, 24}},                   // LinkRoundTripLatency
    Component{{64, 0, 16}},                   // CapabilityMask2
    Component{{66, 0, 4}},                    // LinkSpeedExtActive
    Component{{66, 4, 4}},                    // LinkSpeedExtSupported
    reserved(),                               //
    Component{{67, 3, 5}},                    // LinkSpeedExtEnabled
};
static_assert(kPortInfo.size() == 58);

constexpr std::array kLink{
    Component{link_field::kFromLid},
    Component{link_field::kFromPort},
    Component{link_field::kToPort},
    Component{link_field::kToLid},
};

// SwitchInfo starts at byte 4.
constexpr std::array kSwitchInfo{
    Component{{0, 0, 16}},   // LID
    reserved(),              //
    Component{{4, 0, 16}},   // LinearFDBCap
    Component{{6, 0, 16}},   // RandomFDBCap
    Component{{8, 0, 16}},   // MulticastFDBCap
    Component{{10, 0, 16}},  // LinearFDBTop
    Component{{12, 0, 8}},   // DefaultPort
    Component{{13, 0, 8}},   // DefaultMulticastPrimaryPort
    Component{{14, 0, 8}},   // DefaultMulticastNotPrimaryPort
    Component{{15, 0, 5}},   // LifeTimeValue
    Component{{15, 5, 1}},   // PortStateChange
    Component{{15, 6, 2}},   // OptimizedSLtoVLMappingProgramming
    Component{{16, 0, 16}},  // LIDsPerPort
    Component{{18, 0, 16}},  // PartitionEnforcementCap
    Component{{20, 0, 1}},   // InboundEnforcementCap
    Component{{20, 1, 1}},   // OutboundEnforcementCap
    Component{{20, 2, 1}},   // FilterRawInboundCap
    Component{{20, 3, 1}},   // FilterRawOutboundCap
    Component{{20, 4, 1}},   // EnhancedPort0
    reserved(),              //
    Component{{22, 0, 16}},  // MulticastFDBTop
};

constexpr std::array kSmInfo{
    Component{sm_info_field::kLid},
    reserved(),
    Component{sm_info_field::kGuid},
    Component{sm_info_field::kSmKey, Compare::Ignored},  // nobody is told whether he guessed it
    Component{sm_info_field::kActivity},
    Component{sm_info_field::kPriority},
    Component{sm_info_field::kState},
};

constexpr std::array kGuidInfo = [] {
  std::array<Component, 4 + mad::kGuidsPerBlock> all{
      Component{table_field::kLid}, Component{table_field::kGuidBlock}, reserved(), reserved()};
  for (std::uint16_t i = 0; i < mad::kGuidsPerBlock; ++i) {
    all[4 + i].field = whole(static_cast<std::uint16_t>(table_field::kBlock.byte + 8 * i), 8);
  }
  return all;
}();

// Of the tables that follow, only the names of the blocks are compared.
constexpr std::array kPkeyTable{Component{table_field::kLid}, Component{table_field::kPkeyBlock},
                                Component{table_field::kPkeyPort}};
constexpr std::array kSlToVl{Component{table_field::kLid}, Component{table_field::kSlToVlIn},
                             Component{table_field::kSlToVlOut}};
constexpr std::array kVlArbitration{Component{table_field::kLid},
                                    Component{table_field::kArbitrationPort},
                                    Component{table_field::kArbitrationBlock}};
constexpr std::array kLinearForwarding{Component{table_field::kLid},
                                       Component{table_field::kLinearBlock}};
constexpr std::array kMulticastForwarding{Component{table_field::kLid},
                                          Component{table_field::kMulticastPosition}, reserved(),
                                          Component{table_field::kMulticastBlock}};

bool is_set(std::uint64_t mask, std::size_t bit) {
  return (mask >> bit & 1) != 0;
}

// Of a value with a selector before it.
bool compare_selected(const Component& component, std::optional<Selector> selector,
                      std::span<const std::byte> request, std::span<const std::byte> record) {
  const auto wanted = static_cast<std::uint8_t>(get(request, component.field));
  const auto actual = static_cast<std::uint8_t>(get(record, component.field));
  const int order = component.compare == Compare::Rate ? order_of_rates(actual, wanted)
                                                       : order_of_numbers(actual, wanted);
  return is_selected(selector.value_or(Selector::Exactly), order);
}

}  // namespace

std::span<const Component> components_of(std::uint16_t attribute) {
  switch (attribute) {
    case attribute::kPathRecord: return kPath;
    case attribute::kMcMemberRecord: return kMcMember;
    case attribute::kServiceRecord: return kService;
    case attribute::kInformInfoRecord: return kInformInfoRecord;
    case attribute::kNodeRecord: return kNode;
    case attribute::kPortInfoRecord: return kPortInfo;
    case attribute::kLinkRecord: return kLink;
    case attribute::kSwitchInfoRecord: return kSwitchInfo;
    case attribute::kSmInfoRecord: return kSmInfo;
    case attribute::kGuidInfoRecord: return kGuidInfo;
    case attribute::kPkeyTableRecord: return kPkeyTable;
    case attribute::kSlToVlRecord: return kSlToVl;
    case attribute::kVlArbitrationRecord: return kVlArbitration;
    case attribute::kLinearForwardingRecord: return kLinearForwarding;
    case attribute::kMulticastForwardingRecord: return kMulticastForwarding;
    default: return {};
  }
}

bool matches(std::uint16_t attribute, std::uint64_t mask, std::span<const std::byte> request,
             std::span<const std::byte> record) {
  const std::span<const Component> components = components_of(attribute);
  std::optional<Selector> selector;  // of this component
  for (std::size_t i = 0; i < components.size(); ++i) {
    const Component& component = components[i];
    std::optional<Selector> next;
    switch (component.compare) {
      case Compare::Ignored: break;
      case Compare::Selector:
        if (is_set(mask, i)) next = static_cast<Selector>(get(request, component.field));
        break;
      case Compare::Equal:
        if (is_set(mask, i) && !equal(request, record, component.field)) return false;
        break;
      case Compare::Number:
      case Compare::Rate:
        if (is_set(mask, i) && !compare_selected(component, selector, request, record)) {
          return false;
        }
        break;
    }
    selector = next;
  }
  return true;
}

void copy_components(std::uint16_t attribute, std::uint64_t mask, std::span<const std::byte> from,
                     std::span<std::byte> to) {
  const std::span<const Component> components = components_of(attribute);
  for (std::size_t i = 0; i < components.size(); ++i) {
    const Field field = components[i].field;
    if (!is_set(mask, i) || field.width == 0) continue;
    if (field.width <= 64) {
      put(to, field, get(from, field));
    } else {
      std::memcpy(to.data() + field.byte, from.data() + field.byte, field.width / 8);
    }
  }
}

}  // namespace ib::sa
