// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/objects.h"

#include <mutex>

namespace ib::host_abi {

namespace {

using control::HandleKind;

// May be no enumerator: the program may have written anything.
HandleKind kind_of(std::uint32_t handle) {
  return static_cast<HandleKind>(handle >> (control::kHandleIndexBits + control::kHandleCountBits));
}

// Whether the handle is that of an object of this program: in device memory, of a live entry of its
// own.
bool is_given_out(DeviceFile& file, std::uint32_t handle) {
  const hca::Arena& arena = file.hca->process().plane().arena();
  const std::uint32_t own = file.hca->process().plane().slot();
  const std::uint32_t index = control::index_of(handle);
  const std::lock_guard lock(file.mutex);
  switch (kind_of(handle)) {
    case HandleKind::Pd: return file.domains.contains(handle);
    case HandleKind::DeviceMemory: return file.device_memories.contains(handle);
    case HandleKind::Key: {
      const hca::KeyEntry* key = arena.key(index);
      return key != nullptr && key->id.key != 0 && key->id.owner_slot == own;
    }
    case HandleKind::Cq: {
      const hca::CqEntry* cq = arena.cq(index);
      return cq != nullptr && cq->id.generation != 0 && cq->id.owner_slot == own;
    }
    case HandleKind::Srq: {
      const hca::SrqEntry* srq = arena.srq(index);
      return srq != nullptr && srq->id.generation != 0 && srq->id.owner_slot == own;
    }
    case HandleKind::Qp: {
      const hca::QpEntry* qp = arena.qp(index);
      return qp != nullptr && qp->id.qpn != 0 && qp->id.owner_slot == own;
    }
    case HandleKind::Ah:
    case HandleKind::Xrcd:
    case HandleKind::Channel:
    case HandleKind::Backing:
    case HandleKind::McastGroup: break;  // the program never sees these
  }
  return false;
}

}  // namespace

int refuse_damaged(const char* verb, const Made& object, const ibv_context* context,
                   std::uint32_t handle) {
  const bool unknown =
      context == object.home && !inherited(object) && !is_given_out(file_of(object.home), handle);
  return fail(verb, unknown ? ENOENT : EINVAL, "the object's context or handle was overwritten");
}

}  // namespace ib::host_abi
