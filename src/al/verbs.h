// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The objects of kernel clients [IBA1 11.2, 11.4], as public structures: a creation fills in the
// structure when it has succeeded, and from then until its destruction has, the structure stays
// where it is. `handle` names the object in requests that have no function here (Ca::call).
//
//   Pd pd;
//   alloc_pd(ca, pd, irp.start(on_done, this));      // Status, and information == pd.handle
//   ...
//   destroy(pd, irp.start(on_done, this));           // DeviceBusy while others depend on it
//
// Statuses are those of the request's code in verbs/control.h.
#pragma once

#include "al/al.h"
#include "hca/poster/own_queue_pair.h"
#include "hca/queues/completion.h"
#include "hca/queues/cq_consumer.h"
#include "hca/queues/own_shared_queue.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace ib::al {

struct Object {
  Ca* ca = nullptr;
  std::uint32_t handle = control::kNoIndex;
  control::IndexIn name;  // input of requests about it
  bool exists() const { return handle != control::kNoIndex; }
  std::uint32_t index() const { return control::index_of(handle); }  // in device memory
};

struct Pd : Object {};

// Memory of the HCA: every process of the fabric reaches it with loads and stores.
struct DeviceMemory : Object {
  control::DmOut made;
  std::byte* bytes = nullptr;  // made.length of them
};

// The parts of a physical registration.
struct Ranges {
  control::PhysicalIn in;
  hca::RangeList list;  // for local use; filled in when the registration has succeeded
};

struct Region : Object {
  control::RegMrIn in;  // as it is registered now
  control::MrOut made;  // lkey, rkey
  DeviceMemory* memory = nullptr;
  std::unique_ptr<Ranges> ranges;  // physical registration
  control::ReregMrIn change;
  control::MrOut changed;
  std::unique_ptr<Ranges> next;  // while it is being changed to these
};

// A region that is registered once and then covers now this memory, now that, or none: mapping it
// changes an entry of the key table and nothing else [the old stack's fast memory registration].
struct Fmr : Region {
  std::uint64_t max_length = 0;
};

struct AddressHandle : Object {
  verbs::AddressVector av;
};

struct IB_DRIVER_API Cq : Object {
  control::CreateCqIn in;
  control::CqOut made;
  // Called once for each arm(), at dispatch level, when there is something to poll.
  std::function<void(Cq& cq)> on_completion;

  hca::CqConsumer consumer;

  bool begin();
  void end();
};

struct Xrcd : Object {
  control::OpenXrcdIn in;
};

struct IB_DRIVER_API Srq : Object {
  control::CreateSrqIn in;
  control::SrqOut made;  // XRC: its number
  control::ModifySrqIn change;
  control::SrqOut changed;

  hca::OwnSharedQueue own;

  bool begin();
  void end();
};

struct Window : Object {
  control::AllocMwIn in;
  control::MrOut made;
  std::uint32_t rkey = 0;  // changes with each bind
};

struct IB_DRIVER_API Qp : Object {
  control::CreateQpIn in;
  control::QpOut made;  // its number
  control::ModifyQpIn change;
  control::ModifyQpOut changed;

  hca::OwnQueuePair own;

  verbs::QpState state() const { return own.state(); }
  bool begin();
  void remember();
  void forget_completions();
  void run();
  void end();
};

// --- creating: `irp` ends with the handle as information ---

IB_DRIVER_API void alloc_pd(Ca& ca, Pd& pd, io::IrpRef irp);
IB_DRIVER_API void alloc_dm(Ca& ca, const control::AllocDmIn& in, DeviceMemory& memory,
                            io::IrpRef irp);
// All of `memory`, from address 0 on.
IB_DRIVER_API void reg_dm(Pd& pd, DeviceMemory& memory, std::uint32_t access, Region& region,
                          io::IrpRef irp);
// Memory of softibd's process (virtual registration): programs reach it by process_vm or, where
// that is denied, by asking for each 32 KiB. Memory of the HCA (alloc_dm) is faster.
IB_DRIVER_API void reg_mr(Pd& pd, void* address, std::uint64_t length, std::uint32_t access,
                          Region& region, io::IrpRef irp);
// Physical registration [IBA1 10.6.2.2]: ranges of softibd's memory, or of `memory` if that is not
// null (addresses are offsets then), as one region whose first byte has address `iova`. At most
// limits::kMaxRanges; control::PhysicalIn has the rules of their alignment.
IB_DRIVER_API void reg_physical(Pd& pd, std::span<const control::PhysicalRange> ranges,
                                DeviceMemory* memory, std::uint64_t iova, std::uint32_t access,
                                Region& region, io::IrpRef irp);
// Covers nothing until map_fmr(). destroy() is a region's.
IB_DRIVER_API void alloc_fmr(Pd& pd, std::uint64_t max_length, std::uint32_t access, Fmr& fmr,
                             io::IrpRef irp);
IB_DRIVER_API void create_ah(Pd& pd, const verbs::AddressVector& av, control::CreateAhIn& in,
                             AddressHandle& ah, io::IrpRef irp);
IB_DRIVER_API void create_cq(Ca& ca, std::uint32_t cqe, Cq& cq, io::IrpRef irp);
// A window of type 1 or 2 [IBA1 10.6.7.2]; bind() gives it a part of a region.
IB_DRIVER_API void alloc_mw(Pd& pd, std::uint32_t type, Window& window, io::IrpRef irp);
// A domain of its own [IBA1 A14]; it is not shared with other clients.
IB_DRIVER_API void open_xrcd(Ca& ca, Xrcd& xrcd, io::IrpRef irp);
IB_DRIVER_API void create_srq(Pd& pd, std::uint32_t max_wr, std::uint32_t max_sge, Srq& srq,
                              io::IrpRef irp);
// `cq`: gets the completions of its receives.
IB_DRIVER_API void create_xrc_srq(Pd& pd, Xrcd& xrcd, Cq& cq, std::uint32_t max_wr,
                                  std::uint32_t max_sge, Srq& srq, io::IrpRef irp);
// Queue pair 0 (QpType::Smi) or 1 (Gsi) of a port [IBA1 3.9.2]. It gets whatever is sent to that
// number there; a Gsi sends with the P_Key of SendWqe::pkey_index, and a message came with that of
// Completion::pkey_index. AlreadyExists: another client has it.
IB_DRIVER_API void create_special_qp(Pd& pd, verbs::QpType type, std::uint32_t port,
                                     const control::QpCaps& caps, Cq& send_cq, Cq& recv_cq, Qp& qp,
                                     io::IrpRef irp);
// RC, UC and UD.
IB_DRIVER_API void create_qp(Pd& pd, verbs::QpType type, const control::QpCaps& caps, Cq& send_cq,
                             Cq& recv_cq, Qp& qp, io::IrpRef irp);

// The same, receiving from a shared queue. InvalidParameter: UC has none.
IB_DRIVER_API void create_srq_qp(Pd& pd, verbs::QpType type, const control::QpCaps& caps,
                                 Cq& send_cq, Cq& recv_cq, Srq& srq, Qp& qp, io::IrpRef irp);
// UD, with control::qp_flag::kTakesLarge: see may_send_large().
IB_DRIVER_API void create_large_qp(Pd& pd, const control::QpCaps& caps, Cq& send_cq, Cq& recv_cq,
                                   Qp& qp, io::IrpRef irp);
IB_DRIVER_API void create_xrc_send_qp(Pd& pd, const control::QpCaps& caps, Cq& cq, Qp& qp,
                                      io::IrpRef irp);
// Its peer names with each message the shared queue of the domain that gets it.
IB_DRIVER_API void create_xrc_recv_qp(Xrcd& xrcd, Qp& qp, io::IrpRef irp);

// --- modifying, querying ---

// verbs::qp_attr selects the attributes of `attr` that count.
IB_DRIVER_API void modify_qp(Qp& qp, std::uint32_t mask, const control::QpAttr& attr,
                             io::IrpRef irp);
IB_DRIVER_API void query_qp(Qp& qp, control::QueryQpOut& out, io::IrpRef irp);
// Changes the memory or the access flags of a virtual registration, or both; the keys stay. Ends
// when no work request uses the old memory and flags any more. NotSupported: device memory.
struct RegionChange {
  bool translation = false;
  void* address = nullptr;
  std::uint64_t length = 0;
  std::optional<std::uint32_t> access;
};
IB_DRIVER_API void modify_mr(Region& region, const RegionChange& to, io::IrpRef irp);
// InvalidParameter: more than its max_length.
IB_DRIVER_API void map_fmr(Fmr& fmr, void* address, std::uint64_t length, io::IrpRef irp);
// The same for ranges of softibd's memory; `iova`: of the first byte.
IB_DRIVER_API void map_fmr(Fmr& fmr, std::span<const control::PhysicalRange> ranges,
                           std::uint64_t iova, io::IrpRef irp);
IB_DRIVER_API void unmap_fmr(Fmr& fmr, io::IrpRef irp);
// An event (SrqLimitReached) once fewer than `limit` receives are left.
IB_DRIVER_API void arm_srq(Srq& srq, std::uint32_t limit, io::IrpRef irp);
IB_DRIVER_API void query_srq(Srq& srq, control::SrqOut& out, io::IrpRef irp);
IB_DRIVER_API void attach_mcast(Qp& qp, control::McastIn& in, io::IrpRef irp);
IB_DRIVER_API void detach_mcast(Qp& qp, control::McastIn& in, io::IrpRef irp);

// --- destroying ---

IB_DRIVER_API void destroy(Pd& pd, io::IrpRef irp);
IB_DRIVER_API void destroy(DeviceMemory& memory, io::IrpRef irp);
IB_DRIVER_API void destroy(Region& region, io::IrpRef irp);
IB_DRIVER_API void destroy(AddressHandle& ah, io::IrpRef irp);
IB_DRIVER_API void destroy(Cq& cq, io::IrpRef irp);
IB_DRIVER_API void destroy(Qp& qp, io::IrpRef irp);
IB_DRIVER_API void destroy(Srq& srq, io::IrpRef irp);
IB_DRIVER_API void destroy(Window& window, io::IrpRef irp);
IB_DRIVER_API void destroy(Xrcd& xrcd, io::IrpRef irp);

// --- data: direct calls that return at once ---

// InvalidParameter, InvalidState, LimitExceeded (queue full); what fails later completes in error.
IB_DRIVER_API Status post_send(Qp& qp, const hca::SendWqe& wqe);
// Of one that create_large_qp() has made: whether a datagram to `qpn` at `av` may be longer than a
// packet, up to verbs::limits::kMaxLargeDatagram (hca/layout/large_datagrams.h). A few loads, for
// each send.
IB_DRIVER_API bool may_send_large(const Qp& qp, const verbs::AddressVector& av, std::uint32_t qpn);
IB_DRIVER_API Status post_recv(Qp& qp, std::uint64_t wr_id, std::span<const hca::Sge> sge);
IB_DRIVER_API Status post_recv(Srq& srq, std::uint64_t wr_id, std::span<const hca::Sge> sge);
// Posts a bind of `window` to [address, address + length) of `region`; length 0 unbinds it. On
// success `window.rkey` is the key that is valid from the completion on. A bound window of type 2
// must be invalidated first (LocalInv with its key) [IBA1 10.6.7.2.3].
struct Bind {
  std::uint64_t wr_id = 0;
  Region* region = nullptr;
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t access = 0;
};
IB_DRIVER_API Status bind(Qp& qp, Window& window, const Bind& to);
// How many completions were written to `out`.
IB_DRIVER_API std::size_t poll(Cq& cq, std::span<hca::Completion> out);
// Cq::on_completion at the next completion, or soon if there is one that it was not called for; and
// after a poll() that leaves some.
IB_DRIVER_API void arm(Cq& cq, bool solicited_only = false);

}  // namespace ib::al
