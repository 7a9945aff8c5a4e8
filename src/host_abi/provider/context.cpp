// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Contexts: an open device, and the table of its operations. For operations that are not in the
// table (flow steering, RSS, raw packets, tag matching, counters, completion counters, dma-buf, DMA
// handles, CQ moderation) libibverbs returns EOPNOTSUPP. Buffers (ibv_alloc_buf) it makes itself.
#include "host_abi/provider/deferred.h"
#include "host_abi/provider/forked.h"
#include "host_abi/provider/ops.h"
#include "host_abi/provider/provider.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

namespace ib::host_abi {

namespace {

constexpr VerbsContextOps make_ops() {
  VerbsContextOps ops{};
  ops.advise_mr = deferred<advise_mr>;
  ops.alloc_dm = deferred<alloc_dm>;
  ops.alloc_mw = deferred<alloc_mw>;
  ops.alloc_null_mr = deferred<alloc_null_mr>;
  ops.alloc_parent_domain = deferred<alloc_parent_domain>;
  ops.alloc_pd = deferred<alloc_pd>;
  ops.alloc_td = deferred<alloc_td>;
  ops.async_event = deferred<async_event>;
  ops.attach_mcast = deferred<attach_mcast>;
  ops.bind_mw = deferred<bind_mw>;
  ops.close_xrcd = deferred<close_xrcd>;
  ops.create_ah = deferred<create_ah>;
  ops.create_cq = deferred<create_cq>;
  ops.create_cq_ex = deferred<create_cq_ex>;
  ops.create_qp = deferred<create_qp>;
  ops.create_qp_ex = deferred<create_qp_ex>;
  ops.create_srq = deferred<create_srq>;
  ops.create_srq_ex = deferred<create_srq_ex>;
  ops.dealloc_mw = deferred<dealloc_mw>;
  ops.dealloc_pd = deferred<dealloc_pd>;
  ops.dealloc_td = deferred<dealloc_td>;
  ops.dereg_mr = deferred<dereg_mr>;
  ops.destroy_ah = deferred<destroy_ah>;
  ops.destroy_cq = deferred<destroy_cq>;
  ops.destroy_qp = deferred<destroy_qp>;
  ops.destroy_srq = deferred<destroy_srq>;
  ops.detach_mcast = deferred<detach_mcast>;
  ops.free_context = deferred<free_context>;
  ops.free_dm = deferred<free_dm>;
  ops.get_srq_num = deferred<get_srq_num>;
  ops.import_dm = deferred<import_dm>;
  ops.import_mr = deferred<import_mr>;
  ops.import_pd = deferred<import_pd>;
  ops.modify_qp = deferred<modify_qp>;
  ops.modify_srq = deferred<modify_srq>;
  ops.open_qp = deferred<open_qp>;
  ops.open_xrcd = deferred<open_xrcd>;
  ops.poll_cq = poll_cq;
  ops.post_recv = post_recv;
  ops.post_send = post_send;
  ops.post_srq_recv = post_srq_recv;
  ops.query_device_ex = deferred<query_device_ex>;
  ops.query_ece = deferred<query_ece>;
  ops.query_port = deferred<query_port>;
  ops.query_port_speed = deferred<query_port_speed>;
  ops.query_qp = deferred<query_qp>;
  ops.query_qp_data_in_order = deferred<query_qp_data_in_order>;
  ops.query_rt_values = deferred<query_rt_values>;
  ops.query_srq = deferred<query_srq>;
  ops.reg_dm_mr = deferred<reg_dm_mr>;
  ops.reg_mr = deferred<reg_mr>;
  ops.reg_mr_ex = deferred<reg_mr_ex>;
  ops.req_notify_cq = req_notify_cq;
  ops.rereg_mr = deferred<rereg_mr>;
  ops.resize_cq = deferred<resize_cq>;
  ops.set_ece = deferred<set_ece>;
  ops.unimport_dm = deferred<unimport_dm>;
  ops.unimport_mr = deferred<unimport_mr>;
  ops.unimport_pd = deferred<unimport_pd>;
  return ops;
}
constexpr VerbsContextOps kOps = make_ops();

// The start of the memory that `context` is the end of.
verbs_context* verbs_of(Context& context) {
  void* const start = reinterpret_cast<std::byte*>(&context) - verbs_private().context_head();
  return static_cast<verbs_context*>(start);
}

// RDMA_DRIVER_UNKNOWN: the library only prints it.
constexpr std::uint32_t kDriverId = 0;

// Takes `cmd_fd` over, also on failure, as libibverbs expects.
Context* make_context(ibv_device* device, int cmd_fd, std::shared_ptr<DeviceFile> file) {
  const VerbsPrivate& library = verbs_private();
  const std::size_t head = library.context_head();
  void* memory =
      library.init_and_alloc_context(device, cmd_fd, head + sizeof(Context), nullptr, kDriverId);
  if (memory == nullptr) {
    Runtime::instance().forget(file, cmd_fd);
    return nullptr;
  }
  void* const end = static_cast<std::byte*>(memory) + head;
  auto* context = static_cast<Context*>(end);
  context->epoch = fork_epoch();
  context->file = new std::shared_ptr<DeviceFile>(std::move(file));
  context->shown.num_comp_vectors = 1;
  static const PackedOps ops = pack(kOps, library.ops_table);
  library.set_ops(verbs_of(*context), ops.data());
  watch_forks(*context);
  return context;
}

// In a forked child: the parent's file stays the parent's. So do its asynchronous events: the
// descriptor keeps its number but gets another socket.
void open_again(ibv_context* ibcontext) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Context& context = context_of(ibcontext);
  if (context.epoch == fork_epoch()) return;
  auto file = Runtime::instance().open(*ibcontext->device, ibcontext->cmd_fd);
  if (!file) return;
  if (!(*file)->async.take_number(ibcontext->async_fd)) {
    Runtime::instance().forget(*file, ibcontext->cmd_fd);
    return;
  }
  context.file = new std::shared_ptr<DeviceFile>(*std::move(file));  // the old one is not touched
  std::atomic_ref(context.epoch).store(fork_epoch(), std::memory_order_release);
}

}  // namespace

verbs_context* alloc_context(ibv_device* device, int cmd_fd, void*) {
  return guarded("ibv_open_device", static_cast<verbs_context*>(nullptr), [&]() -> verbs_context* {
    auto file = Runtime::instance().open(*device, cmd_fd);
    if (!file) {
      ::close(cmd_fd);
      return fail_null("ibv_open_device", file.error());
    }
    Context* context = make_context(device, cmd_fd, *std::move(file));
    if (context == nullptr) return nullptr;
    context->shown.async_fd = (*context->file)->async.hand_over();
    return verbs_of(*context);
  });
}

// One more context for an open device, from a duplicate of its descriptor. Its asynchronous events
// stay with the context that opened the device. A descriptor of another process is refused: objects
// cannot be shared between processes here.
verbs_context* import_context(ibv_device* device, int cmd_fd) {
  return guarded("ibv_import_device", static_cast<verbs_context*>(nullptr),
                 [&]() -> verbs_context* {
                   auto file = Runtime::instance().share(device->name, cmd_fd);
                   if (!file) return fail_null("ibv_import_device", file.error());
                   Context* context = make_context(device, cmd_fd, *std::move(file));
                   return context == nullptr ? nullptr : verbs_of(*context);
                 });
}

void free_context(ibv_context* ibcontext) {
  Context& context = context_of(ibcontext);
  if (context.epoch == fork_epoch()) {
    Runtime::instance().forget(*context.file, ibcontext->cmd_fd);
    delete context.file;  // the last one closes the HCA; softibd then removes its objects
  }
  forget_forks(context);
  verbs_context* const verbs = verbs_of(context);
  verbs_private().uninit_context(verbs);
  std::free(verbs);
}

DeviceFile& file_of(ibv_context* ibcontext) {
  Context& context = context_of(ibcontext);
  if (std::atomic_ref(context.epoch).load(std::memory_order_acquire) != fork_epoch()) {
    open_again(ibcontext);  // on failure the engine refuses requests to the old one
  }
  return **context.file;
}

void async_event(ibv_context* context, ibv_async_event*) {
  file_of(context).async.flush();
}

namespace {

// The number of events that a call waits for, in the process slot, for `softib resources`: those
// of a program that hangs here are seen nowhere else, since libibverbs counts them in the object.
// Relaxed: softibd shows the number and does nothing by it.
class AwaitedEvents {
 public:
  explicit AwaitedEvents(std::uint32_t count) : count_(count) {
    const user::Process* process = Runtime::attached();
    if (process == nullptr) return;
    slot_ = process->arena().slot(process->info().slot);
    if (slot_ != nullptr) slot_->unacknowledged.fetch_add(count_, std::memory_order_relaxed);
  }
  AwaitedEvents(const AwaitedEvents&) = delete;
  AwaitedEvents& operator=(const AwaitedEvents&) = delete;
  ~AwaitedEvents() {
    if (slot_ != nullptr) slot_->unacknowledged.fetch_sub(count_, std::memory_order_relaxed);
  }

 private:
  hca::ProcessSlot* slot_ = nullptr;
  std::uint32_t count_;
};

}  // namespace

void wait_acknowledged(pthread_mutex_t& mutex, pthread_cond_t& cond, const std::uint32_t& completed,
                       std::uint32_t delivered) {
  ::pthread_mutex_lock(&mutex);
  if (completed != delivered) {
    const AwaitedEvents awaited(delivered - completed);
    while (completed != delivered) ::pthread_cond_wait(&cond, &mutex);
  }
  ::pthread_mutex_unlock(&mutex);
}

}  // namespace ib::host_abi
