// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/forked.h"

#include "host_abi/provider/errors.h"
#include "host_abi/provider/ops.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace ib::host_abi {

namespace {

struct Watched {
  std::mutex mutex;
  std::vector<Context*> contexts;
};

// Never destroyed: a process may fork while it ends.
Watched& watched() {
  static auto& one = *new Watched;
  return one;
}

int post_send_in_child(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  if (!inherited(qp_of(qp))) return post_send(qp, wr, bad);
  if (bad != nullptr) *bad = wr;
  return fail_inherited("ibv_post_send");
}

int post_recv_in_child(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (!inherited(qp_of(qp))) return post_recv(qp, wr, bad);
  if (bad != nullptr) *bad = wr;
  return fail_inherited("ibv_post_recv");
}

int post_srq_recv_in_child(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  if (!inherited(srq_of(srq))) return post_srq_recv(srq, wr, bad);
  if (bad != nullptr) *bad = wr;
  return fail_inherited("ibv_post_srq_recv");
}

int poll_cq_in_child(ibv_cq* cq, int count, ibv_wc* wc) {
  if (!inherited(cq_of(cq))) return poll_cq(cq, count, wc);
  static_cast<void>(fail_inherited("ibv_poll_cq"));
  return -1;
}

int req_notify_cq_in_child(ibv_cq* cq, int solicited_only) {
  if (!inherited(cq_of(cq))) return req_notify_cq(cq, solicited_only);
  return fail_inherited("ibv_req_notify_cq");
}

void in_child() {
  for (Context* context : watched().contexts) {
    auto& ops = context->shown.ops;
    ops.post_send = post_send_in_child;
    ops.post_recv = post_recv_in_child;
    ops.post_srq_recv = post_srq_recv_in_child;
    ops.poll_cq = poll_cq_in_child;
    ops.req_notify_cq = req_notify_cq_in_child;
  }
  watched().mutex.unlock();
}

}  // namespace

void watch_forks(Context& context) {
  static const int registered =
      ::pthread_atfork([] { watched().mutex.lock(); }, [] { watched().mutex.unlock(); }, in_child);
  static_cast<void>(registered);
  const std::lock_guard lock(watched().mutex);
  watched().contexts.push_back(&context);
}

void forget_forks(Context& context) {
  const std::lock_guard lock(watched().mutex);
  std::erase(watched().contexts, &context);
}

int fail_inherited(const char* verb) {
  return fail(verb, errno_of(Status::Disconnected),
              "this process was forked from the one that made the object; a child makes its own");
}

}  // namespace ib::host_abi
