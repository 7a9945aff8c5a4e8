// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/abi/abi_check.h"

#include <dlfcn.h>

#include <array>
#include <cstring>

namespace ib::host_abi {

namespace {

constexpr const char* kVersion = "IBVERBS_PRIVATE_34";

// More pointers than the library may read, so that unknown operations show.
constexpr std::size_t kProbed = kVerbsOpCount + 24;
constexpr std::size_t kPrivateOps = 0x18;  // of the table in the library's private part, in bytes

std::uintptr_t mark(std::size_t index) {
  return 0x1000 + 16 * index;
}

std::uintptr_t word_at(const void* base, std::size_t offset) {
  std::uintptr_t value = 0;
  std::memcpy(&value, static_cast<const std::byte*>(base) + offset, sizeof value);
  return value;
}

// `member` of verbs_context (or its ibv_context_ops) must have received operation `op`.
struct Landing {
  std::size_t member;
  std::size_t op;
};
#define IB_LANDS(field, op)                                                       \
  Landing {                                                                       \
    offsetof(verbs_context, field), offsetof(VerbsContextOps, op) / sizeof(void*) \
  }
constexpr std::array kLandings{
    IB_LANDS(advise_mr, advise_mr),
    IB_LANDS(alloc_dm, alloc_dm),
    IB_LANDS(context.ops.alloc_mw, alloc_mw),
    IB_LANDS(alloc_null_mr, alloc_null_mr),
    IB_LANDS(alloc_parent_domain, alloc_parent_domain),
    IB_LANDS(alloc_td, alloc_td),
    IB_LANDS(context.ops.bind_mw, bind_mw),
    IB_LANDS(close_xrcd, close_xrcd),
    IB_LANDS(create_qp_ex, create_qp_ex),
    IB_LANDS(create_srq_ex, create_srq_ex),
    IB_LANDS(context.ops.dealloc_mw, dealloc_mw),
    IB_LANDS(dealloc_td, dealloc_td),
    IB_LANDS(free_dm, free_dm),
    IB_LANDS(get_srq_num, get_srq_num),
    IB_LANDS(modify_cq, modify_cq),
    IB_LANDS(open_qp, open_qp),
    IB_LANDS(open_xrcd, open_xrcd),
    IB_LANDS(context.ops.poll_cq, poll_cq),
    IB_LANDS(context.ops.post_recv, post_recv),
    IB_LANDS(context.ops.post_send, post_send),
    IB_LANDS(post_srq_ops, post_srq_ops),
    IB_LANDS(context.ops.post_srq_recv, post_srq_recv),
    IB_LANDS(query_device_ex, query_device_ex),
    IB_LANDS(query_rt_values, query_rt_values),
    IB_LANDS(read_counters, read_counters),
    IB_LANDS(reg_dm_mr, reg_dm_mr),
    IB_LANDS(context.ops.req_notify_cq, req_notify_cq),
};
#undef IB_LANDS

template <class Function>
bool find(void* library, const char* name, Function& out) {
  void* found = dlvsym(library, name, kVersion);
  if (found == nullptr) return false;
  std::memcpy(&out, &found, sizeof found);  // a function pointer from dlvsym, the POSIX way
  return true;
}

}  // namespace

bool set_ops_matches_layout(void (*set_ops)(verbs_context*, const VerbsContextOps*)) {
  std::array<std::uintptr_t, kProbed> table{};
  for (std::size_t i = 0; i < kProbed; ++i) table[i] = mark(i);
  std::array<std::uintptr_t, 4 * kProbed> library_private{};
  verbs_context context{};
  void* place = library_private.data();
  context.priv = static_cast<verbs_ex_private*>(place);
  const void* source = table.data();
  set_ops(&context, static_cast<const VerbsContextOps*>(source));

  for (const Landing& landing : kLandings) {
    if (word_at(&context, landing.member) != mark(landing.op)) return false;
  }
  // All of our operations are copied into the private part, and nothing behind them.
  for (std::size_t i = 0; i < kProbed; ++i) {
    const std::uintptr_t expected = i < kVerbsOpCount ? mark(i) : 0;
    if (word_at(place, kPrivateOps + i * sizeof(void*)) != expected) return false;
  }
  return true;
}

bool load_verbs_private(VerbsPrivate& out, std::string& reason) {
  void* library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    reason = "libibverbs.so.1 is not loaded in this process; this file is a plug-in of it";
    return false;
  }
  Dl_info where{};
  if (void* any = dlsym(library, "ibv_get_device_list"); any != nullptr) {
    static_cast<void>(dladdr(any, &where));
  }
  const std::string path = where.dli_fname != nullptr ? where.dli_fname : "libibverbs.so.1";
  const bool found = find(library, "verbs_register_driver_34", out.register_driver) &&
                     find(library, "_verbs_init_and_alloc_context", out.init_and_alloc_context) &&
                     find(library, "verbs_uninit_context", out.uninit_context) &&
                     find(library, "verbs_set_ops", out.set_ops);
  if (!found) {
    reason = path + " has no private plug-in interface " + kVersion +
             "; this softib is built for rdma-core 44 (Debian 12)";
  } else if (!set_ops_matches_layout(out.set_ops)) {
    reason = path + " has the private plug-in interface 34 but other operations than rdma-core 44" +
             " (Debian 12), which this softib is built for";
    return false;
  }
  // The handle is not closed: the library must stay as long as we are here.
  return found;
}

}  // namespace ib::host_abi
