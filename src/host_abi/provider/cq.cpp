// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion queues.
#include "host_abi/provider/abi/convert.h"
#include "host_abi/provider/ops.h"
#include "user/take.h"

#include <cerrno>

namespace ib::host_abi {

namespace {

constexpr std::uint64_t kTimestampFlags =
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr std::uint64_t kWcFlags = IBV_WC_STANDARD_FLAGS | kTimestampFlags;
constexpr std::uint32_t kCqFlags =
    IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

Cq* make_cq(ibv_context* context, control::CreateCqIn in, const ibv_comp_channel* channel,
            const char* verb) {
  const auto vectors = static_cast<std::uint32_t>(context->num_comp_vectors);
  if (in.comp_vector >= vectors) return fail_null(verb, EINVAL, "no such completion vector");
  if (channel != nullptr) {
    const auto handle = Runtime::instance().channel_handle(channel->fd);
    if (!handle) return fail_null(verb, EINVAL, "the completion channel is not of this device");
    in.channel = *handle;
  }
  DeviceFile& file = file_of(context);
  EventHub& events = Runtime::instance().events();
  auto cq = std::make_unique<Cq>();
  cq->cookie = events.add(&cq->cq, &file.async);
  in.cookie = cq->cookie;
  auto engine = file.hca->create_cq(in);
  if (!engine) {
    static_cast<void>(events.remove(cq->cookie));
    return fail_null(verb, engine.error());
  }
  cq->engine = *std::move(engine);
  cq->cq.context = context;
  cq->cq.handle = cq->engine->handle();
  cq->cq.cqe = static_cast<int>(cq->engine->cqe());
  return seal(cq.release());  // libibverbs sets the rest (verbs_init_cq)
}

}  // namespace

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int comp_vector) {
  if (cqe <= 0) return fail_null("ibv_create_cq", EINVAL, "the number of entries must be above 0");
  return guarded("ibv_create_cq", static_cast<ibv_cq*>(nullptr), [&]() -> ibv_cq* {
    control::CreateCqIn in;
    in.cqe = static_cast<std::uint32_t>(cqe);
    in.comp_vector = static_cast<std::uint32_t>(comp_vector);
    Cq* cq = make_cq(context, in, channel, "ibv_create_cq");
    return cq == nullptr ? nullptr : &cq->cq;
  });
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  constexpr std::uint32_t kMask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  if (attr->cqe == 0 || attr->cqe > 0x7fffffffu) {
    return fail_null("ibv_create_cq_ex", EINVAL, "the number of entries must be above 0");
  }
  if ((attr->comp_mask & ~kMask) != 0) {
    return fail_null("ibv_create_cq_ex", EOPNOTSUPP, "unknown bits in comp_mask");
  }
  if ((attr->wc_flags & ~kWcFlags) != 0) {
    return fail_null("ibv_create_cq_ex", EOPNOTSUPP,
                     "wc_flags ask for VLAN, flow tag or tag matching, which an InfiniBand HCA "
                     "without flow steering does not have");
  }
  const std::uint32_t flags =
      (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : 0;
  if ((flags & ~kCqFlags) != 0) {
    return fail_null("ibv_create_cq_ex", EOPNOTSUPP, "unknown bits in flags");
  }
  return guarded("ibv_create_cq_ex", static_cast<ibv_cq_ex*>(nullptr), [&]() -> ibv_cq_ex* {
    control::CreateCqIn in;
    in.cqe = attr->cqe;
    in.comp_vector = attr->comp_vector;
    if ((attr->wc_flags & kTimestampFlags) != 0) in.flags |= control::cq_flag::kTimestamp;
    if ((flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0) {
      in.flags |= control::cq_flag::kIgnoreOverrun;
    }
    Cq* cq = make_cq(context, in, attr->channel, "ibv_create_cq_ex");
    if (cq == nullptr) return nullptr;
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 && attr->parent_domain != nullptr) {
      cq->domain.begin(pd_of(attr->parent_domain));
    }
    set_cq_ex_functions(*cq, attr->wc_flags);
    return &cq->cq_ex;
  });
}

// The queue is locked; `polled` completions have been taken. Unlocks it.
[[gnu::noinline]] int poll_rest(user::CompletionQueue& engine, int count, ibv_wc* wc, int polled) {
  while (polled < count &&
         engine.take_into([&](const hca::Cqe& cqe, const user::TakenCompletion& taken) {
           to_wc(cqe, taken, wc[polled]);
         })) {
    ++polled;
    if (engine.is_idle()) break;
  }
  engine.unlock();
  if (polled != 0 || count <= 0 || !engine.is_over()) return polled;
  // A program that polls until something comes would never end.
  errno = EIO;
  return -1;
}

[[gnu::noinline]] int lock_and_poll(user::CompletionQueue& engine, int count, ibv_wc* wc) {
  engine.lock();
  return poll_rest(engine, count, wc, 0);
}

int poll_cq(ibv_cq* ibcq, int count, ibv_wc* wc) {
  using Take = user::CompletionQueue::Take;
  user::CompletionQueue& engine = *cq_of(ibcq).engine;
  if (!engine.enter()) [[unlikely]]
    return lock_and_poll(engine, count, wc);
  int polled = 0;
  while (polled < count) {
    const Take took =
        engine.take_plain([&](const hca::Cqe& cqe, const user::TakenCompletion& taken) {
          to_wc(cqe, taken, wc[polled]);
        });
    if (took == Take::Other) [[unlikely]]
      return poll_rest(engine, count, wc, polled);
    if (took == Take::Nothing) break;
    ++polled;
  }
  if (!engine.leave()) [[unlikely]]
    return poll_rest(engine, polled, wc, polled);
  return polled;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  cq_of(cq).engine->arm(solicited_only != 0);
  return 0;
}

int resize_cq(ibv_cq* ibcq, int cqe) {
  if (cqe <= 0) return fail("ibv_resize_cq", EINVAL, "the number of entries must be above 0");
  return guarded_int("ibv_resize_cq", [&] {
    Cq& cq = cq_of(ibcq);
    if (const int error = check_whole("ibv_resize_cq", cq)) return error;
    const Status status = cq.engine->resize(static_cast<std::uint32_t>(cqe));
    if (status != Status::Ok) return fail("ibv_resize_cq", status);
    ibcq->cqe = static_cast<int>(cq.engine->cqe());
    return 0;
  });
}

int destroy_cq(ibv_cq* ibcq) {
  return guarded_int("ibv_destroy_cq", [&] {
    Cq& cq = cq_of(ibcq);
    if (const int error = check_whole("ibv_destroy_cq", cq)) return error;
    const Status status = destroy_engine(cq);
    if (status != Status::Ok) return fail("ibv_destroy_cq", status);
    if (!inherited(cq)) {
      const auto delivered = Runtime::instance().events().remove(cq.cookie);
      wait_acknowledged(ibcq->mutex, ibcq->cond, ibcq->comp_events_completed, delivered.completion);
      wait_acknowledged(ibcq->mutex, ibcq->cond, ibcq->async_events_completed, delivered.async);
    }
    drop(&cq);
    return 0;
  });
}

}  // namespace ib::host_abi
