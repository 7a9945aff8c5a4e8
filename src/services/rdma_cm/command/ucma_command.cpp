// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "services/rdma_cm/command/ucma_command.h"

#include <algorithm>
#include <cstring>

namespace ib::services::rdma_cm {
namespace {

using ucma::Code;

// The part of a command that came; the rest of the structure is zero, as of older programs.
template <class T>
T read(std::span<const std::uint8_t> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

struct Reader {
  std::span<const std::uint8_t> body;
  std::uint16_t room = 0;
  ParsedCommand result;

  bool fail(Error error) {
    result.error = error;
    return false;
  }
  // Returns false if the answer would not fit.
  bool has_room(std::size_t needed) { return room >= needed || fail(Error::NoSpace); }
  template <class T>
  void take(const T& value) {
    result.command.body = value;
  }
  void respond_to(std::uint64_t address) { result.command.response = address; }

  // An address of a family that ids may have. The commands for IP addresses have no room for
  // others.
  bool address(std::span<const std::uint8_t> bytes, EndpointAddress& out) {
    const auto address = read_address(bytes);
    if (!address) return fail(Error::Invalid);
    out = *address;
    return true;
  }
  bool sized_address(std::span<const std::uint8_t> bytes, std::size_t size, EndpointAddress& out) {
    if (size == 0 || size != size_of(family_of(bytes))) return fail(Error::Invalid);
    return address(bytes, out);
  }

  void create_id() {
    if (!has_room(sizeof(ucma::IdOut))) return;
    const auto in = read<ucma::CreateId>(body);
    respond_to(in.response);
    take(in);
  }
  void destroy_id() {
    if (!has_room(sizeof(ucma::EventsOut))) return;
    const auto in = read<ucma::DestroyId>(body);
    respond_to(in.response);
    take(command::Destroy{in.id});
  }
  void leave() {
    if (!has_room(sizeof(ucma::EventsOut))) return;
    const auto in = read<ucma::DestroyId>(body);
    respond_to(in.response);
    take(command::Leave{in.id});
  }
  void bind_ip() {
    const auto in = read<ucma::BindIp>(body);
    command::Bind bind{in.id, {}};
    if (address(in.addr, bind.address)) take(bind);
  }
  void bind() {
    const auto in = read<ucma::Bind>(body);
    command::Bind bind{in.id, {}};
    if (in.reserved != 0) return void(fail(Error::Invalid));
    if (sized_address(in.addr, in.addr_size, bind.address)) take(bind);
  }
  void resolve_ip() {
    const auto in = read<ucma::ResolveIp>(body);
    command::ResolveAddress resolve{in.id, {}, {}};
    EndpointAddress source;
    if (family_of(in.src_addr) != Family::None) {
      if (!address(in.src_addr, source)) return;
      resolve.source = source;
    }
    if (address(in.dst_addr, resolve.destination)) take(resolve);
  }
  void resolve_addr() {
    const auto in = read<ucma::ResolveAddr>(body);
    command::ResolveAddress resolve{in.id, {}, {}};
    if (in.reserved != 0) return void(fail(Error::Invalid));
    EndpointAddress source;
    if (in.src_size != 0) {
      if (!sized_address(in.src_addr, in.src_size, source)) return;
      resolve.source = source;
    }
    if (sized_address(in.dst_addr, in.dst_size, resolve.destination)) take(resolve);
  }
  void query_route() {
    if (!has_room(offsetof(ucma::QueryRouteOut, ibdev_index))) return;
    const auto in = read<ucma::Query>(body);
    respond_to(in.response);
    take(command::QueryRoute{in.id});
  }
  void query() {
    const auto in = read<ucma::Query>(body);
    respond_to(in.response);
    if (in.option > ucma::QueryOption::Gid) return void(fail(Error::NotImplemented));
    const std::size_t needed = in.option == ucma::QueryOption::Path
                                   ? offsetof(ucma::QueryPathOut, path_data)
                                   : offsetof(ucma::QueryAddrOut, ibdev_index);
    if (!has_room(needed)) return;
    take(command::Query{in.id, in.option});
  }
  void connect() {
    constexpr std::size_t kWithoutEce = offsetof(ucma::Connect, ece);
    if (body.size() < kWithoutEce) return void(fail(Error::Invalid));
    const auto in = read<ucma::Connect>(body);
    if (in.conn_param.valid == 0) return void(fail(Error::Invalid));
    take(in);
  }
  void accept() {
    constexpr std::size_t kWithoutEce = offsetof(ucma::Accept, ece);
    if (body.size() < kWithoutEce) return void(fail(Error::Invalid));
    take(read<ucma::Accept>(body));
  }
  void reject() {
    auto in = read<ucma::Reject>(body);
    constexpr std::uint8_t kConsumerDefined = 28;
    constexpr std::uint8_t kVendorOption = 35;
    if (in.reason == 0) in.reason = kConsumerDefined;
    if (in.reason != kConsumerDefined && in.reason != kVendorOption) {
      return void(fail(Error::Invalid));
    }
    take(in);
  }
  void init_qp_attr() {
    if (!has_room(sizeof(ucma::QpAttrOut))) return;
    const auto in = read<ucma::InitQpAttr>(body);
    constexpr std::uint32_t kError = 6;
    if (in.qp_state > kError) return void(fail(Error::Invalid));
    respond_to(in.response);
    take(in);
  }
  void get_event() {
    if (!has_room(ucma::kEventOutWithoutEce)) return;
    const auto in = read<ucma::GetEvent>(body);
    respond_to(in.response);
    take(in);
  }
  void join_ip() {
    if (!has_room(sizeof(ucma::IdOut))) return;
    const auto in = read<ucma::JoinIpMcast>(body);
    command::Join join{in.id, in.uid, ucma::kJoinFullMember, {}};
    respond_to(in.response);
    if (address(in.addr, join.group)) take(join);
  }
  void join() {
    if (!has_room(sizeof(ucma::IdOut))) return;
    const auto in = read<ucma::JoinMcast>(body);
    command::Join join{in.id, in.uid, in.join_flags, {}};
    respond_to(in.response);
    if (in.join_flags != ucma::kJoinFullMember && in.join_flags != ucma::kJoinSendOnlyFullMember) {
      return void(fail(Error::Invalid));
    }
    if (sized_address(in.addr, in.addr_size, join.group)) take(join);
  }
  void migrate() {
    if (!has_room(sizeof(ucma::EventsOut))) return;
    const auto in = read<ucma::MigrateId>(body);
    respond_to(in.response);
    take(in);
  }

  void write_cm_event() {
    const auto in = read<ucma::WriteCmEvent>(body);
    if (in.event != ucma::Event::User && in.event != ucma::Event::Internal) {
      return void(fail(Error::Invalid));
    }
    take(in);
  }

  void read_body(Code code) {
    switch (code) {
      case Code::CreateId: return create_id();
      case Code::DestroyId: return destroy_id();
      case Code::BindIp: return bind_ip();
      case Code::ResolveIp: return resolve_ip();
      case Code::ResolveRoute: return take(read<ucma::ResolveRoute>(body));
      case Code::QueryRoute: return query_route();
      case Code::Connect: return connect();
      case Code::Listen: return take(read<ucma::Listen>(body));
      case Code::Accept: return accept();
      case Code::Reject: return reject();
      case Code::Disconnect: return take(read<ucma::Disconnect>(body));
      case Code::InitQpAttr: return init_qp_attr();
      case Code::GetEvent: return get_event();
      case Code::SetOption: return take(read<ucma::SetOption>(body));
      case Code::Notify: return take(read<ucma::Notify>(body));
      case Code::JoinIpMcast: return join_ip();
      case Code::LeaveMcast: return leave();
      case Code::MigrateId: return migrate();
      case Code::Query: return query();
      case Code::Bind: return bind();
      case Code::ResolveAddr: return resolve_addr();
      case Code::JoinMcast: return join();
      case Code::WriteCmEvent: return write_cm_event();
      // Only kernel clients register services with the subnet administrator.
      case Code::ResolveIbService:
      case Code::GetOption: break;
    }
    fail(Error::NotImplemented);
  }
};

}  // namespace

ParsedCommand parse_command(std::span<const std::uint8_t> bytes, std::uint64_t size) {
  const auto fail = [](Error error) { return ParsedCommand{error, {}}; };
  if (bytes.size() < sizeof(ucma::Header) || size < bytes.size()) return fail(Error::Invalid);
  const auto header = read<ucma::Header>(bytes);
  if (static_cast<std::uint32_t>(header.code) >= ucma::kCodes) return fail(Error::Invalid);
  if (std::uint64_t{header.in} + sizeof header > size) return fail(Error::Invalid);
  Reader reader;
  reader.body = bytes.subspan(sizeof header);
  reader.body = reader.body.first(std::min<std::size_t>(reader.body.size(), header.in));
  reader.room = header.out;
  reader.read_body(static_cast<Code>(header.code));
  reader.result.command.room = header.out;
  return reader.result;
}

}  // namespace ib::services::rdma_cm
