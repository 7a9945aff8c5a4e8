// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/hca.h"

#include "base/address.h"
#include "hca/layout/gid_lookup.h"
#include "verbs/address_check.h"

#include <fmt/format.h>

namespace ib::user {

using control::Code;

namespace {

// The ports of an HCA and of its fabric, as device memory has them.
class Ports : public verbs::AddressBook {
 public:
  Ports(const hca::Arena& arena, std::uint32_t first, std::uint32_t count)
      : arena_(arena), first_(first), count_(count) {}

  std::uint32_t ports() const override { return count_; }
  verbs::LinkLayer link_layer(std::uint32_t port) const override {
    const hca::PortEntry* entry = arena_.port(first_ + port - 1);
    return entry != nullptr ? entry->link_layer.load(std::memory_order_relaxed)
                            : verbs::LinkLayer::Unspecified;
  }
  std::uint32_t segment(std::uint32_t port) const override {
    const hca::PortEntry* entry = arena_.port(first_ + port - 1);
    return entry != nullptr ? entry->segment.load(std::memory_order_relaxed) : 0;
  }
  verbs::Gid gid(std::uint32_t port, std::uint32_t index) const override {
    const hca::PortEntry* entry = arena_.port(first_ + port - 1);
    return entry != nullptr && index < entry->gids.size() ? verbs::Gid(entry->gids[index])
                                                          : verbs::Gid{};
  }
  Owner owner_of(const verbs::Gid& gid) const override {
    const hca::PortEntry* entry = arena_.port(hca::port_with_gid(arena_, gid));
    if (entry == nullptr) return {};
    return {entry->link_layer.load(std::memory_order_relaxed), entry->lid,
            entry->segment.load(std::memory_order_relaxed)};
  }

 private:
  const hca::Arena& arena_;
  std::uint32_t first_;
  std::uint32_t count_;
};

}  // namespace

Result<std::unique_ptr<Hca>> Hca::open(Process& process, std::uint64_t node_guid) {
  control::OpenIn in;
  const std::string path = fmt::format("\\Device\\ibal\\{:016x}", node_guid);
  path.copy(in.path.data(), in.path.size() - 1);
  control::OpenOut info;
  const auto file = process.connection().call_for(Code::Open, 0, in, info);
  if (!file) return file.error();
  std::unique_ptr<Hca> hca(new Hca(process, static_cast<std::uint32_t>(*file), info));
  const auto asked = process.connection().call_bytes(
      Code::QueryCa, hca->file_, {}, std::as_writable_bytes(std::span(&hca->attributes_, 1)), {});
  if (!asked) return asked.error();
  return hca;
}

Hca::~Hca() {
  const control::CloseIn in{file_, 0};
  (void)process_.connection().call(Code::Close, 0, in);  // softibd being gone closes it too
}

Result<control::PortAttr> Hca::query_port(std::uint32_t port) {
  const control::PortIn in{port, 0};
  control::PortAttr out;
  const auto done = process_.connection().call_for(Code::QueryPort, file_, in, out);
  if (!done) return done.error();
  return out;
}

Status Hca::modify_port(const control::ModifyPortIn& in) {
  return command(Code::ModifyPort, in);
}

Result<control::GidOut> Hca::query_gid(std::uint32_t port, std::uint32_t index) {
  const control::TableIn in{port, index};
  control::GidOut out;
  const auto done = process_.connection().call_for(Code::QueryGid, file_, in, out);
  if (!done) return done.error();
  return out;
}

Result<std::uint16_t> Hca::query_pkey(std::uint32_t port, std::uint32_t index) {
  const control::TableIn in{port, index};
  control::PkeyOut out;
  const auto done = process_.connection().call_for(Code::QueryPkey, file_, in, out);
  if (!done) return done.error();
  return out.pkey;
}

bool Hca::has_pkey(std::uint32_t port, std::uint32_t index) const {
  if (port == 0 || port > attributes_.port_count) return false;
  const hca::PortEntry* entry = process_.arena().port(info_.first_port + port - 1);
  return entry != nullptr && index < entry->pkeys.size() &&
         entry->pkeys[index].load(std::memory_order_acquire) != 0;
}

Result<std::unique_ptr<ProtectionDomain>> Hca::alloc_pd() {
  const auto handle = process_.connection().call_bytes(Code::AllocPd, file_, {}, {}, {});
  if (!handle) return handle.error();
  return std::make_unique<ProtectionDomain>(*this, static_cast<std::uint32_t>(*handle));
}

Status Hca::locate(const control::RegMrIn& in, const control::MrOut& out, std::byte*& address,
                   std::uint64_t& length) const {
  length = in.length;
  address = pointer_to(in.address);
  if ((in.flags & control::region_flag::kImplicitOdp) != 0) {
    address = nullptr;
    length = ~std::uintptr_t{0};
  } else if ((in.flags & control::region_flag::kNull) != 0) {
    address = nullptr;
    length = out.length;
  } else if (in.dm != control::kNoIndex) {
    const auto dm = dms_.find(in.dm);
    if (dm == dms_.end() || !hca::in_range(in.address, in.length, 0, dm->second.size())) {
      return failed(Status::InvalidParameter, "the region is not inside the device memory");
    }
    address = dm->second.data() + in.address;
  }
  return Status::Ok;
}

Result<std::unique_ptr<MemoryRegion>> Hca::register_memory(const control::RegMrIn& in) {
  std::lock_guard guard(process_.connection().control_lock());
  control::MrOut out;
  const auto handle = process_.connection().call_for(Code::RegMr, file_, in, out);
  if (!handle) return handle.error();
  std::byte* address = nullptr;
  std::uint64_t length = 0;
  const auto number = static_cast<std::uint32_t>(*handle);
  const std::uint32_t index = control::index_of(number);
  if (index >= hca::kMaxKeys || hca::key_index(out.lkey) != index) {
    return failed(Status::Malformed, "softibd gave an impossible key");
  }
  if (const Status located = locate(in, out, address, length); located != Status::Ok) {
    (void)command(Code::DeregMr, control::IndexIn{number, 0});
    return located;
  }
  process_.regions().add(index, in, out, address, length);
  return std::make_unique<MemoryRegion>(*this, number, out);
}

Result<std::unique_ptr<MemoryWindow>> Hca::alloc_window(const ProtectionDomain& pd,
                                                        std::uint32_t type) {
  const control::AllocMwIn in{pd.handle(), type};
  control::MrOut out;
  const auto handle = process_.connection().call_for(Code::AllocMw, file_, in, out);
  if (!handle) return handle.error();
  return std::make_unique<MemoryWindow>(*this, static_cast<std::uint32_t>(*handle), type, out.rkey,
                                        pd.index());
}

Result<std::unique_ptr<DeviceMemory>> Hca::alloc_device_memory(std::uint64_t length,
                                                               std::uint32_t log_align) {
  std::lock_guard guard(process_.connection().control_lock());
  const control::AllocDmIn in{length, log_align, 0};
  control::DmOut out;
  const auto handle = process_.connection().call_for(Code::AllocDm, file_, in, out);
  if (!handle) return handle.error();
  const auto number = static_cast<std::uint32_t>(*handle);
  std::byte* bytes = process_.arena().heap(out.offset, out.length);
  if (bytes == nullptr) return failed(Status::Malformed, "softibd gave impossible device memory");
  add_dm(number, {bytes, static_cast<std::size_t>(out.length)});
  return std::make_unique<DeviceMemory>(*this, number, bytes, out.length);
}

// As softibd checks it (drivers/soft_hca/objects/pd.cpp), but from device memory.
std::string Hca::check_address(verbs::AddressVector& av) const {
  return verbs::check_address(Ports(process_.arena(), info_.first_port, attributes_.port_count),
                              av);
}

// softibd refuses it, too, and its trace then has the cause.
Status Hca::refuse_address(ProtectionDomain& pd, const verbs::AddressVector& av, std::string why) {
  control::CreateAhIn in;
  in.pd = pd.handle();
  in.av = av;
  const auto handle = process_.connection().call(Code::CreateAh, file_, in);
  if (handle) {
    const control::IndexIn made{static_cast<std::uint32_t>(*handle), 0};
    (void)command(Code::DestroyAh, made);
  }
  return failed(Status::InvalidParameter, std::move(why));
}

Result<std::unique_ptr<AddressHandle>> Hca::create_ah(ProtectionDomain& pd,
                                                      const verbs::AddressVector& av) {
  verbs::AddressVector resolved = av;
  if (std::string wrong = check_address(resolved); !wrong.empty()) {
    return refuse_address(pd, av, std::move(wrong));
  }
  if (process_.daemon_gone()) return failed(Status::Disconnected, "softibd is gone");
  if (addresses_.fetch_add(1, std::memory_order_relaxed) >= attributes_.max_ah) {
    drop_address();
    return failed(Status::InsufficientResources,
                  fmt::format("this process has {} address handles (max_ah)", attributes_.max_ah));
  }
  return std::make_unique<AddressHandle>(pd, resolved);
}

Result<std::unique_ptr<XrcDomain>> Hca::open_xrcd(const control::OpenXrcdIn& in) {
  const auto handle = process_.connection().call(Code::OpenXrcd, file_, in);
  if (!handle) return handle.error();
  return std::make_unique<XrcDomain>(*this, static_cast<std::uint32_t>(*handle));
}

Result<std::unique_ptr<CompletionQueue>> Hca::create_cq(const control::CreateCqIn& in) {
  std::lock_guard guard(process_.connection().control_lock());
  control::CqOut out;
  const auto handle = process_.connection().call_for(Code::CreateCq, file_, in, out);
  if (!handle) return handle.error();
  const auto number = static_cast<std::uint32_t>(*handle);
  auto cq = CompletionQueue::create(*this, process_, number, out, in.cookie);
  if (!cq) return cq.error();
  process_.objects().add(**cq);
  if (in.channel != control::kNoIndex) process_.poster().late_events().add((*cq)->index());
  return cq;
}

Result<std::unique_ptr<SharedReceiveQueue>> Hca::create_srq(const SrqOptions& options) {
  std::lock_guard guard(process_.connection().control_lock());
  control::CreateSrqIn in;
  in.type = options.type;
  in.pd = options.pd != nullptr ? options.pd->handle() : control::kNoIndex;
  if (options.xrcd != nullptr) in.xrcd = options.xrcd->handle();
  if (options.cq != nullptr) in.cq = options.cq->handle();
  in.max_wr = options.max_wr;
  in.max_sge = options.max_sge;
  in.limit = options.limit;
  in.cookie = options.cookie;
  control::SrqOut out;
  const auto handle = process_.connection().call_for(Code::CreateSrq, file_, in, out);
  if (!handle) return handle.error();
  auto srq = SharedReceiveQueue::create(*this, process_, options,
                                        static_cast<std::uint32_t>(*handle), out);
  if (!srq) return srq.error();
  process_.objects().add(**srq);
  return srq;
}

Result<std::unique_ptr<QueuePair>> Hca::create_qp(const QpOptions& options) {
  std::lock_guard guard(process_.connection().control_lock());
  control::CreateQpIn in;
  in.type = options.type;
  in.pd = options.pd != nullptr ? options.pd->handle() : control::kNoIndex;
  if (options.send_cq != nullptr) in.send_cq = options.send_cq->handle();
  if (options.recv_cq != nullptr) in.recv_cq = options.recv_cq->handle();
  if (options.srq != nullptr) in.srq = options.srq->handle();
  if (options.xrcd != nullptr) in.xrcd = options.xrcd->handle();
  in.caps = options.caps;
  in.flags = options.flags;
  in.cookie = options.cookie;
  control::QpOut out;
  const auto handle = process_.connection().call_for(Code::CreateQp, file_, in, out);
  if (!handle) return handle.error();
  auto qp =
      QueuePair::create(*this, process_, options, static_cast<std::uint32_t>(*handle), in, out);
  if (!qp) return qp.error();
  process_.objects().add((*qp)->queues(), (*qp)->index());
  return qp;
}

Result<std::unique_ptr<QueuePair>> Hca::open_qp(const XrcDomain& xrcd, std::uint32_t qpn,
                                                std::uint64_t cookie) {
  std::lock_guard guard(process_.connection().control_lock());
  const control::OpenQpIn named{xrcd.handle(), qpn, cookie};
  control::QpOut out;
  const auto handle = process_.connection().call_for(Code::OpenQp, file_, named, out);
  if (!handle) return handle.error();
  QpOptions options;
  options.type = verbs::QpType::XrcRecv;
  options.xrcd = &xrcd;
  options.cookie = cookie;
  control::CreateQpIn in;
  in.type = options.type;
  auto qp =
      QueuePair::create(*this, process_, options, static_cast<std::uint32_t>(*handle), in, out);
  if (!qp) return qp.error();
  process_.objects().add((*qp)->queues(), (*qp)->index());
  return qp;
}

}  // namespace ib::user
