// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Part of verbs/control.h: the input and output buffers of the control codes. Fields have fixed
// widths, padding is explicit and zero, there are no pointers; control_layout.h holds every offset.
#pragma once

#include "verbs/cause.h"
#include "verbs/limits.h"
#include "verbs/types.h"

#include <array>
#include <cstdint>

namespace ib::verbs::control {

inline constexpr std::uint32_t kAbiVersion = 2;
inline constexpr std::uint32_t kNoIndex = 0xffffffffu;
// Instead of a completion channel, for kernel clients only: completion events are asynchronous
// events of the completion queue (EventType::Completion).
inline constexpr std::uint32_t kKernelChannel = 0xfffffffeu;

// A handle names an object in requests: the place of the object in its table (20 bits), a count of
// how often that place was given out (8 bits), and the kind of object (4 bits). So a handle that is
// stale, made up or of another kind names no object. Device memory and events use the place alone,
// its index.
enum class HandleKind : std::uint32_t {
  Pd = 1,
  Key,  // memory regions and windows
  DeviceMemory,
  Ah,
  Cq,
  Xrcd,
  Srq,
  Qp,
  Channel,
  Backing,
  McastGroup,  // never given to a client
};
inline constexpr std::uint32_t kHandleIndexBits = 20;
inline constexpr std::uint32_t kHandleCountBits = 8;
constexpr std::uint32_t index_of(std::uint32_t handle) {
  return handle & ((1u << kHandleIndexBits) - 1);
}
constexpr std::uint32_t handle_of(HandleKind kind, std::uint32_t count, std::uint32_t index) {
  const std::uint32_t low = count & ((1u << kHandleCountBits) - 1);
  return static_cast<std::uint32_t>(kind) << (kHandleIndexBits + kHandleCountBits) |
         low << kHandleIndexBits | index;
}

struct IndexIn {
  std::uint32_t index = 0;  // a handle
  std::uint32_t reserved = 0;
};
struct GenerationIn {  // an object of another process, named by index and generation
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
};

// --- tools and views ---

struct TraceReadIn {
  std::uint64_t after =
      0;  // lines with a greater sequence number; each line starts with its number
};
struct ViewIn {
  std::array<char, 64> node{};   // virtual host, NUL terminated; empty: the first one
  std::array<char, 256> path{};  // absolute, normalised: "/sys/class/infiniband/softib0/node_type"
};
enum class ViewKind : std::uint32_t { File = 1, Directory = 2, Link = 3, CharDevice = 4 };
struct ViewStatOut {
  ViewKind kind = ViewKind::File;
  std::uint32_t mode = 0;  // permission bits
  std::uint64_t size = 0;
  std::uint32_t device_major = 0;  // of a character device
  std::uint32_t device_minor = 0;
  // Of a link: where it leads, from its own directory. Else: the path, without links on the way.
  std::array<char, 256> target{};
};
struct SetPortIn {
  std::array<char, 64> node{};
  std::array<char, 64> ca{};
  std::uint32_t port = 0;
  std::uint32_t up = 0;
};
struct InterfaceAddress {
  std::array<std::uint8_t, 16> ip{};  // IPv4: ::ffff:a.b.c.d
  std::array<char, 16> interface {};  // NUL terminated
};
inline constexpr std::uint32_t kMaxInterfaceAddresses = 64;
struct SetAddressesIn {
  std::array<char, 64> node{};
  std::uint64_t network_namespace = 0;  // number of its inode (/proc/PID/ns/net)
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::array<InterfaceAddress, kMaxInterfaceAddresses> addresses{};
};
struct PrefixedAddress {
  std::array<std::uint8_t, 16> ip{};  // IPv4: ::ffff:a.b.c.d
  std::uint32_t bits = 0;             // of its network; of IPv4 0 to 32
};
struct SetIpInterfaceIn {
  std::array<char, 16> name{};          // NUL terminated
  std::uint64_t network_namespace = 0;  // number of its inode (/proc/PID/ns/net)
  std::uint64_t node_guid = 0;          // of the HCA
  std::uint32_t port = 0;               // of the HCA
  std::uint32_t index = 0;              // as if_nametoindex()
  std::uint16_t pkey = 0;
  std::uint16_t connected_mode = 0;
  std::array<std::uint8_t, 20> hardware_address{};  // flags, QPN, GID [RFC 4391 9.1]
  std::uint32_t count = 0;
  std::array<PrefixedAddress, kMaxInterfaceAddresses> addresses{};
  std::uint32_t reserved = 0;
};
struct KeepIn {
  std::uint32_t keep = 0;
  // 1, with keep 0: end now, if no client needs it.
  std::uint32_t go_now = 0;
};

// --- the process ---

struct AttachIn {
  std::uint32_t abi = kAbiVersion;
  std::uint32_t flags = 0;         // attach_flag
  std::array<char, 64> node{};     // empty: the first node of the fabric
  std::array<char, 64> program{};  // for people: `softib status`, error texts
};
namespace attach_flag {
inline constexpr std::uint32_t kCaEvents = 1;   // report HCAs of the node that come and go
inline constexpr std::uint32_t kAttention = 2;  // report rings of its doorbell, if it listens
}  // namespace attach_flag
struct CaName {
  std::array<char, 64> name{};  // softib0
  std::uint64_t node_guid = 0;  // host byte order
};
struct AttachOut {
  std::uint32_t slot = 0;  // of this process in device memory
  std::uint32_t slot_generation = 0;
  std::uint64_t arena_size = 0;  // address space to reserve for device memory
  std::array<char, 64> node{};
  std::uint32_t ca_count = 0;
  std::uint32_t reserved = 0;
  std::array<CaName, 16> cas{};
};
struct OpenIn {
  std::array<char, 128> path{};  // \Device\ibal\<CA GUID, 16 hex digits> | \Device\ibal (one CA)
};
struct OpenOut {
  CaName ca;
  std::uint32_t ca_index = 0;    // into the fabric's table of HCAs
  std::uint32_t first_port = 0;  // index of port 1 in device memory's port table
};
struct CloseIn {
  std::uint32_t file = 0;
  std::uint32_t reserved = 0;
};
// Way: no event, but a poster that needs a way through the switches; its WayKey is in `index`
// (upper half) and `generation` (hca/layout/way_table.h).
enum class EventObject : std::uint32_t { Device = 0, Port = 1, Cq = 2, Qp = 3, Srq = 4, Way = 5 };
struct EventOut {
  EventType type = EventType::CqErr;
  EventObject object = EventObject::Device;
  std::uint32_t file = 0;
  std::uint32_t index = 0;   // object index, or port number
  std::uint64_t cookie = 0;  // as given when the object was created
};
struct RaiseEventIn {
  EventObject object = EventObject::Qp;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;  // must match the object's, else the event is dropped
  EventType type = EventType::CqErr;
};

struct TraceErrorIn {
  std::uint32_t qp_index = 0;  // the poster's
  std::uint32_t peer_qpn = 0;
  WcStatus status = WcStatus::Success;       // on the poster's side
  WcStatus peer_status = WcStatus::Success;  // what the peer's receive got, if one was consumed
  WrOpcode opcode = WrOpcode::Send;
  Cause cause = Cause::None;
  std::uint64_t detail = 0;
  std::uint64_t wr_id = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t key = 0;
  std::uint32_t reserved = 0;
};
struct BackingIn {
  std::uint64_t size = 0;  // bytes, a multiple of the page size; the memfd has that size
};
struct BackingOut {
  std::uint64_t size = 0;
  std::uint32_t generation = 0;
  std::uint32_t reserved = 0;
};

// --- HCA ---

struct CaAttr {
  std::array<char, 64> fw_ver{};
  std::uint64_t node_guid = 0;
  std::uint64_t sys_image_guid = 0;
  std::uint64_t max_mr_size = 0;
  std::uint64_t page_size_cap = 0;
  std::uint32_t vendor_id = 0;
  std::uint32_t vendor_part_id = 0;
  std::uint32_t hw_ver = 0;
  std::uint32_t max_qp = 0;
  std::uint32_t max_qp_wr = 0;
  std::uint32_t device_cap_flags = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_sge_rd = 0;
  std::uint32_t max_cq = 0;
  std::uint32_t max_cqe = 0;
  std::uint32_t max_mr = 0;
  std::uint32_t max_pd = 0;
  std::uint32_t max_qp_rd_atom = 0;
  std::uint32_t max_qp_init_rd_atom = 0;
  std::uint32_t max_res_rd_atom = 0;
  std::uint32_t max_mw = 0;
  std::uint32_t max_mcast_grp = 0;
  std::uint32_t max_mcast_qp_attach = 0;
  std::uint32_t max_total_mcast_qp_attach = 0;
  std::uint32_t max_ah = 0;
  std::uint32_t max_srq = 0;
  std::uint32_t max_srq_wr = 0;
  std::uint32_t max_srq_sge = 0;
  std::uint32_t max_inline = 0;
  std::uint32_t max_xrcd = 0;
  std::uint32_t max_pkeys = 0;
  std::uint32_t local_ca_ack_delay = 0;
  std::uint32_t port_count = 0;
  std::uint64_t max_dm_size = 0;
};
struct PortIn {
  std::uint32_t port = 0;
  std::uint32_t reserved = 0;
};
struct PortAttr {
  PortState state = PortState::Down;
  Mtu max_mtu = Mtu::B4096;
  Mtu active_mtu = Mtu::B4096;
  std::uint32_t gid_tbl_len = 0;
  std::uint32_t port_cap_flags = 0;
  std::uint32_t max_msg_sz = 0;
  std::uint32_t bad_pkey_cntr = 0;
  std::uint32_t qkey_viol_cntr = 0;
  std::uint32_t pkey_tbl_len = 0;
  std::uint16_t lid = 0;
  std::uint16_t sm_lid = 0;
  std::uint8_t lmc = 0;
  std::uint8_t max_vl_num = 0;
  std::uint8_t sm_sl = 0;
  std::uint8_t subnet_timeout = 0;
  std::uint8_t init_type_reply = 0;
  std::uint8_t active_width = 0;
  std::uint8_t active_speed = 0;
  std::uint8_t phys_state = 0;
  LinkLayer link_layer = LinkLayer::InfiniBand;
  std::uint32_t flags = 0;  // port_flag
};
namespace port_flag {
inline constexpr std::uint32_t kGrhRequired = 1;  // each address vector is global
}  // namespace port_flag
struct ModifyPortIn {
  std::uint32_t port = 0;
  std::uint32_t set_cap_mask = 0;
  std::uint32_t clear_cap_mask = 0;
  std::uint32_t flags =
      0;  // bit 0: reset Q_Key violation counter, bit 1: InitType, bit 2: shutdown
};
struct TableIn {
  std::uint32_t port = 0;
  std::uint32_t index = 0;
};
struct GidOut {
  Gid gid{};  // zero: the entry is free
  GidType type = GidType::InfiniBand;
  std::uint32_t reserved = 0;
  std::array<char, 16> interface {};  // network interface; empty: none
};
struct PkeyOut {
  std::uint16_t pkey = 0;
  std::array<std::uint8_t, 6> reserved{};
};

struct MadIn {
  std::uint32_t port = 0;
  std::uint32_t reserved = 0;
  std::array<std::uint8_t, kMadBytes> mad{};  // as on a wire [IBA1 13.4.2]
};
struct MadOut {
  std::array<std::uint8_t, kMadBytes> mad{};
};

struct RegMrIn {
  std::uint32_t pd = 0;
  std::uint32_t access = 0;
  std::uint64_t address = 0;  // in the caller's address space; offset into `dm` if dm != kNoIndex
  std::uint64_t length = 0;
  std::uint64_t iova = 0;
  std::uint32_t dm = kNoIndex;
  std::uint32_t flags = 0;  // region_flag
};
namespace region_flag {
inline constexpr std::uint32_t kImplicitOdp = 1;  // the whole address space
inline constexpr std::uint32_t kNull = 2;         // null MR: reads give zeros, writes vanish
}  // namespace region_flag
// Physical registration [IBA1 10.6.2.2]: ranges that need not be neighbours, as one region.
struct PhysicalRange {
  std::uint64_t address = 0;  // in the client's memory; offset into `dm` if dm != kNoIndex
  std::uint64_t length = 0;
};
struct PhysicalIn {
  std::uint32_t pd = 0;
  std::uint32_t access = 0;
  std::uint64_t iova = 0;  // of the first byte
  std::uint32_t dm = kNoIndex;
  std::uint32_t count = 0;  // ranges
  // ReregPhysical: the region, which keeps PD, access and keys. RegPhysical: kNoIndex.
  std::uint32_t region = kNoIndex;
  std::uint32_t reserved = 0;
  // Inner boundaries have iovas that are multiples of 8, and each range the alignment of its iova,
  // so that no atomic meets one.
  std::array<PhysicalRange, limits::kMaxRanges> ranges{};
};
struct ReregMrIn {
  std::uint32_t index = 0;
  std::uint32_t change = 0;  // 1 translation, 2 PD, 4 access (ibv_rereg_mr_flags)
  RegMrIn to;
};
struct MrOut {
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
};
struct AllocMwIn {
  std::uint32_t pd = 0;
  std::uint32_t type = 0;  // 1 or 2
};
struct AllocDmIn {
  std::uint64_t length = 0;
  std::uint32_t log_align = 0;
  std::uint32_t reserved = 0;
};
struct DmOut {
  std::uint64_t offset = 0;  // in device memory
  std::uint64_t length = 0;
};
struct CreateAhIn {
  std::uint32_t pd = 0;
  std::uint32_t reserved = 0;
  AddressVector av;
};
struct CreateCqIn {
  std::uint32_t cqe = 0;
  std::uint32_t channel = kNoIndex;
  std::uint32_t comp_vector = 0;
  std::uint32_t flags = 0;  // cq_flag
  std::uint64_t cookie = 0;
};
namespace cq_flag {
inline constexpr std::uint32_t kTimestamp = 1;
inline constexpr std::uint32_t kIgnoreOverrun = 2;
}  // namespace cq_flag
struct ResizeCqIn {
  std::uint32_t index = 0;
  std::uint32_t cqe = 0;
};
struct CqOut {
  std::uint32_t cqe = 0;    // as granted
  std::uint32_t slots = 0;  // power of two > cqe
  std::uint64_t ring = 0;   // offset in device memory, slots * sizeof(hca::Cqe)
};
struct OpenXrcdIn {
  std::uint64_t inode = 0;  // 0: private; else shared by all who pass the same device and inode
  std::uint64_t device = 0;
  std::uint32_t flags = 0;  // 1: create, 2: exclusive
  std::uint32_t reserved = 0;
};
struct CreateSrqIn {
  SrqType type = SrqType::Basic;
  std::uint32_t pd = 0;
  std::uint32_t xrcd = kNoIndex;
  std::uint32_t cq = kNoIndex;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t limit = 0;
  std::uint32_t reserved = 0;
  std::uint64_t cookie = 0;
};
struct ModifySrqIn {
  std::uint32_t index = 0;
  std::uint32_t mask = 0;  // 1 max_wr, 2 limit
  std::uint32_t max_wr = 0;
  std::uint32_t limit = 0;
};
struct SrqOut {
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t limit = 0;
  std::uint32_t slots = 0;   // of the ring, a power of two >= max_wr
  std::uint64_t ring = 0;    // offset in device memory
  std::uint32_t stride = 0;  // bytes per receive request
  std::uint32_t srqn = 0;
};
struct QpCaps {
  std::uint32_t max_send_wr = 0;
  std::uint32_t max_recv_wr = 0;
  std::uint32_t max_send_sge = 0;
  std::uint32_t max_recv_sge = 0;
  std::uint32_t max_inline = 0;
  std::uint32_t reserved = 0;
};
namespace qp_flag {
inline constexpr std::uint32_t kBlockLoopback = 1;  // multicast: not to itself
// UD: sends to others with this flag, and takes from them, datagrams of several packets, up to
// limits::kMaxLargeDatagram (docs/design/0031). Not in the ABI of libibverbs.
inline constexpr std::uint32_t kTakesLarge = 2;
inline constexpr std::uint32_t kAll = kBlockLoopback | kTakesLarge;
}  // namespace qp_flag
struct CreateQpIn {
  QpType type = QpType::Rc;
  std::uint32_t pd = 0;
  std::uint32_t send_cq = kNoIndex;
  std::uint32_t recv_cq = kNoIndex;
  std::uint32_t srq = kNoIndex;
  std::uint32_t xrcd = kNoIndex;
  QpCaps caps;
  std::uint32_t flags = 0;  // qp_flag
  std::uint32_t port = 0;   // Smi, Gsi: whose
  std::uint64_t cookie = 0;
};
struct QpOut {
  std::uint32_t qpn = 0;  // Smi, Gsi: no number on the wire, but a name in device memory
  std::uint32_t generation = 0;
  QpCaps caps;                  // as granted
  std::uint64_t rq_ring = 0;    // offset in device memory; 0: none (SRQ, XRC)
  std::uint32_t rq_slots = 0;   // a power of two >= max_recv_wr
  std::uint32_t rq_stride = 0;  // bytes per receive request
};
struct OpenQpIn {
  std::uint32_t xrcd = 0;
  std::uint32_t qpn = 0;
  std::uint64_t cookie = 0;
};
// Attributes of modify and query QP [IBA1 11.2.5.2, 11.2.5.3].
struct QpAttr {
  QpState state = QpState::Reset;
  QpState cur_state = QpState::Reset;
  Mtu path_mtu = Mtu::B256;
  MigState mig_state = MigState::Migrated;
  std::uint32_t qkey = 0;
  std::uint32_t rq_psn = 0;
  std::uint32_t sq_psn = 0;
  std::uint32_t dest_qpn = 0;
  std::uint32_t access = 0;
  AddressVector av;
  AddressVector alt_av;
  std::uint16_t pkey_index = 0;
  std::uint16_t alt_pkey_index = 0;
  std::uint8_t en_sqd_async_notify = 0;
  std::uint8_t sq_draining = 0;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t port = 0;
  std::uint8_t timeout = 0;
  std::uint8_t retry_cnt = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t alt_port = 0;
  std::uint8_t alt_timeout = 0;
  std::uint8_t reserved = 0;
  std::uint32_t rate_limit = 0;
};
struct ModifyQpIn {
  std::uint32_t index = 0;
  std::uint32_t mask = 0;  // qp_attr
  QpAttr attr;
};
struct ModifyQpOut {
  QpState old_state = QpState::Reset;
  QpState state = QpState::Reset;
};
struct QueryQpOut {
  QpAttr attr;
  QpCaps caps;
  std::uint32_t sq_sig_all = 0;
  std::uint32_t reserved = 0;
};
struct McastIn {
  std::uint32_t qp = 0;
  std::uint16_t mlid = 0;
  std::uint16_t reserved = 0;
  Gid mgid{};
};

}  // namespace ib::verbs::control
