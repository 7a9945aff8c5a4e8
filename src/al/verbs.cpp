// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Control: each function sends one request and has a completion routine that fills in the object.
#include "al/verbs.h"

#include "base/address.h"
#include "base/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace ib::al {

using control::Code;

namespace {

hca::LocalKey& local_key(const Region& region) {
  return region.ca->al().plane().local_keys().at(hca::key_index(region.made.lkey));
}
void hide_local_key(const Region& region) {
  region.ca->al().plane().local_keys().hide(hca::key_index(region.made.lkey));
}

// The rest of making an object. Returns false if softibd's answer is nonsense, which is a bug.
bool begin(Pd&) {
  return true;
}
bool begin(AddressHandle&) {
  return true;
}
bool begin(DeviceMemory& memory) {
  memory.bytes = memory.ca->al().system().arena.heap(memory.made.offset, memory.made.length);
  return memory.bytes != nullptr;
}
bool begin(Region& region) {
  hca::LocalKey& local = local_key(region);
  local.pd = control::index_of(region.in.pd);
  local.access = region.in.access;
  const bool zero_based = (region.in.access & verbs::access::kZeroBased) != 0;
  local.iova = zero_based ? 0 : region.in.iova;
  local.length = region.in.length;
  if (region.ranges) {
    local.iova = zero_based ? 0 : region.ranges->in.iova;
    local.length = region.made.length;
    local.kind = hca::KeyKind::Ranges;
    local.ranges = &region.ranges->list;
    local.key.store(region.made.lkey, std::memory_order_release);
    return true;
  }
  const bool of_hca = region.memory != nullptr;
  local.kind = of_hca ? hca::KeyKind::DeviceMemory : hca::KeyKind::Region;
  local.address = of_hca ? region.memory->bytes : pointer_to(region.in.address);
  local.key.store(region.made.lkey, std::memory_order_release);
  return true;
}
bool begin(Cq& cq) {
  cq.ca->al().objects().cqs()[cq.index()] = &cq;
  return cq.begin();
}
bool begin(Qp& qp) {
  qp.ca->al().objects().qps()[qp.made.qpn] = &qp;
  return qp.begin();
}
bool begin(Srq& srq) {
  srq.ca->al().objects().srqs()[srq.index()] = &srq;
  return srq.begin();
}
bool begin(Window& window) {
  window.rkey = window.made.rkey;
  return true;
}
bool begin(Xrcd&) {
  return true;
}

void end(Pd&) {}
void end(AddressHandle&) {}
void end(DeviceMemory& memory) {
  memory.bytes = nullptr;
}
void end(Region& region) {
  region.ranges.reset();
}
void end(Window&) {}
void end(Xrcd&) {}
void end(Srq& srq) {
  srq.ca->al().objects().srqs().erase(srq.index());
  srq.end();
}
void end(Cq& cq) {
  cq.ca->al().objects().cqs().erase(cq.index());
  cq.end();
}
void end(Qp& qp) {
  qp.forget_completions();
  Al& al = qp.ca->al();
  al.objects().qps().erase(qp.made.qpn);
  qp.end();
  al.poster().peer_may_go();
  al.objects().arm_timer();
}

template <class T>
void created(io::IrpRef irp, void* context) {
  T& object = *static_cast<T*>(context);
  object.ca->count_return(irp);
  if (irp->status == Status::Ok) {
    object.handle = static_cast<std::uint32_t>(irp->information);
    object.name.index = object.handle;
    const bool sensible = begin(object);
    IB_ASSERT(sensible);
  }
  std::move(irp).pass_up();
}

template <class T>
void destroyed(io::IrpRef irp, void* context) {
  T& object = *static_cast<T*>(context);
  object.ca->count_return(irp);
  if (irp->status == Status::Ok) {
    end(object);
    object.handle = control::kNoIndex;
  }
  std::move(irp).pass_up();
}

template <class T>
bool is_free(const T& object, io::IrpRef& irp) {
  if (!object.exists()) return true;
  std::move(irp).fail(Status::InvalidParameter, "this structure is of a living object");
  return false;
}

template <class T>
bool lives(const T& object, io::IrpRef& irp) {
  if (object.exists()) return true;
  std::move(irp).fail(Status::InvalidParameter, "there is no such object (any more)");
  return false;
}

template <class T>
void make(Ca& ca, Code code, std::span<const std::byte> in, std::span<std::byte> out, T& object,
          io::IrpRef irp) {
  if (!is_free(object, irp)) return;
  object.ca = &ca;
  ca.send(code, in, out, std::move(irp), &created<T>, &object);
}

// For structures that keep what they were made from: that of a living one stays as it is.
template <class T>
void make_from(Ca& ca, Code code, const decltype(T::in)& in, T& object, io::IrpRef irp) {
  if (!is_free(object, irp)) return;
  object.in = in;
  std::span<std::byte> out;
  if constexpr (requires { object.made; }) out = room_of(object.made);
  make(ca, code, bytes_of(object.in), out, object, std::move(irp));
}

template <class T>
void unmake(T& object, Code code, io::IrpRef irp) {
  if (!lives(object, irp)) return;
  object.ca->send(code, bytes_of(object.name), {}, std::move(irp), &destroyed<T>, &object);
}

void deregistered(io::IrpRef irp, void* context) {
  auto& region = *static_cast<Region*>(context);
  if (irp->status != Status::Ok) {
    local_key(region).key.store(region.made.lkey, std::memory_order_release);
  }
  destroyed<Region>(std::move(irp), context);
}

constexpr std::uint32_t kTranslation = 1;  // ibv_rereg_mr_flags
constexpr std::uint32_t kAccess = 4;

// Local use goes on with what is registered now, also after a refusal.
void reregistered(io::IrpRef irp, void* context) {
  auto& region = *static_cast<Region*>(context);
  region.ca->count_return(irp);
  if (irp->status == Status::Ok) {
    const control::RegMrIn& to = region.change.to;
    if ((region.change.change & kTranslation) != 0) {
      region.ranges = std::move(region.next);
      region.in.address = to.address;
      region.in.iova = to.iova;
      region.in.length = to.length;
    }
    if ((region.change.change & kAccess) != 0) region.in.access = to.access;
    region.made = region.changed;
  }
  region.next.reset();
  (void)begin(region);
  std::move(irp).pass_up();
}

// InvalidParameter: too many for the request; what else is wrong with them, softibd finds.
Result<std::unique_ptr<Ranges>> describe(std::span<const control::PhysicalRange> ranges,
                                         const DeviceMemory* memory, std::uint64_t iova) {
  auto made = std::make_unique<Ranges>();
  control::PhysicalIn& in = made->in;
  if (ranges.size() > in.ranges.size()) return Status::InvalidParameter;
  in.iova = iova;
  in.dm = memory != nullptr ? memory->handle : control::kNoIndex;
  in.count = static_cast<std::uint32_t>(ranges.size());
  std::copy(ranges.begin(), ranges.end(), in.ranges.begin());
  // The same that softibd makes for others (drivers/soft_hca/memory/extent.cpp).
  hca::RangeList& list = made->list;
  list.kind = memory != nullptr ? hca::KeyKind::DeviceMemory : hca::KeyKind::Region;
  const std::uint64_t base = memory != nullptr ? memory->made.offset : 0;
  for (const control::PhysicalRange& range : ranges) {
    list.append(base + range.address, range.length);
  }
  return made;
}

void too_many_ranges(std::size_t count, io::IrpRef irp) {
  std::move(irp).fail(Status::InvalidParameter,
                      fmt::format("{} ranges; at most {}", count, verbs::limits::kMaxRanges));
}

void modified(io::IrpRef irp, void* context) {
  Qp& qp = *static_cast<Qp*>(context);
  qp.ca->count_return(irp);
  if (irp->status == Status::Ok) qp.remember();
  std::move(irp).pass_up();
}

}  // namespace

void alloc_pd(Ca& ca, Pd& pd, io::IrpRef irp) {
  make(ca, Code::AllocPd, {}, {}, pd, std::move(irp));
}

void alloc_dm(Ca& ca, const control::AllocDmIn& in, DeviceMemory& memory, io::IrpRef irp) {
  make(ca, Code::AllocDm, bytes_of(in), room_of(memory.made), memory, std::move(irp));
}

void reg_dm(Pd& pd, DeviceMemory& memory, std::uint32_t access, Region& region, io::IrpRef irp) {
  control::RegMrIn in;
  in.pd = pd.handle;
  in.access = access | verbs::access::kZeroBased;
  in.length = memory.made.length;
  in.dm = memory.handle;
  if (!region.exists()) {
    region.memory = &memory;
    region.ranges.reset();
  }
  make_from(*pd.ca, Code::RegMr, in, region, std::move(irp));
}

void reg_mr(Pd& pd, void* address, std::uint64_t length, std::uint32_t access, Region& region,
            io::IrpRef irp) {
  control::RegMrIn in;
  in.pd = pd.handle;
  in.access = access;
  in.address = address_of(address);
  in.iova = in.address;
  in.length = length;
  if (!region.exists()) {
    region.memory = nullptr;
    region.ranges.reset();
  }
  make_from(*pd.ca, Code::RegMr, in, region, std::move(irp));
}

// NOLINTNEXTLINE(readability-function-size): an argument for each thing that it needs
void reg_physical(Pd& pd, std::span<const control::PhysicalRange> ranges, DeviceMemory* memory,
                  std::uint64_t iova, std::uint32_t access, Region& region, io::IrpRef irp) {
  if (!is_free(region, irp)) return;
  auto described = describe(ranges, memory, iova);
  if (!described) return too_many_ranges(ranges.size(), std::move(irp));
  region.ranges = std::move(*described);
  region.memory = memory;
  region.in = {};
  region.in.pd = pd.handle;
  region.in.access = access;
  region.ranges->in.pd = pd.handle;
  region.ranges->in.access = access;
  make(*pd.ca, Code::RegPhysical, bytes_of(region.ranges->in), room_of(region.made), region,
       std::move(irp));
}

void alloc_fmr(Pd& pd, std::uint64_t max_length, std::uint32_t access, Fmr& fmr, io::IrpRef irp) {
  if (!fmr.exists()) fmr.max_length = max_length;
  reg_mr(pd, nullptr, 0, access, fmr, std::move(irp));
}

void create_ah(Pd& pd, const verbs::AddressVector& av, control::CreateAhIn& in, AddressHandle& ah,
               io::IrpRef irp) {
  in.pd = pd.handle;
  in.av = av;
  ah.av = av;
  make(*pd.ca, Code::CreateAh, bytes_of(in), {}, ah, std::move(irp));
}

void create_cq(Ca& ca, std::uint32_t cqe, Cq& cq, io::IrpRef irp) {
  control::CreateCqIn in;
  in.cqe = cqe;
  in.channel = control::kKernelChannel;
  make_from(ca, Code::CreateCq, in, cq, std::move(irp));
}

void alloc_mw(Pd& pd, std::uint32_t type, Window& window, io::IrpRef irp) {
  make_from(*pd.ca, Code::AllocMw, {pd.handle, type}, window, std::move(irp));
}

void open_xrcd(Ca& ca, Xrcd& xrcd, io::IrpRef irp) {
  constexpr std::uint32_t kCreate = 1;
  make_from(ca, Code::OpenXrcd, {0, 0, kCreate, 0}, xrcd, std::move(irp));
}

void create_srq(Pd& pd, std::uint32_t max_wr, std::uint32_t max_sge, Srq& srq, io::IrpRef irp) {
  control::CreateSrqIn in;
  in.pd = pd.handle;
  in.max_wr = max_wr;
  in.max_sge = max_sge;
  make_from(*pd.ca, Code::CreateSrq, in, srq, std::move(irp));
}

// NOLINTNEXTLINE(readability-function-size): an argument for each object that it uses
void create_xrc_srq(Pd& pd, Xrcd& xrcd, Cq& cq, std::uint32_t max_wr, std::uint32_t max_sge,
                    Srq& srq, io::IrpRef irp) {
  make_from(*pd.ca, Code::CreateSrq,
            {verbs::SrqType::Xrc, pd.handle, xrcd.handle, cq.handle, max_wr, max_sge, 0, 0, 0}, srq,
            std::move(irp));
}

// NOLINTNEXTLINE(readability-function-size): an argument for each object that it uses
void create_qp(Pd& pd, verbs::QpType type, const control::QpCaps& caps, Cq& send_cq, Cq& recv_cq,
               Qp& qp, io::IrpRef irp) {
  const bool known =
      type == verbs::QpType::Rc || type == verbs::QpType::Uc || type == verbs::QpType::Ud;
  if (!known) return std::move(irp).fail(Status::NotSupported, "RC, UC and UD only");
  make_from(*pd.ca, Code::CreateQp,
            {type, pd.handle, send_cq.handle, recv_cq.handle, control::kNoIndex, control::kNoIndex,
             caps, 0, 0, 0},
            qp, std::move(irp));
}

// NOLINTNEXTLINE(readability-function-size): an argument for each object that it uses
void create_large_qp(Pd& pd, const control::QpCaps& caps, Cq& send_cq, Cq& recv_cq, Qp& qp,
                     io::IrpRef irp) {
  make_from(*pd.ca, Code::CreateQp,
            {verbs::QpType::Ud, pd.handle, send_cq.handle, recv_cq.handle, control::kNoIndex,
             control::kNoIndex, caps, control::qp_flag::kTakesLarge, 0, 0},
            qp, std::move(irp));
}

// NOLINTNEXTLINE(readability-function-size): an argument for each object that it uses
void create_special_qp(Pd& pd, verbs::QpType type, std::uint32_t port, const control::QpCaps& caps,
                       Cq& send_cq, Cq& recv_cq, Qp& qp, io::IrpRef irp) {
  if (!verbs::is_special(type)) {
    return std::move(irp).fail(Status::InvalidParameter, "only SMI and GSI are of a port");
  }
  make_from(*pd.ca, Code::CreateQp,
            {type, pd.handle, send_cq.handle, recv_cq.handle, control::kNoIndex, control::kNoIndex,
             caps, 0, port, 0},
            qp, std::move(irp));
}

// NOLINTNEXTLINE(readability-function-size): an argument for each object that it uses
void create_srq_qp(Pd& pd, verbs::QpType type, const control::QpCaps& caps, Cq& send_cq,
                   Cq& recv_cq, Srq& srq, Qp& qp, io::IrpRef irp) {
  make_from(*pd.ca, Code::CreateQp,
            {type, pd.handle, send_cq.handle, recv_cq.handle, srq.handle, control::kNoIndex, caps,
             0, 0, 0},
            qp, std::move(irp));
}

void create_xrc_send_qp(Pd& pd, const control::QpCaps& caps, Cq& cq, Qp& qp, io::IrpRef irp) {
  make_from(*pd.ca, Code::CreateQp,
            {verbs::QpType::XrcSend, pd.handle, cq.handle, control::kNoIndex, control::kNoIndex,
             control::kNoIndex, caps, 0, 0, 0},
            qp, std::move(irp));
}

void create_xrc_recv_qp(Xrcd& xrcd, Qp& qp, io::IrpRef irp) {
  control::CreateQpIn in;
  in.type = verbs::QpType::XrcRecv;
  in.xrcd = xrcd.handle;
  make_from(*xrcd.ca, Code::CreateQp, in, qp, std::move(irp));
}

void modify_mr(Region& region, const RegionChange& to, io::IrpRef irp) {
  if (!lives(region, irp)) return;
  if (region.memory != nullptr) {
    return std::move(irp).fail(Status::NotSupported, "regions of device memory do not change");
  }
  region.change = {};
  region.change.index = region.handle;
  region.change.change = (to.translation ? kTranslation : 0) | (to.access ? kAccess : 0);
  region.change.to.address = address_of(to.address);
  region.change.to.iova = region.change.to.address;
  region.change.to.length = to.length;
  region.change.to.access = to.access.value_or(0);
  hide_local_key(region);
  region.ca->send(Code::ReregMr, bytes_of(region.change), room_of(region.changed), std::move(irp),
                  &reregistered, &region);
}

namespace {
bool fits(const Fmr& fmr, std::uint64_t length, io::IrpRef& irp) {
  if (length <= fmr.max_length) return true;
  std::move(irp).fail(Status::InvalidParameter,
                      fmt::format("{} bytes; this one was made for {}", length, fmr.max_length));
  return false;
}
}  // namespace

void map_fmr(Fmr& fmr, void* address, std::uint64_t length, io::IrpRef irp) {
  if (!fits(fmr, length, irp)) return;
  modify_mr(fmr, {true, address, length, std::nullopt}, std::move(irp));
}

void map_fmr(Fmr& fmr, std::span<const control::PhysicalRange> ranges, std::uint64_t iova,
             io::IrpRef irp) {
  if (!lives(fmr, irp)) return;
  std::uint64_t length = 0;
  for (const control::PhysicalRange& range : ranges) length += range.length;
  if (!fits(fmr, length, irp)) return;
  auto described = describe(ranges, nullptr, iova);
  if (!described) return too_many_ranges(ranges.size(), std::move(irp));
  fmr.next = std::move(*described);
  fmr.next->in.region = fmr.handle;
  fmr.change = {};
  fmr.change.change = kTranslation;
  hide_local_key(fmr);
  fmr.ca->send(Code::ReregPhysical, bytes_of(fmr.next->in), room_of(fmr.changed), std::move(irp),
               &reregistered, static_cast<Region*>(&fmr));
}

void unmap_fmr(Fmr& fmr, io::IrpRef irp) {
  modify_mr(fmr, {true, nullptr, 0, std::nullopt}, std::move(irp));
}

void modify_qp(Qp& qp, std::uint32_t mask, const control::QpAttr& attr, io::IrpRef irp) {
  qp.change = {qp.handle, mask, attr};
  qp.ca->send(Code::ModifyQp, bytes_of(qp.change), room_of(qp.changed), std::move(irp), &modified,
              &qp);
}

void query_qp(Qp& qp, control::QueryQpOut& out, io::IrpRef irp) {
  qp.ca->call(Code::QueryQp, qp.name, out, std::move(irp));
}

void arm_srq(Srq& srq, std::uint32_t limit, io::IrpRef irp) {
  constexpr std::uint32_t kLimit = 2;
  srq.change = {srq.handle, kLimit, 0, limit};
  srq.ca->call(Code::ModifySrq, srq.change, srq.changed, std::move(irp));
}

void query_srq(Srq& srq, control::SrqOut& out, io::IrpRef irp) {
  srq.ca->call(Code::QuerySrq, srq.name, out, std::move(irp));
}

void attach_mcast(Qp& qp, control::McastIn& in, io::IrpRef irp) {
  in.qp = qp.handle;
  qp.ca->call(Code::AttachMcast, in, std::move(irp));
}

void detach_mcast(Qp& qp, control::McastIn& in, io::IrpRef irp) {
  in.qp = qp.handle;
  qp.ca->call(Code::DetachMcast, in, std::move(irp));
}

void destroy(Pd& pd, io::IrpRef irp) {
  unmake(pd, Code::DeallocPd, std::move(irp));
}
void destroy(DeviceMemory& memory, io::IrpRef irp) {
  unmake(memory, Code::FreeDm, std::move(irp));
}
void destroy(AddressHandle& ah, io::IrpRef irp) {
  unmake(ah, Code::DestroyAh, std::move(irp));
}
void destroy(Cq& cq, io::IrpRef irp) {
  unmake(cq, Code::DestroyCq, std::move(irp));
}
void destroy(Qp& qp, io::IrpRef irp) {
  unmake(qp, Code::DestroyQp, std::move(irp));
}
void destroy(Srq& srq, io::IrpRef irp) {
  unmake(srq, Code::DestroySrq, std::move(irp));
}
void destroy(Window& window, io::IrpRef irp) {
  unmake(window, Code::DeallocMw, std::move(irp));
}
void destroy(Xrcd& xrcd, io::IrpRef irp) {
  unmake(xrcd, Code::CloseXrcd, std::move(irp));
}
// No local use from now on; a refusal takes that back.
void destroy(Region& region, io::IrpRef irp) {
  if (!lives(region, irp)) return;
  hide_local_key(region);
  region.ca->send(Code::DeregMr, bytes_of(region.name), {}, std::move(irp), &deregistered, &region);
}

}  // namespace ib::al
