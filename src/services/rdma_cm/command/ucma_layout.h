// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The commands that librdmacm writes to /dev/infiniband/rdma_cm, and their answers: the layout of
// rdma/rdma_user_cm.h, version 4. Names follow that header; tests compare the two.
//
// Everything that comes from a program is hostile: ucma_command.h checks it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ib::services::rdma_cm::ucma {

enum class Code : std::uint32_t {
  CreateId = 0,
  DestroyId = 1,
  BindIp = 2,
  ResolveIp = 3,
  ResolveRoute = 4,
  QueryRoute = 5,
  Connect = 6,
  Listen = 7,
  Accept = 8,
  Reject = 9,
  Disconnect = 10,
  InitQpAttr = 11,
  GetEvent = 12,
  GetOption = 13,  // never existed
  SetOption = 14,
  Notify = 15,
  JoinIpMcast = 16,
  LeaveMcast = 17,
  MigrateId = 18,
  Query = 19,
  Bind = 20,
  ResolveAddr = 21,
  JoinMcast = 22,
  ResolveIbService = 23,
  WriteCmEvent = 24,
};
inline constexpr std::uint32_t kCodes = 25;

enum class Event : std::uint32_t {
  AddrResolved = 0,
  AddrError = 1,
  RouteResolved = 2,
  RouteError = 3,
  ConnectRequest = 4,
  ConnectResponse = 5,
  ConnectError = 6,
  Unreachable = 7,
  Rejected = 8,
  Established = 9,
  Disconnected = 10,
  DeviceRemoval = 11,
  MulticastJoin = 12,
  MulticastError = 13,
  AddrChange = 14,
  TimewaitExit = 15,
  AddrInfoResolved = 16,
  AddrInfoError = 17,
  User = 18,      // these two are written by the program itself
  Internal = 19,  // of librdmacm for itself
};

// Linux numbers of errors: the result of a command is 0 or one of these, negative.
enum class [[nodiscard]] Error : std::int32_t{
    None = 0,
    NoEntry = 2,           // ENOENT
    Again = 11,            // EAGAIN
    NoMemory = 12,         // ENOMEM
    Access = 13,           // EACCES
    Fault = 14,            // EFAULT
    NoDevice = 19,         // ENODEV
    Invalid = 22,          // EINVAL
    NoSpace = 28,          // ENOSPC
    NotImplemented = 38,   // ENOSYS
    NoProtocol = 93,       // EPROTONOSUPPORT
    AddressInUse = 98,     // EADDRINUSE
    NoAddress = 99,        // EADDRNOTAVAIL
    NetDown = 100,         // ENETDOWN
    NetUnreachable = 101,  // ENETUNREACH
    IsConnected = 106,     // EISCONN
    TimedOut = 110,        // ETIMEDOUT
    HostUnreachable = 113  // EHOSTUNREACH
};
constexpr std::uint32_t negative(Error error) {  // as the status of an event has it
  return static_cast<std::uint32_t>(-static_cast<std::int32_t>(error));
}

inline constexpr std::size_t kPrivateData = 256;
using SockAddrIn6 = std::array<std::uint8_t, 28>;
using SockAddrStorage = std::array<std::uint8_t, 128>;

struct Header {
  std::uint32_t code = 0;
  std::uint16_t in = 0;   // bytes of the command behind the header
  std::uint16_t out = 0;  // room for the answer
};
struct CreateId {
  std::uint64_t uid = 0;
  std::uint64_t response = 0;
  std::uint16_t ps = 0;
  std::uint8_t qp_type = 0;
  std::array<std::uint8_t, 5> reserved{};
};
struct IdOut {  // CreateId, JoinIpMcast, JoinMcast
  std::uint32_t id = 0;
};
struct DestroyId {  // and LeaveMcast
  std::uint64_t response = 0;
  std::uint32_t id = 0;
  std::uint32_t reserved = 0;
};
struct EventsOut {  // DestroyId, LeaveMcast, MigrateId
  std::uint32_t events_reported = 0;
};
struct BindIp {
  std::uint64_t response = 0;
  SockAddrIn6 addr{};
  std::uint32_t id = 0;
};
struct Bind {
  std::uint32_t id = 0;
  std::uint16_t addr_size = 0;
  std::uint16_t reserved = 0;
  SockAddrStorage addr{};
};
struct ResolveIp {
  SockAddrIn6 src_addr{};
  SockAddrIn6 dst_addr{};
  std::uint32_t id = 0;
  std::uint32_t timeout_ms = 0;
};
struct ResolveAddr {
  std::uint32_t id = 0;
  std::uint32_t timeout_ms = 0;
  std::uint16_t src_size = 0;
  std::uint16_t dst_size = 0;
  std::uint32_t reserved = 0;
  SockAddrStorage src_addr{};
  SockAddrStorage dst_addr{};
};
struct ResolveRoute {
  std::uint32_t id = 0;
  std::uint32_t timeout_ms = 0;
};
enum class QueryOption : std::uint32_t { Addr = 0, Path = 1, Gid = 2 };
struct Query {  // and QueryRoute, which ignores the option
  std::uint64_t response = 0;
  std::uint32_t id = 0;
  QueryOption option = QueryOption::Addr;
};
struct PathRec {  // struct ib_user_path_rec; 16-bit and flow_label fields are big-endian
  std::array<std::uint8_t, 16> dgid{};
  std::array<std::uint8_t, 16> sgid{};
  std::array<std::uint8_t, 2> dlid{};
  std::array<std::uint8_t, 2> slid{};
  std::uint32_t raw_traffic = 0;
  std::array<std::uint8_t, 4> flow_label{};
  std::uint32_t reversible = 0;
  std::uint32_t mtu = 0;
  std::array<std::uint8_t, 2> pkey{};
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t numb_path = 0;
  std::uint8_t sl = 0;
  std::uint8_t mtu_selector = 0;
  std::uint8_t rate_selector = 0;
  std::uint8_t rate = 0;
  std::uint8_t packet_life_time_selector = 0;
  std::uint8_t packet_life_time = 0;
  std::uint8_t preference = 0;
};
struct QueryRouteOut {
  std::array<std::uint8_t, 8> node_guid{};
  std::array<PathRec, 2> ib_route{};
  SockAddrIn6 src_addr{};
  SockAddrIn6 dst_addr{};
  std::uint32_t num_paths = 0;
  std::uint8_t port_num = 0;
  std::array<std::uint8_t, 3> reserved{};
  std::uint32_t ibdev_index = 0;
  std::uint32_t reserved1 = 0;
};
struct QueryAddrOut {  // and of QueryOption::Gid
  std::array<std::uint8_t, 8> node_guid{};
  std::uint8_t port_num = 0;
  std::uint8_t reserved = 0;
  std::uint16_t pkey = 0;
  std::uint16_t src_size = 0;
  std::uint16_t dst_size = 0;
  SockAddrStorage src_addr{};
  SockAddrStorage dst_addr{};
  std::uint32_t ibdev_index = 0;
  std::uint32_t reserved1 = 0;
};
struct PathRecData {  // struct ib_path_rec_data: flags, then a PathRecord as the SA sends it
  std::uint32_t flags = 0;
  std::uint32_t reserved = 0;
  std::array<std::uint8_t, 64> path_rec{};
};
struct QueryPathOut {
  std::uint32_t num_paths = 0;
  std::uint32_t reserved = 0;
  std::array<PathRecData, 2> path_data{};
};
struct ConnParam {
  std::uint32_t qp_num = 0;
  std::uint32_t qkey = 0;
  std::array<std::uint8_t, kPrivateData> private_data{};
  std::uint8_t private_data_len = 0;
  std::uint8_t srq = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t flow_control = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t valid = 0;
};
struct AhAttr {  // struct ib_uverbs_ah_attr
  std::array<std::uint8_t, 16> dgid{};
  std::uint32_t flow_label = 0;
  std::uint8_t sgid_index = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t grh_reserved = 0;
  std::uint16_t dlid = 0;
  std::uint8_t sl = 0;
  std::uint8_t src_path_bits = 0;
  std::uint8_t static_rate = 0;
  std::uint8_t is_global = 0;
  std::uint8_t port_num = 0;
  std::uint8_t reserved = 0;
};
struct UdParam {
  std::uint32_t qp_num = 0;
  std::uint32_t qkey = 0;
  AhAttr ah_attr;
  std::array<std::uint8_t, kPrivateData> private_data{};
  std::uint8_t private_data_len = 0;
  std::array<std::uint8_t, 7> reserved{};
};
struct Ece {
  std::uint32_t vendor_id = 0;
  std::uint32_t attr_mod = 0;
};
struct Connect {
  ConnParam conn_param;
  std::uint32_t id = 0;
  std::uint32_t reserved = 0;
  Ece ece;
};
struct Listen {
  std::uint32_t id = 0;
  std::uint32_t backlog = 0;
};
struct Accept {
  std::uint64_t uid = 0;
  ConnParam conn_param;
  std::uint32_t id = 0;
  std::uint32_t reserved = 0;
  Ece ece;
};
struct Reject {
  std::uint32_t id = 0;
  std::uint8_t private_data_len = 0;
  std::uint8_t reason = 0;
  std::array<std::uint8_t, 2> reserved{};
  std::array<std::uint8_t, kPrivateData> private_data{};
};
struct Disconnect {
  std::uint32_t id = 0;
};
struct InitQpAttr {
  std::uint64_t response = 0;
  std::uint32_t id = 0;
  std::uint32_t qp_state = 0;
};
struct QpAttrOut {  // struct ib_uverbs_qp_attr
  std::uint32_t qp_attr_mask = 0;
  std::uint32_t qp_state = 0;
  std::uint32_t cur_qp_state = 0;
  std::uint32_t path_mtu = 0;
  std::uint32_t path_mig_state = 0;
  std::uint32_t qkey = 0;
  std::uint32_t rq_psn = 0;
  std::uint32_t sq_psn = 0;
  std::uint32_t dest_qp_num = 0;
  std::uint32_t qp_access_flags = 0;
  AhAttr ah_attr;
  AhAttr alt_ah_attr;
  std::uint32_t max_send_wr = 0;
  std::uint32_t max_recv_wr = 0;
  std::uint32_t max_send_sge = 0;
  std::uint32_t max_recv_sge = 0;
  std::uint32_t max_inline_data = 0;
  std::uint16_t pkey_index = 0;
  std::uint16_t alt_pkey_index = 0;
  std::uint8_t en_sqd_async_notify = 0;
  std::uint8_t sq_draining = 0;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t port_num = 0;
  std::uint8_t timeout = 0;
  std::uint8_t retry_cnt = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t alt_port_num = 0;
  std::uint8_t alt_timeout = 0;
  std::array<std::uint8_t, 5> reserved{};
};
struct GetEvent {
  std::uint64_t response = 0;
};
struct EventOut {
  std::uint64_t uid = 0;
  std::uint32_t id = 0;
  Event event{};
  std::uint32_t status = 0;
  std::array<std::uint8_t, 304> param{};  // ConnParam, UdParam or the argument of User
  std::uint32_t reserved = 0;
  Ece ece;
};
inline constexpr std::size_t kEventOutWithoutEce = 324;  // what older librdmacm have room for
enum class Level : std::uint32_t { Id = 0, Ib = 1 };
inline constexpr std::uint32_t kOptionTos = 0;
inline constexpr std::uint32_t kOptionReuseAddr = 1;
inline constexpr std::uint32_t kOptionAfOnly = 2;
inline constexpr std::uint32_t kOptionAckTimeout = 3;
inline constexpr std::uint32_t kOptionIbPath = 1;
struct SetOption {
  std::uint64_t optval = 0;
  std::uint32_t id = 0;
  std::uint32_t level = 0;
  std::uint32_t optname = 0;
  std::uint32_t optlen = 0;
};
struct Notify {
  std::uint32_t id = 0;
  std::uint32_t event = 0;
};
struct JoinIpMcast {
  std::uint64_t response = 0;
  std::uint64_t uid = 0;
  SockAddrIn6 addr{};
  std::uint32_t id = 0;
};
inline constexpr std::uint16_t kJoinFullMember = 0;
inline constexpr std::uint16_t kJoinSendOnlyFullMember = 1;
struct JoinMcast {
  std::uint64_t response = 0;
  std::uint64_t uid = 0;
  std::uint32_t id = 0;
  std::uint16_t addr_size = 0;
  std::uint16_t join_flags = 0;
  SockAddrStorage addr{};
};
struct MigrateId {
  std::uint64_t response = 0;
  std::uint32_t id = 0;
  std::uint32_t fd = 0;
};
struct WriteCmEvent {
  std::uint32_t id = 0;
  std::uint32_t reserved = 0;
  Event event{};
  std::uint32_t status = 0;
  std::array<std::uint8_t, 8> arg{};
  std::array<std::uint8_t, 296> unused{};  // as long as ConnParam and UdParam, which are not read
};

#define IB_UCMA_SIZE(type, bytes) \
  static_assert(sizeof(type) == (bytes) && std::is_trivially_copyable_v<type>)
IB_UCMA_SIZE(Header, 8);
IB_UCMA_SIZE(CreateId, 24);
IB_UCMA_SIZE(DestroyId, 16);
IB_UCMA_SIZE(BindIp, 40);
IB_UCMA_SIZE(Bind, 136);
IB_UCMA_SIZE(ResolveIp, 64);
IB_UCMA_SIZE(ResolveAddr, 272);
IB_UCMA_SIZE(Query, 16);
IB_UCMA_SIZE(PathRec, 64);
IB_UCMA_SIZE(QueryRouteOut, 208);
IB_UCMA_SIZE(QueryAddrOut, 280);
IB_UCMA_SIZE(PathRecData, 72);
IB_UCMA_SIZE(ConnParam, 272);
IB_UCMA_SIZE(AhAttr, 32);
IB_UCMA_SIZE(UdParam, 304);
IB_UCMA_SIZE(Connect, 288);
IB_UCMA_SIZE(Accept, 296);
IB_UCMA_SIZE(Reject, 264);
IB_UCMA_SIZE(InitQpAttr, 16);
IB_UCMA_SIZE(QpAttrOut, 144);
IB_UCMA_SIZE(EventOut, 336);
IB_UCMA_SIZE(SetOption, 24);
IB_UCMA_SIZE(JoinIpMcast, 48);
IB_UCMA_SIZE(JoinMcast, 152);
IB_UCMA_SIZE(MigrateId, 16);
IB_UCMA_SIZE(WriteCmEvent, 320);
#undef IB_UCMA_SIZE

}  // namespace ib::services::rdma_cm::ucma
