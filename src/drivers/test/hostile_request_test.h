// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the fuzzer of this folder: valid request buffers, so that a spoilt byte is the only error in
// them, and the handles in a buffer that the sender must own.
#pragma once

#include "base/buffers.h"
#include "base/fuzz_input.h"
#include "drivers/test/driver_world_test.h"
#include "verbs/control.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

namespace ib::drivers::test {

using control::Code;

// The objects of a process besides those of its files.
inline constexpr Kind kChannel{kKinds};
inline constexpr Kind kBacking{kKinds + 1};
inline constexpr std::size_t kAllKinds = kKinds + 2;

inline constexpr Kind kNone{kKinds + 2};

// The objects of a request: the kind of the one that the first four bytes of its buffer name, the
// kind that it makes, and whether it destroys the named one.
struct Shape {
  Code code;
  Kind named = kNone;
  Kind creates = kNone;
  bool destroys = false;
};
inline constexpr Shape kHcaRequests[] = {
    {Code::QueryCa},
    {Code::QueryPort},
    {Code::ModifyPort},
    {Code::QueryGid},
    {Code::QueryPkey},
    {Code::LocalMad},
    {Code::AllocPd, kNone, Kind::Pd},
    {Code::DeallocPd, Kind::Pd, kNone, true},
    {Code::RegMr, Kind::Pd, Kind::Region},
    {Code::ReregMr, Kind::Region},
    {Code::RegPhysical, Kind::Pd, Kind::Region},
    {Code::ReregPhysical, Kind::Region},
    {Code::DeregMr, Kind::Region, kNone, true},
    {Code::AllocMw, Kind::Pd, Kind::Window},
    {Code::DeallocMw, Kind::Window, kNone, true},
    {Code::AllocDm, kNone, Kind::DeviceMemory},
    {Code::FreeDm, Kind::DeviceMemory, kNone, true},
    {Code::QueryMr, Kind::Region},
    {Code::CreateAh, Kind::Pd, Kind::Ah},
    {Code::DestroyAh, Kind::Ah, kNone, true},
    {Code::CreateCq, kNone, Kind::Cq},
    {Code::ResizeCq, Kind::Cq},
    {Code::DestroyCq, Kind::Cq, kNone, true},
    {Code::OpenXrcd, kNone, Kind::Xrcd},
    {Code::CloseXrcd, Kind::Xrcd, kNone, true},
    {Code::CreateSrq, kNone, Kind::Srq},
    {Code::ModifySrq, Kind::Srq},
    {Code::QuerySrq, Kind::Srq},
    {Code::DestroySrq, Kind::Srq, kNone, true},
    {Code::CreateQp, kNone, Kind::Qp},
    {Code::OpenQp, Kind::Xrcd, Kind::Qp},
    {Code::ModifyQp, Kind::Qp},
    {Code::QueryQp, Kind::Qp},
    {Code::DestroyQp, Kind::Qp, kNone, true},
    {Code::AttachMcast, Kind::Qp},
    {Code::DetachMcast, Kind::Qp},
};
inline constexpr Shape kRootRequests[] = {
    {Code::Attach},
    {Code::WaitEvent},
    {Code::RaiseEvent},
    {Code::TraceError},
    {Code::CreateChannel, kNone, kChannel},
    {Code::DestroyChannel, kChannel, kNone, true},
    {Code::GetChannel},
    {Code::CreateBacking, kNone, kBacking},
    {Code::DestroyBacking, kBacking, kNone, true},
    {Code::GetBacking},
    {Code::Status},
    {Code::Resources},
    {Code::TraceRead},
    {Code::ViewStat},
    {Code::ViewOpen},
    {Code::ViewList},
    {Code::SetPort},
    {Code::SetAddresses},
    {Code::SetIpInterface},
};

inline Shape shape_of(Code code) {
  for (const Shape& shape : kHcaRequests) {
    if (shape.code == code) return shape;
  }
  for (const Shape& shape : kRootRequests) {
    if (shape.code == code) return shape;
  }
  return {code};
}

// For switches over numbers: a code need not exist.
constexpr std::uint32_t number_of(Code code) {
  return static_cast<std::uint32_t>(code);
}

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

// The source of the handles in a buffer.
struct Choice {
  FuzzInput& in;
  std::function<std::uint32_t(Kind)> handle;
  std::function<std::uint32_t()> qpn;
};

inline std::vector<std::byte> sensible_modify_qp(const Choice& choose) {
  namespace a = verbs::qp_attr;
  using verbs::QpState;
  FuzzInput& in = choose.in;
  control::ModifyQpIn out;
  out.index = choose.handle(Kind::Qp);
  control::QpAttr& attr = out.attr;
  attr.state = in.one_of({QpState::Init, QpState::Init, QpState::Rtr, QpState::Rtr, QpState::Rts,
                          QpState::Rts, QpState::Sqd, QpState::Error, QpState::Reset});
  attr.port = static_cast<std::uint8_t>(1 + in.byte() % 2);
  attr.dest_qpn = choose.qpn();
  attr.av.dlid = static_cast<std::uint16_t>(1 + in.byte() % 4);
  attr.av.port = attr.port;
  attr.path_mtu = verbs::Mtu::B4096;
  attr.timeout = 14;
  attr.qkey = 0x1111;
  attr.alt_port = static_cast<std::uint8_t>(3 - attr.port);
  attr.alt_av = attr.av;
  attr.alt_av.port = attr.alt_port;
  attr.mig_state = in.byte() < 128 ? verbs::MigState::Rearm : verbs::MigState::Migrated;
  constexpr std::uint32_t kRtr = a::kAv | a::kPathMtu | a::kDestQpn | a::kRqPsn;
  constexpr std::uint32_t kRcRtr = kRtr | a::kMaxDestRdAtomic | a::kMinRnrTimer;
  constexpr std::uint32_t kRcRts =
      a::kTimeout | a::kRetryCnt | a::kRnrRetry | a::kSqPsn | a::kMaxQpRdAtomic;
  constexpr std::uint32_t kPath = a::kPort | a::kPkeyIndex;
  constexpr std::uint32_t kMigration = a::kAltPath | a::kPathMigState;
  switch (attr.state) {
    case QpState::Init: out.mask = in.one_of({kPath | a::kAccessFlags, kPath | a::kQkey}); break;
    case QpState::Rtr: out.mask = in.one_of({kRcRtr, kRtr, 0u, kRcRtr | kMigration}); break;
    case QpState::Rts:
      out.mask = in.one_of({kRcRts, a::kSqPsn, kRcRts | kMigration, 0u, kMigration,
                            std::uint32_t{a::kPathMigState}});
      break;
    case QpState::Sqd: out.mask = a::kEnSqdAsyncNotify; break;
    case QpState::Reset:
    case QpState::Sqe:
    case QpState::Error: break;
  }
  out.mask |= a::kState;
  return bytes_of(out);
}

inline std::vector<std::byte> sensible_qp(const Choice& choose) {
  using verbs::QpType;
  control::CreateQpIn out;
  out.type = choose.in.one_of({QpType::Rc, QpType::Rc, QpType::Ud, QpType::Uc, QpType::XrcSend,
                               QpType::XrcRecv, QpType::XrcRecv});
  const bool uses_srq = choose.in.byte() < 100;
  if (out.type == QpType::Ud && uses_srq) out.flags = control::qp_flag::kTakesLarge;
  if (out.type == QpType::XrcRecv) {
    out.xrcd = choose.handle(Kind::Xrcd);
    return bytes_of(out);
  }
  out.pd = choose.handle(Kind::Pd);
  out.send_cq = choose.handle(Kind::Cq);
  out.recv_cq = choose.handle(Kind::Cq);
  if (uses_srq && out.type != QpType::XrcSend) out.srq = choose.handle(Kind::Srq);
  out.caps = {16, 16, 2, 2, 64, 0};
  return bytes_of(out);
}

inline std::vector<std::byte> sensible_srq(const Choice& choose) {
  control::CreateSrqIn out;
  out.pd = choose.handle(Kind::Pd);
  if (choose.in.byte() < 100) {
    out.type = verbs::SrqType::Xrc;
    out.xrcd = choose.handle(Kind::Xrcd);
    out.cq = choose.handle(Kind::Cq);
  }
  out.max_wr = 1 + choose.in.byte();
  out.max_sge = choose.in.byte() % 32;
  return bytes_of(out);
}

inline control::RegMrIn sensible_region(const Choice& choose) {
  control::RegMrIn out;
  out.pd = choose.handle(Kind::Pd);
  out.access = choose.in.byte() & 0x7f;
  out.address = choose.in.number(2);
  out.length = choose.in.number(2);
  out.iova = out.address;
  if (choose.in.byte() < 100) out.dm = choose.handle(Kind::DeviceMemory);
  return out;
}

inline std::vector<std::byte> sensible_root_request(const Shape& shape, const Choice& choose) {
  FuzzInput& in = choose.in;
  switch (number_of(shape.code)) {
    case number_of(Code::Attach): {
      control::AttachIn out;
      put_text(out.node, in.one_of({"", "node0", "node1", "node2"}));
      put_text(out.program, "fuzz");
      out.flags = in.byte() % 3u;  // 2 is none
      return bytes_of(out);
    }
    case number_of(Code::WaitEvent):
      if (in.byte() < 128) return {};
      return bytes_of(control::GenerationIn{in.byte() % 4u, in.byte()});
    case number_of(Code::RaiseEvent): {
      using control::EventObject;
      using verbs::EventType;
      static constexpr control::RaiseEventIn kEvents[] = {
          {EventObject::Qp, 0, 0, EventType::CommEst},
          {EventObject::Cq, 0, 0, EventType::CqErr},
          {EventObject::Srq, 0, 0, EventType::SrqLimitReached},
          {EventObject::Port, 0, 0, EventType::PortErr}};
      control::RaiseEventIn out = in.one_of(kEvents);
      out.index = in.byte() % 8u;
      out.generation = in.byte() % 8u;
      return bytes_of(out);
    }
    case number_of(Code::TraceError): {
      control::TraceErrorIn out;
      out.qp_index = control::index_of(choose.handle(Kind::Qp));
      out.peer_qpn = choose.qpn();
      out.status = static_cast<verbs::WcStatus>(in.byte() % 23);
      out.cause = static_cast<verbs::control::Cause>(in.byte() % 28);
      return bytes_of(out);
    }
    case number_of(Code::GetChannel):
    case number_of(Code::GetBacking):
      return bytes_of(control::GenerationIn{in.byte() % 4u, in.byte() % 4u});
    case number_of(Code::CreateBacking):
      return bytes_of(control::BackingIn{in.byte() * std::uint64_t{4096}});
    case number_of(Code::TraceRead): return bytes_of(control::TraceReadIn{in.byte()});
    case number_of(Code::ViewStat):
    case number_of(Code::ViewOpen):
    case number_of(Code::ViewList): {
      control::ViewIn out;
      put_text(out.node, in.one_of({"", "node1", "node2"}));
      put_text(out.path, in.one_of({"/", "/sys/class/infiniband", "/dev/infiniband",
                                    "/sys/class/infiniband/softib0/ports/1/gids/0",
                                    "/sys/class/infiniband/softib0/ports/2/counters",
                                    "/sys/class/infiniband/softib0/node_guid"}));
      return bytes_of(out);
    }
    case number_of(Code::SetPort): {
      control::SetPortIn out;
      put_text(out.node, in.one_of({"", "node1"}));
      put_text(out.ca, "softib0");
      out.port = 1 + in.byte() % 2u;
      out.up = in.byte() % 2u;
      return bytes_of(out);
    }
    case number_of(Code::SetAddresses): {
      control::SetAddressesIn out;
      put_text(out.node, in.one_of({"", "node1"}));
      out.network_namespace = in.byte();
      out.count = in.byte() % (control::kMaxInterfaceAddresses + 8);
      for (std::uint32_t i = 0; i < std::min(out.count, control::kMaxInterfaceAddresses); ++i) {
        out.addresses[i].ip = verbs::ipv4_gid(std::uint32_t{in.byte()} << 24 | i);
        put_text(out.addresses[i].interface, in.one_of({"eth0", "eth1", "a/b"}));
      }
      return bytes_of(out);
    }
    case number_of(Code::SetIpInterface): {
      control::SetIpInterfaceIn out;
      put_text(out.name, in.one_of({"ib0", "ib0.8001", "a/b"}));
      out.node_guid = in.byte();
      out.port = in.byte() % 4u;
      out.pkey = in.byte();
      out.count = in.byte() % (control::kMaxInterfaceAddresses + 8);
      for (std::uint32_t i = 0; i < std::min(out.count, control::kMaxInterfaceAddresses); ++i) {
        out.addresses[i] = {verbs::ipv4_gid(std::uint32_t{in.byte()} << 24 | i), in.byte()};
      }
      return bytes_of(out);
    }
    default:
      if (shape.named != kNone) return bytes_of(control::IndexIn{choose.handle(shape.named), 0});
      return {};
  }
}

// Returns the buffer of a valid request, except for the handles.
inline std::vector<std::byte> sensible_request(const Shape& shape, const Choice& choose) {
  FuzzInput& in = choose.in;
  switch (number_of(shape.code)) {
    case number_of(Code::QueryPort): return bytes_of(control::PortIn{in.byte() % 4u, 0});
    case number_of(Code::ModifyPort):
      return bytes_of(
          control::ModifyPortIn{in.byte() % 3u, 2u * (in.byte() & 1u), 0, 4u * (in.byte() & 1u)});
    case number_of(Code::QueryGid):
    case number_of(Code::QueryPkey):
      return bytes_of(control::TableIn{in.byte() % 4u, in.byte() % 12u});
    case number_of(Code::LocalMad): {
      control::MadIn out{in.byte() % 3u, 0, {1, 1, 1, 1}};
      out.mad[17] = 0x10 + in.byte() % 8;  // attribute
      out.mad[in.byte()] = in.byte();
      return bytes_of(out);
    }
    case number_of(Code::RegMr): return bytes_of(sensible_region(choose));
    case number_of(Code::ReregMr): {
      const std::uint32_t index = choose.handle(Kind::Region);
      return bytes_of(control::ReregMrIn{index, in.byte() & 7u, sensible_region(choose)});
    }
    case number_of(Code::RegPhysical):
    case number_of(Code::ReregPhysical): {
      control::PhysicalIn out;
      out.pd = choose.handle(Kind::Pd);
      out.access = in.byte();
      out.iova = in.number(8);
      out.dm = (in.byte() & 1) != 0 ? choose.handle(Kind::DeviceMemory) : control::kNoIndex;
      out.count = in.byte() % 5u;
      out.region = choose.handle(Kind::Region);
      for (std::uint32_t i = 0; i < out.count; ++i) {
        out.ranges[i] = {in.number(2) & ~7ull, in.number(2) & ~7ull};
      }
      return bytes_of(out);
    }
    case number_of(Code::AllocMw):
      return bytes_of(control::AllocMwIn{choose.handle(Kind::Pd), 1 + in.byte() % 2u});
    case number_of(Code::AllocDm):
      return bytes_of(control::AllocDmIn{in.number(3), in.byte() % 22u, 0});
    case number_of(Code::CreateAh): {
      control::CreateAhIn out;
      out.pd = choose.handle(Kind::Pd);
      out.av.dlid = 1 + in.byte() % 4;
      out.av.port = static_cast<std::uint8_t>(1 + in.byte() % 2);
      return bytes_of(out);
    }
    case number_of(Code::CreateCq): {
      control::CreateCqIn out;
      out.cqe = static_cast<std::uint32_t>(in.number(2));
      if (in.byte() < 100) out.channel = choose.handle(kChannel);
      return bytes_of(out);
    }
    case number_of(Code::ResizeCq):
      return bytes_of(
          control::ResizeCqIn{choose.handle(Kind::Cq), static_cast<std::uint32_t>(in.number(2))});
    case number_of(Code::OpenXrcd):
      return bytes_of(control::OpenXrcdIn{in.byte() % 3u, 1, in.byte() % 4u, 0});
    case number_of(Code::CreateSrq): return sensible_srq(choose);
    case number_of(Code::ModifySrq):
      return bytes_of(control::ModifySrqIn{choose.handle(Kind::Srq), 2, 0, in.byte()});
    case number_of(Code::CreateQp): return sensible_qp(choose);
    case number_of(Code::OpenQp):
      return bytes_of(control::OpenQpIn{choose.handle(Kind::Xrcd), choose.qpn(), 5});
    case number_of(Code::ModifyQp): return sensible_modify_qp(choose);
    case number_of(Code::AttachMcast):
    case number_of(Code::DetachMcast): {
      control::McastIn out;
      out.qp = choose.handle(Kind::Qp);
      out.mlid = 0xc000;
      out.mgid[0] = 0xff;
      out.mgid[15] = in.byte() & 1;
      return bytes_of(out);
    }
    default:
      if (shape.named != kNone) return bytes_of(control::IndexIn{choose.handle(shape.named), 0});
      return {};
  }
}

// Checks that the sender owns every handle in this buffer. `owns` has the handles that it was
// given.
class Ownership {
 public:
  using Owns = std::function<bool(Kind, std::uint32_t)>;
  explicit Ownership(Owns owns) : owns_(std::move(owns)) {}

  bool of_request(const Shape& shape, std::span<const std::byte> in) const {
    const bool names = shape.named != kNone;
    if (names && (in.size() < 4 || !owns_(shape.named, read<std::uint32_t>(in)))) return false;
    switch (number_of(shape.code)) {
      case number_of(Code::RegMr):
        return is_sized<control::RegMrIn>(in, [&](const auto& r) { return of_extent(r); });
      case number_of(Code::ReregMr):
        return is_sized<control::ReregMrIn>(in, [&](const auto& r) {
          return ((r.change & 2) == 0 || owns_(Kind::Pd, r.to.pd)) &&
                 ((r.change & 1) == 0 || of_extent(r.to));
        });
      case number_of(Code::CreateCq):
        return is_sized<control::CreateCqIn>(
            in, [&](const auto& r) { return may(kChannel, r.channel); });
      case number_of(Code::CreateSrq):
        return is_sized<control::CreateSrqIn>(in, [&](const auto& r) {
          return owns_(Kind::Pd, r.pd) && (r.type == verbs::SrqType::Basic ||
                                           (owns_(Kind::Xrcd, r.xrcd) && owns_(Kind::Cq, r.cq)));
        });
      case number_of(Code::CreateQp):
        return is_sized<control::CreateQpIn>(in, [&](const auto& r) { return of_qp(r); });
      default: return true;
    }
  }

 private:
  template <class T>
  static T read(std::span<const std::byte> in) {
    T value;
    std::memcpy(static_cast<void*>(&value), in.data(), sizeof value);
    return value;
  }
  template <class T, class F>
  static bool is_sized(std::span<const std::byte> in, F&& holds) {
    return in.size() == sizeof(T) && holds(read<T>(in));
  }
  bool may(Kind kind, std::uint32_t handle) const {
    return handle == control::kNoIndex || owns_(kind, handle);
  }
  bool of_extent(const control::RegMrIn& r) const {
    return (r.flags & 3) != 0 || may(Kind::DeviceMemory, r.dm);
  }
  bool of_qp(const control::CreateQpIn& r) const {
    if (r.type == verbs::QpType::XrcRecv) return owns_(Kind::Xrcd, r.xrcd);
    if (!owns_(Kind::Pd, r.pd) || !owns_(Kind::Cq, r.send_cq)) return false;
    return r.type == verbs::QpType::XrcSend ||
           (owns_(Kind::Cq, r.recv_cq) && may(Kind::Srq, r.srq));
  }

  Owns owns_;
};

}  // namespace ib::drivers::test
