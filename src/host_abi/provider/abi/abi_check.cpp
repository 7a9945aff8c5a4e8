// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/abi/abi_check.h"

#include "verbs/private_abi.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace ib::host_abi {

namespace {

// More pointers than a library may read, so that operations of later versions show.
constexpr std::size_t kProbed = kVerbsOpCount + 32;
// Where the table is in the library's private part, in bytes: behind a bitmap of words, whose size
// is rounded up, a number and a flag.
constexpr std::size_t kPrivateOps = sizeof(void*) == 8 ? 0x18 : 0x14;
constexpr std::size_t kContextWords = 256;
constexpr std::ptrdiff_t kWord = sizeof(void*);

std::uintptr_t mark(std::size_t index) {
  return 0x1000 + 16 * index;
}

// Operation `op` must arrive at `place`, in bytes from the struct ibv_context.
struct Landing {
  std::ptrdiff_t place;
  std::size_t op;
};
// The same in all versions: struct verbs_context grows at its start.
#define IB_LANDS(field, op)                                            \
  Landing {                                                            \
    static_cast<std::ptrdiff_t>(offsetof(verbs_context, field)) -      \
        static_cast<std::ptrdiff_t>(offsetof(verbs_context, context)), \
        offsetof(VerbsContextOps, op) / sizeof(void*)                  \
  }
#define IB_LANDS_HERE(op) IB_LANDS(op, op)
#define IB_LANDS_INSIDE(op) IB_LANDS(context.ops.op, op)
#define IB_LANDS_OLD(op) IB_LANDS(context.ops._compat_##op, op)
// Fields of rdma-core 59 and later, which the headers may lack: in words.
#define IB_LANDS_AT(words, op)                                    \
  Landing {                                                       \
    -kWord*(words), offsetof(VerbsContextOps, op) / sizeof(void*) \
  }
constexpr std::array kLandings{
    IB_LANDS_HERE(advise_mr),
    IB_LANDS_HERE(alloc_dm),
    IB_LANDS_INSIDE(alloc_mw),
    IB_LANDS_HERE(alloc_null_mr),
    IB_LANDS_HERE(alloc_parent_domain),
    IB_LANDS_OLD(alloc_pd),
    IB_LANDS_HERE(alloc_td),
    IB_LANDS_OLD(async_event),
    IB_LANDS_OLD(attach_mcast),
    IB_LANDS_INSIDE(bind_mw),
    IB_LANDS_HERE(close_xrcd),
    IB_LANDS_OLD(create_ah),
    IB_LANDS_OLD(create_cq),
    IB_LANDS_OLD(create_qp),
    IB_LANDS_HERE(create_qp_ex),
    IB_LANDS_OLD(create_srq),
    IB_LANDS_HERE(create_srq_ex),
    IB_LANDS_INSIDE(dealloc_mw),
    IB_LANDS_OLD(dealloc_pd),
    IB_LANDS_HERE(dealloc_td),
    IB_LANDS_OLD(dereg_mr),
    IB_LANDS_OLD(destroy_ah),
    IB_LANDS_OLD(destroy_cq),
    IB_LANDS_OLD(destroy_qp),
    IB_LANDS_OLD(destroy_srq),
    IB_LANDS_OLD(detach_mcast),
    IB_LANDS_HERE(free_dm),
    IB_LANDS_HERE(get_srq_num),
    IB_LANDS_HERE(modify_cq),
    IB_LANDS_OLD(modify_qp),
    IB_LANDS_OLD(modify_srq),
    IB_LANDS_HERE(open_qp),
    IB_LANDS_HERE(open_xrcd),
    IB_LANDS_INSIDE(poll_cq),
    IB_LANDS_INSIDE(post_recv),
    IB_LANDS_INSIDE(post_send),
    IB_LANDS_HERE(post_srq_ops),
    IB_LANDS_INSIDE(post_srq_recv),
    IB_LANDS_HERE(query_device_ex),
    IB_LANDS_OLD(query_qp),
    IB_LANDS_HERE(query_rt_values),
    IB_LANDS_OLD(query_srq),
    IB_LANDS_HERE(read_counters),
    IB_LANDS_HERE(reg_dm_mr),
    IB_LANDS_OLD(reg_mr),
    IB_LANDS_INSIDE(req_notify_cq),
    IB_LANDS_OLD(rereg_mr),
    IB_LANDS_OLD(resize_cq),
    IB_LANDS_AT(41, alloc_dmah),
    IB_LANDS_AT(42, dealloc_dmah),
    IB_LANDS_AT(43, reg_mr_ex),
    IB_LANDS_AT(44, dm_export_dmabuf_fd),
    IB_LANDS_AT(45, alloc_buf),
    IB_LANDS_AT(46, free_buf),
};
#undef IB_LANDS_AT
#undef IB_LANDS_OLD
#undef IB_LANDS_INSIDE
#undef IB_LANDS_HERE
#undef IB_LANDS

// The library's two copies of a table whose pointers are marked.
struct Sorted {
  std::array<std::uintptr_t, kContextWords> context{};
  std::array<std::uintptr_t, 4 * kProbed> library_private{};

  bool landed(const Landing& landing, std::size_t table) const {
    const std::size_t end = kOpsTables[table].context - sizeof(ibv_context);
    const auto place = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(end) + landing.place);
    return context[place / sizeof(void*)] == mark(place_in_table(landing.op, table));
  }
};

// Every word of the context is the address of the private part, since the place from where the
// library takes it depends on the size of the context.
std::unique_ptr<Sorted> sort_marks(void (*set_ops)(verbs_context*, const void*)) {
  auto sorted = std::make_unique<Sorted>();
  std::array<std::uintptr_t, kProbed> table{};
  for (std::size_t i = 0; i < kProbed; ++i) table[i] = mark(i);
  void* const place = sorted->library_private.data();
  sorted->context.fill(reinterpret_cast<std::uintptr_t>(place));
  void* const context = sorted->context.data();
  set_ops(static_cast<verbs_context*>(context), table.data());
  return sorted;
}

template <class Function>
bool find(void* library, const char* name, const char* version, Function& out) {
  void* found = version != nullptr ? dlvsym(library, name, version) : dlsym(library, name);
  if (found == nullptr) return false;
  std::memcpy(&out, &found, sizeof found);  // a function pointer from dlvsym, the POSIX way
  return true;
}

std::string register_name(int abi) {
  return "verbs_register_driver_" + std::to_string(abi);
}
std::string version_name(int abi) {
  return "IBVERBS_PRIVATE_" + std::to_string(abi);
}

// "rdma-core 56.1 (/usr/lib/libibverbs.so.1.14.56.1)"
std::string name_of(void* library) {
  Dl_info where{};
  void* const any = dlsym(library, "ibv_get_device_list");
  if (any == nullptr || dladdr(any, &where) == 0 || where.dli_fname == nullptr) return "libibverbs";
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(where.dli_fname, nullptr),
                                                    std::free);
  const std::string path = real != nullptr ? real.get() : where.dli_fname;
  const std::string release(verbs::rdma_core_release(path));
  return release.empty() ? path : "rdma-core " + release + " (" + path + ")";
}

std::string known_abis() {
  return "this softib knows " + std::to_string(verbs::kPrivateAbis.front()) + " to " +
         std::to_string(verbs::kPrivateAbis.back());
}

}  // namespace

std::optional<std::size_t> find_ops_table(void (*set_ops)(verbs_context*, const void*)) {
  const std::unique_ptr<Sorted> sorted = sort_marks(set_ops);
  const auto* const copied = sorted->library_private.data() + kPrivateOps / sizeof(void*);
  std::size_t ops = 0;
  while (ops < kProbed && copied[ops] == mark(ops)) ++ops;
  const auto* const found = std::find_if(kOpsTables.begin(), kOpsTables.end(),
                                         [&](const OpsTable& one) { return one.ops == ops; });
  if (found == kOpsTables.end()) return std::nullopt;
  const auto table = static_cast<std::size_t>(found - kOpsTables.begin());
  // The marks end with the table; more behind them are operations in other places.
  if (std::any_of(copied + ops, copied + kProbed, [](std::uintptr_t word) { return word != 0; })) {
    return std::nullopt;
  }
  const bool all = std::all_of(kLandings.begin(), kLandings.end(), [&](const Landing& landing) {
    return kFirstTable[landing.op] > table || sorted->landed(landing, table);
  });
  return all ? std::optional(table) : std::nullopt;
}

std::optional<std::size_t> find_qp_ex_functions(ibv_qp_ex* (*qp_to_qp_ex)(ibv_qp*)) {
  std::optional<std::size_t> found;
  for (std::size_t functions = kQpExLeast; functions <= kQpExMost; ++functions) {
    VerbsQp marked{};
    mark_extended(marked, functions);
    if (qp_to_qp_ex(&marked.qp) == nullptr) continue;
    if (found) return std::nullopt;  // it looks at something else
    found = functions;
  }
  return found;
}

bool load_verbs_private(VerbsPrivate& out, std::string& reason) {
  void* library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    reason = "libibverbs.so.1 is not loaded in this process; this file is a plug-in of it";
    return false;
  }
  // The handle is not closed: the library must stay as long as we are here.
  out.abi = verbs::find_private_abi([&](int abi) {
    return find(library, register_name(abi).c_str(), version_name(abi).c_str(),
                out.register_driver);
  });
  if (!verbs::is_known_private_abi(out.abi)) {
    reason = name_of(library) + " has " +
             (out.abi == 0 ? "no private ABI" : "private ABI " + std::to_string(out.abi)) + "; " +
             known_abis();
    return false;
  }
  const std::string version = version_name(out.abi);
  if (!find(library, "_verbs_init_and_alloc_context", version.c_str(),
            out.init_and_alloc_context) ||
      !find(library, "verbs_uninit_context", version.c_str(), out.uninit_context) ||
      !find(library, "verbs_set_ops", version.c_str(), out.set_ops) ||
      !find(library, "ibv_qp_to_qp_ex", nullptr, out.qp_to_qp_ex)) {
    reason = name_of(library) + " lacks functions of its private ABI " + std::to_string(out.abi);
    return false;
  }
  const auto table = find_ops_table(out.set_ops);
  const auto functions = find_qp_ex_functions(out.qp_to_qp_ex);
  if (!table || !functions) {
    reason = name_of(library) + " has private ABI " + std::to_string(out.abi) + " but other " +
             (table ? "queue pairs" : "operations") +
             " than the versions of rdma-core that this softib knows (36 to 65)";
    return false;
  }
  out.ops_table = *table;
  out.qp_ex_functions = *functions;
  return true;
}

}  // namespace ib::host_abi
