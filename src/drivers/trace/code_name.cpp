// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/trace/code_name.h"

#include "verbs/control_sm.h"
#include "verbs/control_streams.h"
#include "verbs/control_topology.h"
#include "verbs/services/open_service.h"

#include <algorithm>
#include <array>

namespace ib::drivers {

using verbs::WrOpcode;
using verbs::control::Code;

namespace {

const char* topology_code_name(verbs::control::TopologyCode code) {
  using verbs::control::TopologyCode;
  switch (code) {
    case TopologyCode::Topology: return "Topology";
    case TopologyCode::Path: return "Path";
    case TopologyCode::SetCable: return "SetCable";
    case TopologyCode::ChangeCable: return "ChangeCable";
    case TopologyCode::CableErrors: return "CableErrors";
    case TopologyCode::ChangeSwitch: return "ChangeSwitch";
  }
  return "an unknown request";
}

const char* stream_code_name(verbs::control::StreamCode code) {
  using verbs::control::StreamCode;
  switch (code) {
    case StreamCode::Listen: return "StreamListen";
    case StreamCode::Unlisten: return "StreamUnlisten";
    case StreamCode::Connect: return "StreamConnect";
    case StreamCode::Accept: return "StreamAccept";
    case StreamCode::Open: return "StreamOpen";
    case StreamCode::Grow: return "StreamGrow";
  }
  return "an unknown request";
}

const char* sa_code_name(verbs::control::SaCode code) {
  using verbs::control::SaCode;
  switch (code) {
    case SaCode::QueryPath: return "SaQueryPath";
    case SaCode::Register: return "SaRegister";
    case SaCode::Subscribe: return "SaSubscribe";
    case SaCode::Join: return "SaJoin";
    case SaCode::WaitEvent: return "SaWaitEvent";
    case SaCode::Destroy: return "SaDestroy";
  }
  return "an unknown request";
}

const char* cm_code_name(verbs::control::CmCode code) {
  using verbs::control::CmCode;
  switch (code) {
    case CmCode::Listen: return "CmListen";
    case CmCode::GetRequest: return "CmGetRequest";
    case CmCode::Connect: return "CmConnect";
    case CmCode::Establish: return "CmEstablish";
    case CmCode::Accept: return "CmAccept";
    case CmCode::Reject: return "CmReject";
    case CmCode::Delay: return "CmDelay";
    case CmCode::Disconnect: return "CmDisconnect";
    case CmCode::ConfirmDisconnect: return "CmConfirmDisconnect";
    case CmCode::WaitEvent: return "CmWaitEvent";
    case CmCode::LoadPath: return "CmLoadPath";
    case CmCode::AnswerPath: return "CmAnswerPath";
    case CmCode::PathMigrated: return "CmPathMigrated";
    case CmCode::Query: return "CmQuery";
    case CmCode::Resolve: return "CmResolve";
    case CmCode::Respond: return "CmRespond";
    case CmCode::Destroy: return "CmDestroy";
  }
  return "an unknown request";
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
const char* code_name(std::uint32_t code) {
  if (verbs::control::is_topology(code)) {
    return topology_code_name(static_cast<verbs::control::TopologyCode>(code));
  }
  if (verbs::control::is_sm(code)) return "Sm";
  if (verbs::control::is_sa(code)) return sa_code_name(static_cast<verbs::control::SaCode>(code));
  if (verbs::control::is_cm(code)) return cm_code_name(static_cast<verbs::control::CmCode>(code));
  if (verbs::control::is_service(code)) return "OpenService";
  if (verbs::control::is_stream(code)) {
    return stream_code_name(static_cast<verbs::control::StreamCode>(code));
  }
  switch (static_cast<Code>(code)) {
    case Code::Ping: return "Ping";
    case Code::Status: return "Status";
    case Code::TraceRead: return "TraceRead";
    case Code::Shutdown: return "Shutdown";
    case Code::ViewStat: return "ViewStat";
    case Code::ViewOpen: return "ViewOpen";
    case Code::ViewList: return "ViewList";
    case Code::SetPort: return "SetPort";
    case Code::Keep: return "Keep";
    case Code::Devices: return "Devices";
    case Code::ListNames: return "ListNames";
    case Code::ChangeHca: return "ChangeHca";
    case Code::ChangePartition: return "ChangePartition";
    case Code::SetPower: return "SetPower";
    case Code::ChangeDriver: return "ChangeDriver";
    case Code::Attach: return "Attach";
    case Code::Open: return "Open";
    case Code::Close: return "Close";
    case Code::WaitEvent: return "WaitEvent";
    case Code::RaiseEvent: return "RaiseEvent";
    case Code::TraceError: return "TraceError";
    case Code::CreateChannel: return "CreateChannel";
    case Code::DestroyChannel: return "DestroyChannel";
    case Code::GetChannel: return "GetChannel";
    case Code::CreateBacking: return "CreateBacking";
    case Code::DestroyBacking: return "DestroyBacking";
    case Code::GetBacking: return "GetBacking";
    case Code::SetAddresses: return "SetAddresses";
    case Code::OpenRdmaCm: return "OpenRdmaCm";
    case Code::RdmaCm: return "RdmaCm";
    case Code::OpenMailbox: return "OpenMailbox";
    case Code::SetIpInterface: return "SetIpInterface";
    case Code::Resources: return "Resources";
    case Code::QueryCa: return "QueryCa";
    case Code::QueryPort: return "QueryPort";
    case Code::ModifyPort: return "ModifyPort";
    case Code::QueryGid: return "QueryGid";
    case Code::QueryPkey: return "QueryPkey";
    case Code::LocalMad: return "LocalMad";
    case Code::RegPhysical: return "RegPhysical";
    case Code::ReregPhysical: return "ReregPhysical";
    case Code::AllocPd: return "AllocPd";
    case Code::DeallocPd: return "DeallocPd";
    case Code::RegMr: return "RegMr";
    case Code::ReregMr: return "ReregMr";
    case Code::DeregMr: return "DeregMr";
    case Code::AllocMw: return "AllocMw";
    case Code::DeallocMw: return "DeallocMw";
    case Code::AllocDm: return "AllocDm";
    case Code::FreeDm: return "FreeDm";
    case Code::QueryMr: return "QueryMr";
    case Code::CreateAh: return "CreateAh";
    case Code::DestroyAh: return "DestroyAh";
    case Code::CreateCq: return "CreateCq";
    case Code::ResizeCq: return "ResizeCq";
    case Code::DestroyCq: return "DestroyCq";
    case Code::OpenXrcd: return "OpenXrcd";
    case Code::CloseXrcd: return "CloseXrcd";
    case Code::CreateSrq: return "CreateSrq";
    case Code::ModifySrq: return "ModifySrq";
    case Code::QuerySrq: return "QuerySrq";
    case Code::DestroySrq: return "DestroySrq";
    case Code::CreateQp: return "CreateQp";
    case Code::OpenQp: return "OpenQp";
    case Code::ModifyQp: return "ModifyQp";
    case Code::QueryQp: return "QueryQp";
    case Code::DestroyQp: return "DestroyQp";
    case Code::AttachMcast: return "AttachMcast";
    case Code::DetachMcast: return "DetachMcast";
  }
  return "an unknown request";
}

namespace {

struct Verb {
  Code code;
  const char* name;
};
constexpr std::array kVerbs = std::to_array<Verb>({
    {Code::QueryCa, "ibv_query_device"},
    {Code::QueryPort, "ibv_query_port"},
    {Code::QueryGid, "ibv_query_gid"},
    {Code::QueryPkey, "ibv_query_pkey"},
    {Code::AllocPd, "ibv_alloc_pd"},
    {Code::DeallocPd, "ibv_dealloc_pd"},
    {Code::RegMr, "ibv_reg_mr"},
    {Code::ReregMr, "ibv_rereg_mr"},
    {Code::DeregMr, "ibv_dereg_mr"},
    {Code::AllocMw, "ibv_alloc_mw"},
    {Code::DeallocMw, "ibv_dealloc_mw"},
    {Code::AllocDm, "ibv_alloc_dm"},
    {Code::FreeDm, "ibv_free_dm"},
    {Code::CreateAh, "ibv_create_ah"},
    {Code::DestroyAh, "ibv_destroy_ah"},
    {Code::CreateChannel, "ibv_create_comp_channel"},
    {Code::CreateCq, "ibv_create_cq"},
    {Code::ResizeCq, "ibv_resize_cq"},
    {Code::DestroyCq, "ibv_destroy_cq"},
    {Code::OpenXrcd, "ibv_open_xrcd"},
    {Code::CloseXrcd, "ibv_close_xrcd"},
    {Code::CreateSrq, "ibv_create_srq"},
    {Code::ModifySrq, "ibv_modify_srq"},
    {Code::QuerySrq, "ibv_query_srq"},
    {Code::DestroySrq, "ibv_destroy_srq"},
    {Code::CreateQp, "ibv_create_qp"},
    {Code::OpenQp, "ibv_open_qp"},
    {Code::ModifyQp, "ibv_modify_qp"},
    {Code::QueryQp, "ibv_query_qp"},
    {Code::DestroyQp, "ibv_destroy_qp"},
    {Code::AttachMcast, "ibv_attach_mcast"},
    {Code::DetachMcast, "ibv_detach_mcast"},
});

}  // namespace

const char* verb_name(std::uint32_t code) {
  const auto* const found = std::find_if(kVerbs.begin(), kVerbs.end(), [code](const Verb& verb) {
    return verb.code == static_cast<Code>(code);
  });
  return found != kVerbs.end() ? found->name : code_name(code);
}

const char* opcode_name(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::RdmaWrite: return "RDMA_WRITE";
    case WrOpcode::RdmaWriteWithImm: return "RDMA_WRITE_WITH_IMM";
    case WrOpcode::Send: return "SEND";
    case WrOpcode::SendWithImm: return "SEND_WITH_IMM";
    case WrOpcode::RdmaRead: return "RDMA_READ";
    case WrOpcode::AtomicCmpSwap: return "ATOMIC_CMP_AND_SWP";
    case WrOpcode::AtomicFetchAdd: return "ATOMIC_FETCH_AND_ADD";
    case WrOpcode::LocalInv: return "LOCAL_INV";
    case WrOpcode::BindMw: return "BIND_MW";
    case WrOpcode::SendWithInv: return "SEND_WITH_INV";
    case WrOpcode::AtomicWrite: return "ATOMIC_WRITE";
    case WrOpcode::Flush: return "FLUSH";
  }
  return "an unknown operation";
}

}  // namespace ib::drivers
