// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Protection domains, parent domains, thread domains, XRC domains.
#include "host_abi/provider/ops.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace ib::host_abi {

namespace {

constexpr std::uint32_t kXrcdCreate = 1;
constexpr std::uint32_t kXrcdExclusive = 2;

ibv_pd* make_pd(ibv_context* context, std::shared_ptr<user::ProtectionDomain> engine) {
  auto pd = std::make_unique<Pd>();
  pd->context = context;
  pd->handle = engine->handle();
  pd->engine = std::move(engine);
  return seal(pd.release());
}

}  // namespace

ibv_pd* alloc_pd(ibv_context* context) {
  return guarded("ibv_alloc_pd", static_cast<ibv_pd*>(nullptr), [&]() -> ibv_pd* {
    DeviceFile& file = file_of(context);
    auto allocated = file.hca->alloc_pd();
    if (!allocated) return fail_null("ibv_alloc_pd", allocated.error());
    std::shared_ptr<user::ProtectionDomain> engine = *std::move(allocated);
    {
      const std::lock_guard lock(file.mutex);
      file.domains[engine->handle()] = engine;
    }
    return make_pd(context, std::move(engine));
  });
}

int dealloc_pd(ibv_pd* ibpd) {
  return guarded_int("ibv_dealloc_pd", [&] {
    Pd& pd = pd_of(ibpd);
    if (const int error = check_whole("ibv_dealloc_pd", pd)) return error;
    if (pd.users != 0) {
      return fail("ibv_dealloc_pd", EBUSY,
                  pd.parent_of != nullptr ? "queues use it" : "parent domains use it");
    }
    if (pd.parent_of != nullptr) {
      --pd.parent_of->users;
      if (pd.td != nullptr) --pd.td->users;
      delete &pd;
      return 0;
    }
    const Status status = destroy_engine(pd);
    if (status != Status::Ok) return fail("ibv_dealloc_pd", status);
    if (!inherited(pd)) {
      DeviceFile& file = file_of(pd.context);
      const std::lock_guard lock(file.mutex);
      file.domains.erase(pd.handle);
    }
    delete &pd;
    return 0;
  });
}

ibv_pd* import_pd(ibv_context* context, std::uint32_t handle) {
  return guarded("ibv_import_pd", static_cast<ibv_pd*>(nullptr), [&]() -> ibv_pd* {
    DeviceFile& file = file_of(context);
    std::shared_ptr<user::ProtectionDomain> engine;
    {
      const std::lock_guard lock(file.mutex);
      const auto found = file.domains.find(handle);
      if (found != file.domains.end()) engine = found->second.lock();
    }
    if (engine == nullptr) return fail_null("ibv_import_pd", ENOENT, "no PD has this handle");
    return make_pd(context, std::move(engine));
  });
}

void unimport_pd(ibv_pd* pd) {
  delete &pd_of(pd);
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  if (attr->comp_mask != 0) return fail_null("ibv_alloc_td", EINVAL, "comp_mask must be 0");
  auto* td = new (std::nothrow) Td;
  if (td == nullptr) return fail_null("ibv_alloc_td", ENOMEM, "out of memory");
  td->context = context;
  return td;
}

int dealloc_td(ibv_td* td) {
  if (td_of(td).users != 0) return fail("ibv_dealloc_td", EBUSY, "parent domains use it");
  delete &td_of(td);
  return 0;
}

// The allocation callbacks are accepted and not called: they are for memory that the device reads
// and the application wants to place, and ours is the shared memory of the fabric. The leave to use
// memory that a confidential guest shares with its host (rdma-core 65) is not needed.
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  constexpr std::uint32_t kAllowUnprotected = 1u << 2;
  constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                   IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | kAllowUnprotected;
  if (attr->pd == nullptr) {
    return fail_null("ibv_alloc_parent_domain", EINVAL, "a protection domain must be given");
  }
  if ((attr->comp_mask & ~kKnown) != 0) {
    return fail_null("ibv_alloc_parent_domain", EINVAL, "unknown bits in comp_mask");
  }
  return guarded("ibv_alloc_parent_domain", static_cast<ibv_pd*>(nullptr), [&]() -> ibv_pd* {
    Pd& inner = pd_of(attr->pd);
    if (check_whole("ibv_alloc_parent_domain", inner) != 0) return nullptr;
    Pd& base = inner.parent_of != nullptr ? *inner.parent_of : inner;
    auto parent = std::make_unique<Pd>();
    parent->context = context;
    parent->handle = base.handle;
    parent->engine = base.engine;
    parent->parent_of = &base;
    ++base.users;
    if (attr->td != nullptr) {
      parent->td = &td_of(attr->td);
      ++parent->td->users;
    }
    return seal(parent.release());
  });
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  constexpr std::uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if (attr->comp_mask != kNeeded) {
    return fail_null("ibv_open_xrcd", EINVAL, "comp_mask must have FD and OFLAGS, nothing else");
  }
  control::OpenXrcdIn in;
  if ((attr->oflags & O_CREAT) != 0) in.flags |= kXrcdCreate;
  if ((attr->oflags & O_EXCL) != 0) in.flags |= kXrcdExclusive;
  if (attr->fd >= 0) {
    // All openers of the same file share the domain [man ibv_open_xrcd].
    struct stat status {};
    if (::fstat(attr->fd, &status) != 0) {
      return fail_null("ibv_open_xrcd", errno, "the file descriptor is not usable");
    }
    in.inode = status.st_ino;
    in.device = status.st_dev;
  } else if ((attr->oflags & O_CREAT) == 0) {
    return fail_null("ibv_open_xrcd", EINVAL,
                     "without a file the domain must be created (O_CREAT)");
  }
  return guarded("ibv_open_xrcd", static_cast<ibv_xrcd*>(nullptr), [&]() -> ibv_xrcd* {
    auto engine = hca_of(context).open_xrcd(in);
    if (engine.error() == Status::NotFound) {
      return fail_null("ibv_open_xrcd", EAGAIN, "the file has no XRC domain yet, and no O_CREAT");
    }
    if (!engine) return fail_null("ibv_open_xrcd", engine.error());
    auto xrcd = std::make_unique<Xrcd>();
    xrcd->context = context;
    xrcd->engine = *std::move(engine);
    return seal(xrcd.release());
  });
}

int close_xrcd(ibv_xrcd* ibxrcd) {
  return guarded_int("ibv_close_xrcd", [&] {
    Xrcd& xrcd = xrcd_of(ibxrcd);
    if (const int error = check_whole("ibv_close_xrcd", xrcd)) return error;
    const Status status = destroy_engine(xrcd);
    if (status != Status::Ok) return fail("ibv_close_xrcd", status);
    drop(&xrcd);
    return 0;
  });
}

}  // namespace ib::host_abi
