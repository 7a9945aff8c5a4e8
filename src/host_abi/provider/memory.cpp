// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory regions: of the application's memory, of device memory, null and imported ones.
#include "base/address.h"
#include "hca/layout/tables.h"
#include "host_abi/provider/ops.h"
#include "linux/client/registered_range.h"

#include <sys/mman.h>
#include <unistd.h>

#include <limits>
#include <span>

namespace ib::host_abi {

namespace {

constexpr std::uint64_t kWholeAddressSpace = std::numeric_limits<std::size_t>::max();

// Registers with the engine, stores the data for import and advise, and makes the ibv_mr.
Mr* make_mr(ibv_pd* ibpd, const control::RegMrIn& in, VerbsMrType type, const char* verb) {
  if (check_whole(verb, pd_of(ibpd)) != 0) return nullptr;
  DeviceFile& file = file_of(ibpd->context);
  auto registered = file.hca->register_memory(in);
  if (!registered) return fail_null(verb, registered.error());
  auto mr = std::make_unique<Mr>();
  mr->engine = *std::move(registered);
  mr->mr.context = ibpd->context;
  mr->mr.pd = ibpd;
  mr->mr.length = in.length;
  mr->mr.handle = mr->engine->handle();
  mr->mr.lkey = mr->engine->lkey();
  mr->mr.rkey = mr->engine->rkey();
  mr->type = type;
  mr->access = static_cast<int>(in.access);
  const std::lock_guard lock(file.mutex);
  file.regions[mr->engine->index()] = {.region = mr->engine,
                                       .pd = in.pd,
                                       .access = in.access,
                                       .address = in.address,
                                       .length = in.length,
                                       .iova = in.iova};
  return seal(mr.release());
}

bool overflows(std::uint64_t start, std::uint64_t length) {
  return length > std::numeric_limits<std::uint64_t>::max() - start;
}

struct Refusal {
  int error = 0;
  std::string reason;
};

// Checks memory of the program as the kernel does when it pins it (ib_umem_get). Pages of on-demand
// regions may come later.
Refusal check_memory(std::uint64_t address, std::uint64_t length, std::uint32_t access) {
  namespace flag = verbs::access;
  if ((access & flag::kOnDemand) != 0) return {};
  constexpr std::uint64_t kPage = 4096;
  if (length == 0 && address % kPage == 0) return {EINVAL, "the range has no page"};
  constexpr std::uint32_t kWrites =
      flag::kLocalWrite | flag::kRemoteWrite | flag::kRemoteAtomic | flag::kMwBind;
  std::string reason = os::why_not_registered(address, length, (access & kWrites) != 0);
  if (reason.empty()) return {};
  return {EFAULT, std::move(reason)};
}

// The on-demand region that `sge` is a part of.
Refusal find_advised(ibv_pd* ibpd, const ibv_sge& sge, bool write, RegionRecord& region) {
  DeviceFile& file = file_of(ibpd->context);
  {
    const std::lock_guard lock(file.mutex);
    const auto found = file.regions.find(hca::key_index(sge.lkey));
    if (found != file.regions.end()) region = found->second;
  }
  const auto engine = region.region.lock();
  if (engine == nullptr || engine->lkey() != sge.lkey ||
      region.pd != pd_of(ibpd).engine->handle()) {
    return {EINVAL, "a key names no region of this PD"};
  }
  if ((region.access & verbs::access::kOnDemand) == 0) return {EINVAL, "a region is not on-demand"};
  if (write && (region.access & verbs::access::kLocalWrite) == 0) {
    return {EPERM, "write prefetch of a region without local write"};
  }
  const std::uint64_t into = sge.addr - region.iova;
  if (sge.addr < region.iova || into > region.length || sge.length > region.length - into) {
    return {EFAULT, "a range is not inside its region"};
  }
  return {};
}

void prefetch(const RegionRecord& region, const ibv_sge& sge, bool write) {
  const std::uint64_t start = region.address + (sge.addr - region.iova);
  const std::uint64_t first = start & ~(static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) - 1);
  void* const place = pointer_to<void>(first);
  // Only advice: pages that cannot be populated are faulted in on use, or fail then.
  static_cast<void>(::madvise(place, start + sge.length - first,
                              write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ));
}

// Returns an error number.
int change(RegionRecord& record, int flags, ibv_pd* ibpd, void* address, std::size_t length,
           int access) {
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) {
    if (ibpd == nullptr) return fail("ibv_rereg_mr", EINVAL, "the new PD is missing");
    if (const int error = check_whole("ibv_rereg_mr", pd_of(ibpd))) return error;
    record.pd = pd_of(ibpd).engine->handle();
  }
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
    record.access = static_cast<std::uint32_t>(access);
  }
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    record.address = address_of(address);
    record.length = length;
    record.iova = (record.access & verbs::access::kZeroBased) != 0 ? 0 : record.address;
    if (overflows(record.address, length)) {
      return fail("ibv_rereg_mr", EINVAL, "the range wraps around the address space");
    }
  }
  constexpr int kMemory = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;
  if ((flags & kMemory) != 0) {
    const Refusal no = check_memory(record.address, record.length, record.access);
    if (no.error != 0) return fail("ibv_rereg_mr", no.error, no.reason.c_str());
  }
  return 0;
}

}  // namespace

ibv_mr* reg_mr(ibv_pd* ibpd, void* address, std::size_t length, std::uint64_t iova, int access) {
  return guarded("ibv_reg_mr", static_cast<ibv_mr*>(nullptr), [&]() -> ibv_mr* {
    control::RegMrIn in;
    in.pd = pd_of(ibpd).engine->handle();
    in.access = static_cast<std::uint32_t>(access);
    in.address = address_of(address);
    in.length = length;
    in.iova = (in.access & verbs::access::kZeroBased) != 0 ? 0 : iova;
    const bool on_demand = (in.access & verbs::access::kOnDemand) != 0;
    if (on_demand && address == nullptr && length == kWholeAddressSpace) {
      in.flags = control::region_flag::kImplicitOdp;
    } else if (overflows(in.address, length) || overflows(in.iova, length)) {
      return fail_null("ibv_reg_mr", EINVAL, "the range wraps around the address space");
    } else if (const Refusal no = check_memory(in.address, length, in.access); no.error != 0) {
      return fail_null("ibv_reg_mr", no.error, no.reason.c_str());
    }
    Mr* mr = make_mr(ibpd, in, VerbsMrType::Region, "ibv_reg_mr");
    return mr == nullptr ? nullptr : &mr->mr;
  });
}

// Registrations of all kinds in one call, of rdma-core 59 and later. The library's own buffers
// (ibv_alloc_buf) are memory of the program.
ibv_mr* reg_mr_ex(ibv_pd* pd, VerbsMrInitAttr* attr) {
  constexpr std::uint64_t kKnown = mr_init::kAddr | mr_init::kIova | mr_init::kBuf;
  if ((attr->comp_mask & ~kKnown) != 0) {
    return fail_null("ibv_reg_mr_ex", EOPNOTSUPP, "no dma-buf and no DMA handle can be registered");
  }
  if ((attr->comp_mask & mr_init::kAddr) == 0) {
    return fail_null("ibv_reg_mr_ex", EINVAL, "the address is missing");
  }
  const bool has_iova = (attr->comp_mask & mr_init::kIova) != 0;
  const std::uint64_t iova = has_iova ? attr->iova : address_of(attr->addr);
  return reg_mr(pd, attr->addr, attr->length, iova, attr->access);
}

ibv_mr* reg_dm_mr(ibv_pd* ibpd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access) {
  if ((access & IBV_ACCESS_ZERO_BASED) == 0) {
    return fail_null("ibv_reg_dm_mr", EINVAL, "device memory needs IBV_ACCESS_ZERO_BASED");
  }
  return guarded("ibv_reg_dm_mr", static_cast<ibv_mr*>(nullptr), [&]() -> ibv_mr* {
    const Dm& memory = dm_of(dm);
    if (offset > memory.length || length > memory.length - offset) {
      return fail_null("ibv_reg_dm_mr", EINVAL, "the range is not inside the device memory");
    }
    control::RegMrIn in;
    in.pd = pd_of(ibpd).engine->handle();
    in.access = access;
    in.address = offset;
    in.length = length;
    in.dm = memory.engine->handle();
    // Type: libibverbs must not apply fork protection or rereg to it.
    Mr* mr = make_mr(ibpd, in, VerbsMrType::DmaBuf, "ibv_reg_dm_mr");
    return mr == nullptr ? nullptr : &mr->mr;
  });
}

ibv_mr* alloc_null_mr(ibv_pd* ibpd) {
  return guarded("ibv_alloc_null_mr", static_cast<ibv_mr*>(nullptr), [&]() -> ibv_mr* {
    control::RegMrIn in;
    in.pd = pd_of(ibpd).engine->handle();
    in.access = verbs::access::kLocalWrite;
    in.length = kWholeAddressSpace;
    in.flags = control::region_flag::kNull;
    Mr* mr = make_mr(ibpd, in, VerbsMrType::Null, "ibv_alloc_null_mr");
    return mr == nullptr ? nullptr : &mr->mr;
  });
}

int rereg_mr(VerbsMr* vmr, int flags, ibv_pd* ibpd, void* address, std::size_t length, int access) {
  return guarded_int("ibv_rereg_mr", [&] {
    Mr& mr = mr_of(vmr);
    if (const int error = check_whole("ibv_rereg_mr", mr)) return error;
    DeviceFile& file = file_of(mr.mr.context);
    control::RegMrIn to;
    RegionRecord record;
    {
      const std::lock_guard lock(file.mutex);
      record = file.regions[mr.engine->index()];
    }
    if (const int error = change(record, flags, ibpd, address, length, access)) return error;
    to.pd = record.pd;
    to.access = record.access;
    to.address = record.address;
    to.length = record.length;
    to.iova = record.iova;
    const Status status = mr.engine->reregister(static_cast<std::uint32_t>(flags), to);
    if (status != Status::Ok) return fail("ibv_rereg_mr", status);
    mr.mr.lkey = mr.engine->lkey();
    mr.mr.rkey = mr.engine->rkey();
    mr.access = static_cast<int>(record.access);
    const std::lock_guard lock(file.mutex);
    file.regions[mr.engine->index()] = record;
    return 0;
  });
}

int dereg_mr(VerbsMr* vmr) {
  return guarded_int("ibv_dereg_mr", [&] {
    Mr& mr = mr_of(vmr);
    if (const int error = check_whole("ibv_dereg_mr", mr)) return error;
    const Status status = destroy_engine(mr);
    if (status != Status::Ok) return fail("ibv_dereg_mr", status);
    if (!inherited(mr)) {
      DeviceFile& file = file_of(mr.mr.context);
      const std::lock_guard lock(file.mutex);
      // The index may have a new owner.
      const auto found = file.regions.find(mr.engine->index());
      if (found != file.regions.end() && found->second.region.lock() == mr.engine) {
        file.regions.erase(found);
      }
    }
    delete &mr;
    return 0;
  });
}

ibv_mr* import_mr(ibv_pd* ibpd, std::uint32_t handle) {
  return guarded("ibv_import_mr", static_cast<ibv_mr*>(nullptr), [&]() -> ibv_mr* {
    DeviceFile& file = file_of(ibpd->context);
    RegionRecord record;
    {
      const std::lock_guard lock(file.mutex);
      const auto found = file.regions.find(control::index_of(handle));
      if (found != file.regions.end()) record = found->second;
    }
    const auto engine = record.region.lock();
    if (engine == nullptr || engine->handle() != handle)
      return fail_null("ibv_import_mr", ENOENT, "no MR has this handle");
    auto mr = std::make_unique<Mr>();
    mr->engine = engine;
    mr->mr.context = ibpd->context;
    mr->mr.pd = ibpd;
    mr->mr.addr = pointer_to<void>(record.iova);
    mr->mr.length = record.length;
    mr->mr.handle = handle;
    mr->mr.lkey = engine->lkey();
    mr->mr.rkey = engine->rkey();
    mr->type = VerbsMrType::Imported;
    mr->access = static_cast<int>(record.access);
    return &seal(mr.release())->mr;
  });
}

void unimport_mr(ibv_mr* mr) {
  delete &mr_of(mr);
}

int advise_mr(ibv_pd* ibpd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list,
              std::uint32_t count) {
  if ((flags & ~static_cast<std::uint32_t>(IBV_ADVISE_MR_FLAG_FLUSH)) != 0 || count == 0) {
    return fail("ibv_advise_mr", EINVAL, "unknown flags or no ranges");
  }
  if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
      advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
    return fail("ibv_advise_mr", EOPNOTSUPP, "unknown advice");
  }
  return guarded_int("ibv_advise_mr", [&] {
    const bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    for (const ibv_sge& sge : std::span(list, count)) {
      RegionRecord region;
      const Refusal refusal = find_advised(ibpd, sge, write, region);
      if (refusal.error != 0) return fail("ibv_advise_mr", refusal.error, refusal.reason.c_str());
      if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) prefetch(region, sge, write);
    }
    return 0;
  });
}

}  // namespace ib::host_abi
