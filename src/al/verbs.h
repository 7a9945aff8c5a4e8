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
#include "hca/completion.h"
#include "hca/quiescence.h"
#include "hca/receive_ring.h"
#include "hca/requester.h"

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
};

struct Pd : Object {};

// Memory of the HCA: every process of the fabric reaches it with loads and stores.
struct DeviceMemory : Object {
  control::DmOut made;
  std::byte* bytes = nullptr;  // made.length of them
};

struct Region : Object {
  control::RegMrIn in;
  control::MrOut made;  // lkey, rkey
  DeviceMemory* memory = nullptr;
};

struct AddressHandle : Object {
  verbs::AddressVector av;
};

struct IB_DRIVER_API Cq : Object {
  control::CreateCqIn in;
  control::CqOut made;
  // Called once for each arm(), at dispatch level, when there is something to poll.
  std::function<void(Cq& cq)> on_completion;

  hca::CqEntry* entry = nullptr;
  hca::Cqe* ring = nullptr;
  std::uint64_t consumed = 0;

  bool use_ring();
  void end();
};

struct IB_DRIVER_API Qp : Object {
  control::CreateQpIn in;
  control::QpOut made;  // its number
  control::ModifyQpIn change;
  control::ModifyQpOut changed;

  hca::QpEntry* entry = nullptr;
  hca::RetryLimits limits;
  std::unique_ptr<hca::Requester> requester;
  std::unique_ptr<hca::ReceiveRing> receives;
  std::optional<hca::Quiescence> quiet;  // being flushed, when posters have left
  bool flushed = false;

  verbs::QpState state() const;
  Status begin();
  void remember();
  void run();
  void flush();
  void end();
};

// --- creating: `irp` ends with the handle as information ---

IB_DRIVER_API void alloc_pd(Ca& ca, Pd& pd, io::IrpRef irp);
IB_DRIVER_API void alloc_dm(Ca& ca, const control::AllocDmIn& in, DeviceMemory& memory,
                            io::IrpRef irp);
// All of `memory`, from address 0 on.
IB_DRIVER_API void reg_dm(Pd& pd, DeviceMemory& memory, std::uint32_t access, Region& region,
                          io::IrpRef irp);
// Memory of softibd's process (virtual registration): programs reach it by process_vm.
IB_DRIVER_API void reg_mr(Pd& pd, void* address, std::uint64_t length, std::uint32_t access,
                          Region& region, io::IrpRef irp);
IB_DRIVER_API void create_ah(Pd& pd, const verbs::AddressVector& av, control::CreateAhIn& in,
                             AddressHandle& ah, io::IrpRef irp);
IB_DRIVER_API void create_cq(Ca& ca, std::uint32_t cqe, Cq& cq, io::IrpRef irp);
// RC, UC and UD.
IB_DRIVER_API void create_qp(Pd& pd, verbs::QpType type, const control::QpCaps& caps, Cq& send_cq,
                             Cq& recv_cq, Qp& qp, io::IrpRef irp);

// --- modifying, querying ---

// verbs::qp_attr says which attributes of `attr` count.
IB_DRIVER_API void modify_qp(Qp& qp, std::uint32_t mask, const control::QpAttr& attr,
                             io::IrpRef irp);
IB_DRIVER_API void query_qp(Qp& qp, control::QueryQpOut& out, io::IrpRef irp);
IB_DRIVER_API void attach_mcast(Qp& qp, control::McastIn& in, io::IrpRef irp);
IB_DRIVER_API void detach_mcast(Qp& qp, control::McastIn& in, io::IrpRef irp);

// --- destroying ---

IB_DRIVER_API void destroy(Pd& pd, io::IrpRef irp);
IB_DRIVER_API void destroy(DeviceMemory& memory, io::IrpRef irp);
IB_DRIVER_API void destroy(Region& region, io::IrpRef irp);
IB_DRIVER_API void destroy(AddressHandle& ah, io::IrpRef irp);
IB_DRIVER_API void destroy(Cq& cq, io::IrpRef irp);
IB_DRIVER_API void destroy(Qp& qp, io::IrpRef irp);

// --- data: direct calls that return at once ---

// InvalidParameter, InvalidState, LimitExceeded (queue full); what fails later completes in error.
IB_DRIVER_API Status post_send(Qp& qp, const hca::SendWqe& wqe);
IB_DRIVER_API Status post_recv(Qp& qp, std::uint64_t wr_id, std::span<const hca::Sge> sge);
// How many completions were written to `out`.
IB_DRIVER_API std::size_t poll(Cq& cq, std::span<hca::Completion> out);
// Cq::on_completion at the next completion, or soon if there is one that was not polled.
IB_DRIVER_API void arm(Cq& cq, bool solicited_only = false);

}  // namespace ib::al
