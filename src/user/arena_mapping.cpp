// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/arena_mapping.h"

#include "base/buffers.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

namespace ib::user {

namespace {

constexpr Duration kStoresLeave = std::chrono::milliseconds(10);

class MappedArena final : public hca::ArenaFile {
 public:
  explicit MappedArena(platform::MappedFile& file) : file_(file) {}

 protected:
  std::uint64_t query_size() override { return std::min(file_.file_size(), file_.size()); }

 private:
  platform::MappedFile& file_;
};

}  // namespace

Status ArenaMapping::attach(platform::ClientHost& host, ControlConnection& connection,
                            const ProcessOptions& options, control::AttachOut& out,
                            std::string& reason) {
  control::AttachIn in;
  put_text(in.node, options.node);
  put_text(in.program, options.program);
  if (options.ca_events) in.flags |= control::attach_flag::kCaEvents;
  platform::ControlReply reply = connection.exchange(control::Code::Attach, 0, bytes_of(in),
                                                     std::as_writable_bytes(std::span(&out, 1)));
  if (reply.status != Status::Ok) {
    reason = std::move(reply.reason);
    return reply.status;
  }
  if (!reply.handles[0].valid() || reply.out_size < sizeof out ||
      out.arena_size != hca::kArenaSpace || out.slot >= hca::kMaxSlots) {
    reason = "softibd answered Attach in a way this library does not understand (versions differ?)";
    return Status::Malformed;
  }
  IB_CHECK(map(host, reply.handles[0], reason));
  if (!host.barriers().join()) {
    // A poster that was past its check before this store sees it at the latest when its own stores
    // leave its core, which takes nanoseconds.
    const hca::Arena whole = arena();
    hca::ArenaHeader& header = whole.header();
    header.fenced_entries.store(1, std::memory_order_seq_cst);
    host.wait(header.fenced_entries, 1, kStoresLeave);
  }
  return Status::Ok;
}

Status ArenaMapping::map(platform::ClientHost& host, const platform::NativeHandle& file,
                         std::string& reason) {
  auto mapping = host.map(file, hca::kArenaSpace, reason);
  if (!mapping) return mapping.error();
  mapping_ = *std::move(mapping);
  file_ = std::make_unique<MappedArena>(*mapping_);
  if (file_->size_at_least(hca::place::kHeap) < hca::place::kHeap) {
    reason = "device memory is shorter than its tables";
    return Status::Malformed;
  }
  const hca::Arena whole = arena();
  const hca::ArenaHeader& header = whole.header();
  if (header.magic != hca::kArenaMagic || header.version != hca::kLayoutVersion) {
    reason = "device memory has another layout: softibd and this library are of different versions";
    return Status::Malformed;
  }
  return Status::Ok;
}

}  // namespace ib::user
