// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The control interface of softibd: the ioctls that a user-mode client sends down a device stack
// (docs/design/0010). Public, fixed layout, the same on 32 and 64 bit. This header is all of it:
// the messages and codes are here, the buffers in control_buffers.h, and control_layout.h fails to
// compile if an offset ever changes.
//
// Transport: an AF_UNIX SOCK_SEQPACKET socket (mode 0600, same uid only). One request is one
// message: RequestHeader + input buffer; one answer is one message: ReplyHeader + output buffer.
// Both may also go through a page that the two sides share (OpenMailbox).
// Answers carry the request's tag and may come in any order; a request may pend without end
// (WaitEvent). Up to kMaxFds file descriptors ride with a message (SCM_RIGHTS). If the status is
// not Ok the output buffer holds the reason as a UTF-8 text, not terminated.
//
// A connection is one *client*. When it closes, for any reason, softibd closes its files and tears
// down everything they own, in dependency order.
//
// Numbers are in the byte order of the machine. The input buffer has exactly the size of the
// structure that the code names; any other size is refused; new fields come with new codes.
//
// Errors that any request may get, besides those that its code names:
//   Malformed              the header contradicts the message, or its reserved field is not 0
//   NotSupported           softibd does not have the code
//   InvalidParameter       the wrong size of the input buffer; a fabric code sent to a file, or the
//                          other way round
//   NotFound               the file is not open
//   Disconnected           the file is being closed, or the client is ending
//   DeviceRemoved          the HCA was pulled out; requests that destroy and Close still work
//   Cancelled              the file was closed, or the process ended, while the request was pending
//   InsufficientResources  more than kMaxFds descriptors came, or softibd could not hold them, or
//                          has none left for the answer
//   IoError                the system refused what the answer was to bring (codes that bring fds)
// A handle names an object of the file that the request goes to (channels and backings: of the
// process). A destroyed one, or one of another client, gives InvalidParameter.
#pragma once

#include "base/result.h"
#include "verbs/control_buffers.h"
#include "verbs/control_layout.h"
#include "verbs/control_rdma_cm.h"
#include "verbs/control_tree.h"

#include <cstdint>
#include <string_view>

namespace ib::verbs::control {

inline constexpr std::uint32_t kMaxMessage = 64 * 1024;
// The addresses of a node: "/etc/softib/hosts/node1". No program sees it, only the preload library
// opens it (ViewOpen).
inline constexpr std::string_view kHostsFolder = "/etc/softib/hosts/";
inline constexpr std::uint32_t kMaxFds = 2;

struct RequestHeader {
  std::uint32_t length = 0;  // header and input buffer, in bytes
  std::uint32_t code = 0;    // Code
  std::uint64_t tag = 0;     // returned in the answer
  std::uint32_t file = 0;    // 0: the fabric itself; else what Open returned
  std::uint32_t reserved = 0;
};
struct ReplyHeader {
  std::uint32_t length = 0;
  std::uint32_t status = 0;  // ib::Status
  std::uint64_t tag = 0;
  std::uint64_t information = 0;  // the handle of a created object, or a count
};
IB_SIZE(RequestHeader, 24);
IB_FIELD(RequestHeader, length, 0, 4);
IB_FIELD(RequestHeader, code, 4, 4);
IB_FIELD(RequestHeader, tag, 8, 8);
IB_FIELD(RequestHeader, file, 16, 4);
IB_FIELD(RequestHeader, reserved, 20, 4);
IB_SIZE(ReplyHeader, 24);
IB_FIELD(ReplyHeader, length, 0, 4);
IB_FIELD(ReplyHeader, status, 4, 4);
IB_FIELD(ReplyHeader, tag, 8, 8);
IB_FIELD(ReplyHeader, information, 16, 8);

// Each code: input buffer -> output buffer, what else comes back (descriptors; `information`, where
// it has a meaning), and the errors of its own after "!".
enum class Code : std::uint32_t {
  // --- File 0, no Attach needed: tools, the sysfs of the preload library ---

  // - -> -. Succeeds if softibd answers.
  Ping = 1,
  // - -> -; fd: memfd with the JSON text (docs/status_json.md)
  Status = 2,
  // TraceReadIn -> -; fd: memfd with text lines; information = bytes
  TraceRead = 3,
  // - -> -. `softib down`.
  Shutdown = 4,
  // ViewIn -> ViewStatOut.  ! NotFound: no such node or path
  ViewStat = 5,
  // ViewIn -> ViewStatOut; fd: memfd with the content (regular files only).  ! NotFound;
  // InvalidParameter: the file is there, but has no content (the type of a free GID entry)
  ViewOpen = 6,
  // ViewIn -> -; fd: memfd, one name per line, '\n' after each; information = bytes.
  // ! NotFound; InvalidParameter: not a directory
  ViewList = 7,
  // SetPortIn -> -. `softib port up|down`.  ! NotFound: no such port
  SetPort = 8,
  // KeepIn -> -. Sets whether the fabric outlives its last client.  ! Malformed: size; DeviceBusy:
  // it is to go now, but is kept, or others are connected
  Keep = 9,

  // --- File 0: the device tree (docs/design/0004), buffers in control_tree.h. These pend until
  // the change has happened.  ! DeviceBusy: a veto; the text names the objector and its reason ---

  // - -> -; fd: memfd with JSON: the tree, what is leaving, the drivers (docs/status_json.md)
  Devices = 10,
  // ViewIn -> -; fd: memfd with JSON: a directory of the object namespace.  ! NotFound
  ListNames = 11,
  // ChangeHcaIn -> CaName (Add; else nothing).  ! NotFound, AlreadyExists, LimitExceeded;
  // InvalidState: the host sleeps
  ChangeHca = 12,
  // ChangePartitionIn -> -.  ! NotFound, AlreadyExists, InvalidParameter, LimitExceeded
  ChangePartition = 13,
  // SetPowerIn -> -.  ! NotFound, InvalidState
  SetPower = 14,
  // ChangeDriverIn -> -.  ! NotFound, AlreadyExists, InvalidState
  ChangeDriver = 15,

  // --- File 0: the process. GetChannel, GetBacking, RaiseEvent, TraceError and WaitEvent need no
  // Attach: a client sends them on connections of their own. ---

  // AttachIn -> AttachOut; fd: device memory. Once, first.
  // ! NotSupported: another interface version; InvalidParameter: unknown flags; InvalidState:
  // attached already; NotFound: no such
  // node; InsufficientResources: all process slots are taken
  Attach = 16,
  // OpenIn -> OpenOut; information = file.
  // ! Malformed: size; InvalidState: not attached; NotFound: no such device on this node;
  // InvalidParameter: no GUID, or none although the node has several HCAs; LimitExceeded: as many
  // files are open as the client may have (8,192 of softibd); DeviceBusy: it is being removed
  Open = 17,
  // CloseIn -> -. Ends pending requests of the file and takes away all that it owns.
  // ! Malformed: size; NotFound: not open
  Close = 18,
  // - or GenerationIn (slot and generation of the process to wait for) -> EventOut. Pends until
  // there is an event.  ! Disconnected: no such process attached; AccessDenied: another process
  WaitEvent = 19,
  // RaiseEventIn -> -. A poster reports to the owner of a peer object. Ok also if that is gone.
  // ! InvalidParameter: no event that this kind of object has
  RaiseEvent = 20,
  // TraceErrorIn -> -.  ! InvalidParameter: no such queue pair
  TraceError = 21,
  // - -> -; brings fds: pipe read end, write end; information = channel.
  // ! InvalidState: not attached; InvalidParameter: no pipe; InsufficientResources
  CreateChannel = 22,
  // IndexIn -> -.  ! DeviceBusy: completion queues use it
  DestroyChannel = 23,
  // GenerationIn -> -; fds: read end, write end.  ! NotFound: gone
  GetChannel = 24,
  // BackingIn -> BackingOut; brings fd: memfd; information = backing.
  // ! InvalidState: not attached; InvalidParameter: no memfd, not that long, or not whole pages;
  // InsufficientResources
  CreateBacking = 25,
  // IndexIn -> -.
  DestroyBacking = 26,
  // GenerationIn -> BackingOut; fd: memfd.  ! NotFound: gone
  GetBacking = 27,

  // SetAddressesIn -> -. Programs of a node are about to run in this network namespace: the node
  // takes the addresses of its interfaces, as far as no other node has them, or its default ones
  // where they have none or softibd runs there too. Addresses that were configured stay. No Attach
  // needed.
  // ! NotFound: no such node; InvalidParameter: an address that no node can have, or the name of an
  // interface; DeviceBusy: programs of the node use an address that would go
  SetAddresses = 28,

  // OpenRdmaCmIn -> -; information = a number for RdmaCm. This connection is an open
  // /dev/infiniband/rdma_cm from now on: it is readable (an answer with tag 0 and no output comes)
  // while events wait, and its end closes the file. No Attach needed.
  // ! NotFound: no such node; InvalidState: it is one already
  OpenRdmaCm = 29,
  // RdmaCmIn -> RdmaCmOut. A command for an open file, by any connection.
  RdmaCm = 30,

  // - -> -; fd: a mailbox of this connection (linux/mailbox.h). No Attach needed.
  // ! InvalidState: it has one already; InsufficientResources
  OpenMailbox = 31,

  // SetIpInterfaceIn -> -. A network interface of IP over InfiniBand that this process drives in
  // the network of its node, with its addresses in place of those before; port 0: it is gone. It
  // goes with the process.
  // ! InvalidState: not attached; NotFound: the node has no such HCA or port; InvalidParameter: a
  // name, P_Key, address or prefix that no interface has; LimitExceeded: the node has 512
  SetIpInterface = 46,
  // - -> -; fd: memfd with JSON: the objects of each program (docs/status_json.md). No Attach
  // needed.
  Resources = 47,

  // --- A file of an HCA. InvalidParameter: a handle or value in the buffer is wrong.
  // InsufficientResources: a table, device memory, or what the HCA reports as its limit is used up.
  // DeviceBusy: others depend on the object, or another request is changing it; nothing was
  // changed.
  // ---

  // - -> CaAttr.
  QueryCa = 32,
  // PortIn -> PortAttr.  ! InvalidParameter
  QueryPort = 33,
  // ModifyPortIn -> -.  ! InvalidParameter; NotSupported: InitType
  ModifyPort = 34,
  // TableIn -> GidOut.  ! InvalidParameter
  QueryGid = 35,
  // TableIn -> PkeyOut.  ! InvalidParameter
  QueryPkey = 36,
  // MadIn -> MadOut. Queries the agents of a port: a Get is answered at once, without a packet and
  // without another thread.  ! InvalidParameter: no such port, or no request to its agents
  LocalMad = 37,

  // - -> -; information = PD.  ! InsufficientResources
  AllocPd = 48,
  // IndexIn -> -.  ! InvalidParameter, DeviceBusy
  DeallocPd = 49,
  // RegMrIn -> MrOut; information = region or window.  ! InvalidParameter, InsufficientResources
  RegMr = 50,
  // ReregMrIn -> MrOut; information = region or window.
  // ! InvalidParameter; DeviceBusy: also while windows are bound to it
  ReregMr = 51,
  // IndexIn -> -.  ! InvalidParameter; DeviceBusy: also while windows are bound to it
  DeregMr = 52,
  // AllocMwIn -> MrOut; information = region or window.  ! InvalidParameter, InsufficientResources
  AllocMw = 53,
  // IndexIn -> -.  ! InvalidParameter
  DeallocMw = 54,
  // AllocDmIn -> DmOut; information = DM.  ! InvalidParameter, InsufficientResources
  AllocDm = 55,
  // IndexIn -> -.  ! InvalidParameter, DeviceBusy
  FreeDm = 56,
  // IndexIn -> MrOut; information = region or window. For import.  ! InvalidParameter
  QueryMr = 57,
  // PhysicalIn -> MrOut; information = region. Kernel clients only.
  // ! AccessDenied, InvalidParameter, InsufficientResources
  RegPhysical = 58,
  // PhysicalIn -> MrOut; information = region. Any region of memory, however it was registered,
  // covers these ranges from now on. Kernel clients only.
  // ! AccessDenied, InvalidParameter, InsufficientResources; DeviceBusy: also while windows are
  // bound to it
  ReregPhysical = 59,

  // CreateAhIn -> -; information = AH.  ! InvalidParameter, InsufficientResources
  CreateAh = 64,
  // IndexIn -> -.  ! InvalidParameter
  DestroyAh = 65,
  // CreateCqIn -> CqOut; information = CQ.  ! InvalidParameter, InsufficientResources
  CreateCq = 66,
  // ResizeCqIn -> CqOut; information = CQ.
  // ! InvalidParameter: also if more completions wait than would fit; InsufficientResources;
  // DeviceBusy; Timeout: a process holds the queue's lock
  ResizeCq = 67,
  // IndexIn -> -.  ! InvalidParameter, DeviceBusy
  DestroyCq = 68,
  // OpenXrcdIn -> -; information = XRCD.
  // ! InvalidParameter; AlreadyExists and NotFound: by the flags; InsufficientResources
  OpenXrcd = 69,
  // IndexIn -> -.  ! InvalidParameter; DeviceBusy: the file's own queues use it
  CloseXrcd = 70,
  // CreateSrqIn -> SrqOut; information = SRQ.  ! InvalidParameter, InsufficientResources
  CreateSrq = 71,
  // ModifySrqIn -> SrqOut; information = SRQ.  ! InvalidParameter; NotSupported: resizing
  ModifySrq = 72,
  // IndexIn -> SrqOut; information = SRQ.  ! InvalidParameter
  QuerySrq = 73,
  // IndexIn -> -.  ! InvalidParameter, DeviceBusy
  DestroySrq = 74,
  // CreateQpIn -> QpOut; information = QP.
  // ! InvalidParameter, InsufficientResources; AccessDenied: Smi and Gsi are for kernel clients;
  // AlreadyExists: another client has that queue pair of the port
  CreateQp = 75,
  // OpenQpIn -> QpOut; information = QP. XRC receive queue pairs of the domain.  ! InvalidParameter
  OpenQp = 76,
  // ModifyQpIn -> ModifyQpOut; information = QP.
  // ! InvalidParameter: also a transition or attribute that its state does not allow; InvalidState:
  // not in cur_state, or it went to Error meanwhile; DeviceBusy
  ModifyQp = 77,
  // IndexIn -> QueryQpOut; information = QP.  ! InvalidParameter
  QueryQp = 78,
  // IndexIn -> -.  ! InvalidParameter; DeviceBusy: also while attached to multicast groups
  DestroyQp = 79,
  // McastIn -> -.  ! InvalidParameter, InsufficientResources
  AttachMcast = 80,
  // McastIn -> -.  ! InvalidParameter: also if it is not attached
  DetachMcast = 81,
};

}  // namespace ib::verbs::control
