// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The objects that libibverbs and the application hold pointers to. Each *is* the public struct
// (first base), followed by our data; the functions below convert between them.
#pragma once

#include "host_abi/provider/abi/verbs_abi.h"
#include "host_abi/provider/errors.h"
#include "host_abi/provider/runtime.h"
#include "host_abi/provider/send_batch.h"
#include "user/completion_queue.h"
#include "user/hca.h"
#include "user/queue_pair.h"
#include "verbs/post_refusal.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace ib::host_abi {

namespace control = user::control;

// The end of a piece of memory that libibverbs makes with calloc: struct verbs_context, whose last
// member is the public struct, and what we have behind it. `file` is a pointer so that this stays
// plain memory.
struct Context {
  ibv_context shown;
  std::shared_ptr<DeviceFile>* file;
  unsigned epoch;  // fork_epoch() when `file` was opened
};

// The process in which an object was made. A forked child must not pass the parent's objects to the
// engine.
struct Made {
  unsigned epoch = fork_epoch();
  // The values of the public struct at that time (seal()); programs may overwrite the struct.
  ibv_context* home = nullptr;
  std::uint32_t number = 0;
};
inline bool inherited(const Made& object) {
  return object.epoch != fork_epoch();
}

struct Td : ibv_td {
  std::atomic<int> users{0};
};

// A protection domain, a parent domain around one, or an imported one.
struct Pd : ibv_pd, Made {
  std::shared_ptr<user::ProtectionDomain> engine;
  Pd* parent_of = nullptr;  // parent domain: the protection domain inside it
  Td* td = nullptr;
  std::atomic<int> users{0};  // parent domains around this one, or see DomainUse
};

// The use of a parent domain by a queue that was made in it, as long as that exists. Of a
// protection domain softibd counts the users.
class DomainUse {
 public:
  DomainUse() = default;
  DomainUse(const DomainUse&) = delete;
  DomainUse& operator=(const DomainUse&) = delete;
  ~DomainUse() {
    if (domain_ != nullptr) --domain_->users;
  }
  void begin(Pd& domain) {
    if (domain.parent_of == nullptr) return;
    domain_ = &domain;
    ++domain.users;
  }

 private:
  Pd* domain_ = nullptr;
};

struct Mr : VerbsMr, Made {
  std::shared_ptr<user::MemoryRegion> engine;
};

struct Mw : ibv_mw, Made {
  std::unique_ptr<user::MemoryWindow> engine;
};

struct Dm : ibv_dm, Made {
  std::shared_ptr<user::DeviceMemory> engine;
  std::uint64_t length = 0;  // as requested; the engine's may be rounded up
};

struct Ah : ibv_ah, Made {
  std::unique_ptr<user::AddressHandle> engine;
};

struct Xrcd : ibv_xrcd, Made {
  std::unique_ptr<user::XrcDomain> engine;
};

struct Cq : VerbsCq, Made {
  std::unique_ptr<user::CompletionQueue> engine;
  DomainUse domain;
  std::uint64_t cookie = 0;
  user::Completion current;           // being polled; under the engine's lock
  std::int64_t wallclock_offset = 0;  // CLOCK_REALTIME - CLOCK_MONOTONIC, as of the last start_poll
};

// By kind, of requests that were not taken (post_refusal.h).
using Refusals = std::array<std::atomic<std::uint32_t>, verbs::control::kPostRefusalCount>;

struct Srq : ibv_srq, Made {
  std::unique_ptr<user::SharedReceiveQueue> engine;
  DomainUse domain;
  std::uint64_t cookie = 0;
  verbs::SrqType type = verbs::SrqType::Basic;
  Refusals refusals;
};

struct Qp : VerbsQp, Made {
  std::unique_ptr<user::QueuePair> engine;
  DomainUse domain;
  std::uint64_t cookie = 0;
  std::unique_ptr<SendBatch> batch;  // ibv_qp_ex only
  hca::SendWqe request;              // being posted; under the engine's send lock
  bool signal_all = false;
  Refusals refusals;
};

inline Context& context_of(ibv_context* context) {
  return *reinterpret_cast<Context*>(context);
}
// The open HCA of a context. A context that a forked child inherited opens it again for the child
// at its first use there (context.cpp).
DeviceFile& file_of(ibv_context* context);
inline user::Hca& hca_of(ibv_context* context) {
  return *file_of(context).hca;
}

inline Td& td_of(ibv_td* td) {
  return *static_cast<Td*>(td);
}
inline Pd& pd_of(ibv_pd* pd) {
  return *static_cast<Pd*>(pd);
}
inline Mr& mr_of(VerbsMr* mr) {
  return *static_cast<Mr*>(mr);
}
inline Mr& mr_of(ibv_mr* mr) {
  return mr_of(reinterpret_cast<VerbsMr*>(mr));
}
inline Mw& mw_of(ibv_mw* mw) {
  return *static_cast<Mw*>(mw);
}
inline Dm& dm_of(ibv_dm* dm) {
  return *static_cast<Dm*>(dm);
}
inline Ah& ah_of(ibv_ah* ah) {
  return *static_cast<Ah*>(ah);
}
inline Xrcd& xrcd_of(ibv_xrcd* xrcd) {
  return *static_cast<Xrcd*>(xrcd);
}
inline Srq& srq_of(ibv_srq* srq) {
  return *static_cast<Srq*>(srq);
}
inline Cq& cq_of(ibv_cq* cq) {
  return *static_cast<Cq*>(reinterpret_cast<VerbsCq*>(cq));
}
inline Cq& cq_of(ibv_cq_ex* cq) {
  return *static_cast<Cq*>(reinterpret_cast<VerbsCq*>(cq));
}
inline Qp& qp_of(ibv_qp* qp) {
  return *static_cast<Qp*>(reinterpret_cast<VerbsQp*>(qp));
}
inline Qp& qp_of(ibv_qp_ex* qp) {
  return *static_cast<Qp*>(reinterpret_cast<VerbsQp*>(qp));
}

// The public struct of one of ours.
template <class Object>
auto& shown(Object& object) {
  if constexpr (requires { object.qp; }) {
    return object.qp;
  } else if constexpr (requires { object.cq; }) {
    return object.cq;
  } else if constexpr (requires { object.mr; }) {
    return object.mr;
  } else {
    return object;
  }
}
template <class Object>
std::uint32_t shown_handle(const Object& object) {
  if constexpr (requires { shown(object).handle; }) {
    return shown(object).handle;
  } else {
    return 0;  // XRC domains show none
  }
}
// To be called when an object has its context and handle.
template <class Object>
Object* seal(Object* object) {
  object->home = shown(*object).context;
  object->number = shown_handle(*object);
  return object;
}
// Of an object whose context or handle was overwritten with these (objects.cpp): ENOENT if no
// object of the program has the handle, else EINVAL.
int refuse_damaged(const char* verb, const Made& object, const ibv_context* context,
                   std::uint32_t handle);
// A kernel finds an object by its context and handle, so it refuses an object whose copies are
// wrong and leaves it alone. Returns 0, or an error number for such an object.
template <class Object>
int check_whole(const char* verb, const Object& object) {
  const bool whole = shown(object).context == object.home && shown_handle(object) == object.number;
  return whole ? 0 : refuse_damaged(verb, object, shown(object).context, shown_handle(object));
}

// Destroys the engine's object. Succeeds if it is gone already, because softibd or the HCA went or
// because this is a forked child: an application must be able to clean up.
template <class Object>
Status destroy_engine(const Object& object) {
  if (inherited(object)) return Status::Ok;
  const Status status = object.engine->destroy();
  const bool gone = status == Status::Disconnected || status == Status::DeviceRemoved;
  return gone ? Status::Ok : status;
}

// Deletes our object. A forked child leaks the engine's part: destructors would work on memory that
// is not mapped.
template <class Object>
void drop(Object* object) {
  if (inherited(*object)) {
    if constexpr (requires { object->engine.release(); }) {
      static_cast<void>(object->engine.release());
    }
  }
  delete object;
}

// Waits until the application has acknowledged all events of the object [man ibv_get_async_event:
// destroying waits].
void wait_acknowledged(pthread_mutex_t& mutex, pthread_cond_t& cond, const std::uint32_t& completed,
                       std::uint32_t delivered);

}  // namespace ib::host_abi
