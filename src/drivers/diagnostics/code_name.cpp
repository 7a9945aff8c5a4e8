// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/diagnostics/code_name.h"

namespace ib::drivers {

using verbs::WcStatus;
using verbs::WrOpcode;
using verbs::control::Cause;
using verbs::control::Code;

const char* code_name(std::uint32_t code) {
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

const char* cause_name(Cause cause) {
  switch (cause) {
    case Cause::None: return "none";
    case Cause::LocalKeyUnknown: return "local_key_unknown";
    case Cause::LocalKeyOtherPd: return "local_key_other_pd";
    case Cause::LocalKeyAccess: return "local_key_access";
    case Cause::LocalKeyRange: return "local_key_range";
    case Cause::LocalLength: return "local_length";
    case Cause::RemoteKeyUnknown: return "remote_key_unknown";
    case Cause::RemoteKeyOtherPd: return "remote_key_other_pd";
    case Cause::RemoteKeyAccess: return "remote_key_access";
    case Cause::RemoteKeyRange: return "remote_key_range";
    case Cause::RemoteQpAccess: return "remote_qp_access";
    case Cause::RemoteAlignment: return "remote_alignment";
    case Cause::RemoteLength: return "remote_length";
    case Cause::RemoteReceiveKey: return "remote_receive_key";
    case Cause::NoReceive: return "no_receive";
    case Cause::PeerNotReady: return "peer_not_ready";
    case Cause::PeerUnknown: return "peer_unknown";
    case Cause::PeerProcessGone: return "peer_process_gone";
    case Cause::PortDown: return "port_down";
    case Cause::MemoryGone: return "memory_gone";
    case Cause::ReadDepth: return "read_depth";
    case Cause::WindowBind: return "window_bind";
    case Cause::CqOverflow: return "cq_overflow";
    case Cause::QpFlushed: return "qp_flushed";
    case Cause::XrcReceiveQueue: return "xrc_receive_queue";
    case Cause::PkeyMismatch: return "pkey_mismatch";
    case Cause::QkeyMismatch: return "qkey_mismatch";
    case Cause::HcaAsleep: return "hca_asleep";
    case Cause::HcaRemoved: return "hca_removed";
    case Cause::LocalPieces: return "local_pieces";
    case Cause::PsnMismatch: return "psn_mismatch";
    case Cause::MtuMismatch: return "mtu_mismatch";
    case Cause::RemoteInvalidate: return "remote_invalidate";
    case Cause::LocalMemoryGone: return "local_memory_gone";
  }
  return "unknown";
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
  }
  return "an unknown operation";
}

const char* wc_status_name(WcStatus status) {
  switch (status) {
    case WcStatus::Success: return "IBV_WC_SUCCESS";
    case WcStatus::LocLenErr: return "IBV_WC_LOC_LEN_ERR";
    case WcStatus::LocQpOpErr: return "IBV_WC_LOC_QP_OP_ERR";
    case WcStatus::LocEecOpErr: return "IBV_WC_LOC_EEC_OP_ERR";
    case WcStatus::LocProtErr: return "IBV_WC_LOC_PROT_ERR";
    case WcStatus::WrFlushErr: return "IBV_WC_WR_FLUSH_ERR";
    case WcStatus::MwBindErr: return "IBV_WC_MW_BIND_ERR";
    case WcStatus::BadRespErr: return "IBV_WC_BAD_RESP_ERR";
    case WcStatus::LocAccessErr: return "IBV_WC_LOC_ACCESS_ERR";
    case WcStatus::RemInvReqErr: return "IBV_WC_REM_INV_REQ_ERR";
    case WcStatus::RemAccessErr: return "IBV_WC_REM_ACCESS_ERR";
    case WcStatus::RemOpErr: return "IBV_WC_REM_OP_ERR";
    case WcStatus::RetryExcErr: return "IBV_WC_RETRY_EXC_ERR";
    case WcStatus::RnrRetryExcErr: return "IBV_WC_RNR_RETRY_EXC_ERR";
    case WcStatus::LocRddViolErr: return "IBV_WC_LOC_RDD_VIOL_ERR";
    case WcStatus::RemInvRdReqErr: return "IBV_WC_REM_INV_RD_REQ_ERR";
    case WcStatus::RemAbortErr: return "IBV_WC_REM_ABORT_ERR";
    case WcStatus::InvEecnErr: return "IBV_WC_INV_EECN_ERR";
    case WcStatus::InvEecStateErr: return "IBV_WC_INV_EEC_STATE_ERR";
    case WcStatus::FatalErr: return "IBV_WC_FATAL_ERR";
    case WcStatus::RespTimeoutErr: return "IBV_WC_RESP_TIMEOUT_ERR";
    case WcStatus::GeneralErr: return "IBV_WC_GENERAL_ERR";
  }
  return "an unknown status";
}

}  // namespace ib::drivers
