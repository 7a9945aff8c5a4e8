// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory on the device. It is mapped, so copying is copying.
#include "host_abi/provider/ops.h"

#include <cstring>

namespace ib::host_abi {

namespace {

// Adapters reach their memory in words of 4 bytes, and programs are tested against that.
bool inside(const Dm& dm, std::uint64_t offset, std::size_t length) {
  return offset % 4 == 0 && length % 4 == 0 && offset <= dm.length && length <= dm.length - offset;
}

int copy_to(ibv_dm* ibdm, std::uint64_t offset, const void* from, std::size_t length) {
  const Dm& dm = dm_of(ibdm);
  if (!inside(dm, offset, length)) {
    return fail("ibv_memcpy_to_dm", EINVAL,
                "the range is not inside the device memory, or not in words of 4 bytes");
  }
  if (length != 0) std::memcpy(dm.engine->bytes().data() + offset, from, length);
  return 0;
}

int copy_from(void* to, ibv_dm* ibdm, std::uint64_t offset, std::size_t length) {
  const Dm& dm = dm_of(ibdm);
  if (!inside(dm, offset, length)) {
    return fail("ibv_memcpy_from_dm", EINVAL,
                "the range is not inside the device memory, or not in words of 4 bytes");
  }
  if (length != 0) std::memcpy(to, dm.engine->bytes().data() + offset, length);
  return 0;
}

ibv_dm* make_dm(ibv_context* context, std::shared_ptr<user::DeviceMemory> engine,
                std::uint64_t length) {
  auto dm = std::make_unique<Dm>();
  dm->context = context;
  dm->memcpy_to_dm = copy_to;
  dm->memcpy_from_dm = copy_from;
  dm->comp_mask = 0;
  dm->handle = engine->handle();
  dm->engine = std::move(engine);
  dm->length = length;
  return seal(dm.release());
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  if (attr->comp_mask != 0) return fail_null("ibv_alloc_dm", EINVAL, "comp_mask must be 0");
  return guarded("ibv_alloc_dm", static_cast<ibv_dm*>(nullptr), [&]() -> ibv_dm* {
    DeviceFile& file = file_of(context);
    auto allocated = file.hca->alloc_device_memory(attr->length, attr->log_align_req);
    if (!allocated) return fail_null("ibv_alloc_dm", allocated.error());
    std::shared_ptr<user::DeviceMemory> engine = *std::move(allocated);
    {
      const std::lock_guard lock(file.mutex);
      file.device_memories[engine->handle()] = {engine, attr->length};
    }
    return make_dm(context, std::move(engine), attr->length);
  });
}

int free_dm(ibv_dm* ibdm) {
  return guarded_int("ibv_free_dm", [&] {
    Dm& dm = dm_of(ibdm);
    if (const int error = check_whole("ibv_free_dm", dm)) return error;
    const Status status = destroy_engine(dm);
    if (status != Status::Ok) return fail("ibv_free_dm", status);
    if (!inherited(dm)) {
      DeviceFile& file = file_of(dm.context);
      const std::lock_guard lock(file.mutex);
      file.device_memories.erase(dm.handle);
    }
    delete &dm;
    return 0;
  });
}

ibv_dm* import_dm(ibv_context* context, std::uint32_t handle) {
  return guarded("ibv_import_dm", static_cast<ibv_dm*>(nullptr), [&]() -> ibv_dm* {
    DeviceFile& file = file_of(context);
    DeviceMemoryRecord record;
    {
      const std::lock_guard lock(file.mutex);
      const auto found = file.device_memories.find(handle);
      if (found != file.device_memories.end()) record = found->second;
    }
    auto engine = record.memory.lock();
    if (engine == nullptr) return fail_null("ibv_import_dm", ENOENT, "no DM has this handle");
    return make_dm(context, std::move(engine), record.length);
  });
}

void unimport_dm(ibv_dm* dm) {
  delete &dm_of(dm);
}

}  // namespace ib::host_abi
