// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "engine.h"

#include "base/address.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace ib::conformance {

namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point deadline_in(std::uint32_t milliseconds) {
  return Clock::now() + std::chrono::milliseconds(milliseconds);
}

// The HCAs of engines that vanished. Never destroyed, as in a process that dies.
std::vector<user::Hca*>& vanished_hcas() {
  static auto* hcas = new std::vector<user::Hca*>;
  return *hcas;
}

std::byte* at(std::uint64_t address) {
  return pointer_to(address);
}

}  // namespace

std::unique_ptr<Engine> Engine::attach(const HostSettings& settings, std::string& reason) {
  std::unique_ptr<Engine> engine(new Engine(settings));
  auto process =
      user::Process::attach(engine->host_, {settings.node, settings.program}, *engine, reason);
  if (!process) return nullptr;
  engine->process_ = *std::move(process);
  const control::AttachOut& info = engine->process_->info();
  if (info.ca_count == 0) {
    reason = "the node has no HCA";
    return nullptr;
  }
  auto hca = engine->process_->open_hca(info.cas[0].node_guid);
  if (!hca) {
    reason = user::last_reason();
    return nullptr;
  }
  engine->hca_ = *std::move(hca);
  return engine;
}

Engine::~Engine() {
  if (process_) {
    (void)destroy_all();
    hca_.reset();
    process_.reset();
  }
  for (const auto& [address, length] : mappings_) (void)::munmap(at(address), length);
}

void Engine::vanish() {
  process_.reset();                           // ends its threads first, which use the objects
  vanished_hcas().push_back(hca_.release());  // its destructor would use the process
  qps_.clear();
  srqs_.clear();
}

void Engine::on_event(const control::EventOut& event) {
  const std::lock_guard guard(event_lock_);
  events_.push_back(event);
  event_came_.notify_all();
}

Reply Engine::answer(Status status) {
  Reply reply;
  reply.status = status;
  if (status != Status::Ok) reply.reason = user::last_reason();
  return reply;
}

template <class T>
Reply Engine::created(Table<T>& table, Result<std::unique_ptr<T>> made) {
  if (!made) return answer(made.error());
  Reply reply;
  reply.out.put(add(table, *std::move(made)));
  return reply;
}

template <class T>
Reply Engine::destroy(Table<T>& table, std::uint32_t handle) {
  T* object = find(table, handle);
  if (object == nullptr) return answer(Status::NotFound);
  const Status status = object->destroy();
  if (status == Status::Ok) table.erase(handle);
  return answer(status);
}

Reply Engine::run(Command command, Message in) {
  switch (command) {
    case Command::Info: return info();
    case Command::AllocPd: return created(pds_, hca_->alloc_pd());
    case Command::AllocMemory:
    case Command::FreeMemory:
    case Command::Poke:
    case Command::Peek:
    case Command::Fill:
    case Command::CountMismatches: return memory(command, in);
    case Command::RegisterMemory: return register_memory(in);
    case Command::CreateChannel:
    case Command::WaitChannel:
    case Command::CreateCq:
    case Command::ResizeCq:
    case Command::ArmCq: return completion(command, in);
    case Command::PollCq: return poll(in);
    case Command::CreateSrq:
    case Command::ModifySrq:
    case Command::QuerySrq:
    case Command::PostSrqReceive: return shared_receive(command, in);
    case Command::CreateQp: return create_qp(in);
    case Command::OpenQp:
    case Command::ModifyQp:
    case Command::QueryQp:
    case Command::QpState:
    case Command::PostReceive:
    case Command::MaySendLarge:
    case Command::AttachGroup:
    case Command::DetachGroup: return queue_pair(command, in);
    case Command::PostSend: return post_send(in);
    case Command::Reregister:
    case Command::AllocWindow:
    case Command::AllocDeviceMemory:
    case Command::OpenXrcd:
    case Command::CreateAddress:
    case Command::QueryPort:
    case Command::QueryGid: return other(command, in);
    case Command::NextEvent: return next_event(in.take<std::uint32_t>());
    case Command::Destroy: {
      const auto kind = in.take<Kind>();
      return destroy(kind, in.take<std::uint32_t>());
    }
    case Command::DestroyAll: return destroy_all();
  }
  return answer(Status::NotSupported);
}

Reply Engine::info() {
  SideInfo out;
  out.pid = host_.pid();
  out.slot = process_->info().slot;
  out.file = hca_->file();
  out.ports = hca_->attributes().port_count;
  out.node_guid = hca_->attributes().node_guid;
  const auto port = hca_->query_port(1);
  if (!port) return answer(Status::IoError);
  const bool is_ethernet = port->link_layer == verbs::LinkLayer::Ethernet;
  const auto gid = hca_->query_gid(1, is_ethernet ? kIpGid : 0);
  if (!gid) return answer(Status::IoError);
  out.port = *port;
  out.gid = gid->gid;
  Reply reply;
  reply.out.put(out);
  return reply;
}

Reply Engine::memory(Command command, Message& in) {
  const auto address = in.take<std::uint64_t>();
  Reply reply;
  if (command == Command::AllocMemory) {
    const auto length = static_cast<std::size_t>(address);
    void* made =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return answer(Status::InsufficientResources);
    mappings_.emplace(address_of(made), length);
    reply.out.put(address_of(made));
    return reply;
  }
  if (command == Command::FreeMemory) {
    const auto found = mappings_.find(address);
    if (found == mappings_.end()) return answer(Status::NotFound);
    (void)::munmap(at(address), found->second);
    mappings_.erase(found);
    return reply;
  }
  const auto length = in.take<std::uint64_t>();
  std::byte* bytes = at(address);
  if (command == Command::Poke) {
    in.take_bytes(bytes, length);
  } else if (command == Command::Peek) {
    reply.out.put_bytes(bytes, length);
  } else {
    const auto seed = in.take<std::uint64_t>();
    const auto first = in.take<std::uint64_t>();  // of the pattern
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < length; ++i) {
      const auto wanted = std::byte{pattern(seed, first + i)};
      if (command == Command::Fill) bytes[i] = wanted;
      if (bytes[i] != wanted) ++wrong;
    }
    reply.out.put(wrong);
  }
  return reply;
}

control::RegMrIn Engine::to_registration(const RegionSpec& spec) const {
  control::RegMrIn in;
  const auto* pd = find(pds_, spec.pd);
  in.pd = pd != nullptr ? pd->handle() : control::kNoIndex;
  const auto* dm = find(dms_, spec.dm);
  in.dm = dm != nullptr ? dm->handle() : control::kNoIndex;
  in.access = spec.access;
  in.flags = spec.flags;
  in.address = spec.address;
  in.length = spec.length;
  in.iova = spec.iova;
  return in;
}

Reply Engine::register_memory(Message& in) {
  auto made = hca_->register_memory(to_registration(in.take<RegionSpec>()));
  if (!made) return answer(made.error());
  RegionOut out;
  out.lkey = (*made)->lkey();
  out.rkey = (*made)->rkey();
  out.handle = add(regions_, *std::move(made));
  Reply reply;
  reply.out.put(out);
  return reply;
}

Reply Engine::completion(Command command, Message& in) {
  Reply reply;
  if (command == Command::CreateChannel) return created(channels_, process_->create_channel());
  if (command == Command::CreateCq) {
    const auto spec = in.take<CqSpec>();
    const auto* channel = find(channels_, spec.channel);
    control::CreateCqIn create;
    create.cqe = spec.cqe;
    create.channel = channel != nullptr ? channel->handle() : control::kNoIndex;
    create.flags = spec.flags;
    create.cookie = spec.cookie;
    return created(cqs_, hca_->create_cq(create));
  }
  const auto handle = in.take<std::uint32_t>();
  const auto argument = in.take<std::uint32_t>();
  if (command == Command::WaitChannel) {
    auto* channel = find(channels_, handle);
    if (channel == nullptr) return answer(Status::NotFound);
    pollfd waiting{channel->fd(), POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(argument)) <= 0) return answer(Status::Timeout);
    std::uint64_t index = 0;
    if (::read(channel->fd(), &index, sizeof index) != sizeof index) return answer(Status::IoError);
    (void)process_->poster().late_events().move();
    const auto cookie = process_->objects().cq_cookie(index);
    if (!cookie) return answer(cookie.error());
    reply.out.put(*cookie);
    return reply;
  }
  auto* cq = find(cqs_, handle);
  if (cq == nullptr) return answer(Status::NotFound);
  if (command == Command::ResizeCq) {
    const Status status = cq->resize(argument);
    if (status != Status::Ok) return answer(status);
    reply.out.put(cq->cqe());
    return reply;
  }
  cq->arm(argument != 0);
  return reply;
}

// Returns between `least` and `most` completions; fewer than `least` if the time is over.
Reply Engine::poll(Message& in) {
  auto* cq = find(cqs_, in.take<std::uint32_t>());
  const auto least = in.take<std::uint32_t>();
  const auto most = in.take<std::uint32_t>();
  const auto deadline = deadline_in(in.take<std::uint32_t>());
  if (cq == nullptr) return answer(Status::NotFound);
  std::vector<user::Completion> found;
  for (std::uint32_t round = 0;; ++round) {
    cq->lock();
    user::Completion completion;
    while (found.size() < most && cq->take(completion)) found.push_back(completion);
    cq->unlock();
    if (found.size() >= least || Clock::now() >= deadline) break;
    host_.relax(round);
  }
  Reply reply;
  reply.out.put_all(found);
  return reply;
}

Reply Engine::shared_receive(Command command, Message& in) {
  Reply reply;
  if (command == Command::CreateSrq) {
    const auto spec = in.take<SrqSpec>();
    user::SrqOptions options;
    options.type = spec.type;
    options.pd = find(pds_, spec.pd);
    options.xrcd = find(xrcds_, spec.xrcd);
    options.cq = find(cqs_, spec.cq);
    options.max_wr = spec.max_wr;
    options.max_sge = spec.max_sge;
    options.limit = spec.limit;
    options.cookie = spec.cookie;
    auto made = hca_->create_srq(options);
    if (!made) return answer(made.error());
    reply.out.put(std::uint32_t{(*made)->srqn()});
    reply.out.put(add(srqs_, *std::move(made)));
    return reply;
  }
  auto* srq = find(srqs_, in.take<std::uint32_t>());
  if (srq == nullptr) return answer(Status::NotFound);
  if (command == Command::PostSrqReceive) {
    const auto wr_id = in.take<std::uint64_t>();
    const auto sge = in.take_all<user::Sge>();
    return answer(srq->post_recv(wr_id, sge));
  }
  const auto out =
      command == Command::ModifySrq ? srq->modify(in.take<control::ModifySrqIn>()) : srq->query();
  if (!out) return answer(out.error());
  reply.out.put(*out);
  return reply;
}

Reply Engine::create_qp(Message& in) {
  const auto spec = in.take<QpSpec>();
  user::QpOptions options;
  options.type = spec.type;
  options.pd = find(pds_, spec.pd);
  options.send_cq = find(cqs_, spec.send_cq);
  options.recv_cq = find(cqs_, spec.recv_cq);
  options.srq = find(srqs_, spec.srq);
  options.xrcd = find(xrcds_, spec.xrcd);
  options.caps = spec.caps;
  options.signal_all = spec.signal_all != 0;
  options.flags = spec.flags;
  options.cookie = spec.cookie;
  auto made = hca_->create_qp(options);
  if (!made) return answer(made.error());
  Reply reply;
  reply.out.put(std::uint32_t{(*made)->qpn()});
  reply.out.put(control::QpCaps{(*made)->caps()});
  reply.out.put(add(qps_, *std::move(made)));
  return reply;
}

Reply Engine::queue_pair(Command command, Message& in) {
  Reply reply;
  if (command == Command::OpenQp) {
    const auto* xrcd = find(xrcds_, in.take<std::uint32_t>());
    const auto qpn = in.take<std::uint32_t>();
    if (xrcd == nullptr) return answer(Status::NotFound);
    return created(qps_, hca_->open_qp(*xrcd, qpn, in.take<std::uint64_t>()));
  }
  auto* qp = find(qps_, in.take<std::uint32_t>());
  if (qp == nullptr) return answer(Status::NotFound);
  if (command == Command::ModifyQp) {
    const auto mask = in.take<std::uint32_t>();
    const auto out = qp->modify(mask, in.take<control::QpAttr>());
    return out ? reply : answer(out.error());
  }
  if (command == Command::QueryQp) {
    const auto out = qp->query();
    if (!out) return answer(out.error());
    reply.out.put(*out);
    return reply;
  }
  if (command == Command::QpState) {
    reply.out.put(qp->settled_state());
    return reply;
  }
  if (command == Command::PostReceive) {
    const auto wr_id = in.take<std::uint64_t>();
    const auto sge = in.take_all<user::Sge>();
    return answer(qp->queues().post_recv(wr_id, sge));
  }
  if (command == Command::MaySendLarge) {
    const auto* to = find(addresses_, in.take<std::uint32_t>());
    if (to == nullptr) return answer(Status::NotFound);
    reply.out.put(qp->may_send_large(to->av(), in.take<std::uint32_t>()));
    return reply;
  }
  const auto mgid = in.take<verbs::Gid>();
  const auto mlid = in.take<std::uint16_t>();
  return answer(command == Command::AttachGroup ? qp->attach_mcast(mgid, mlid)
                                                : qp->detach_mcast(mgid, mlid));
}

// Like ibv_post_send: a list of requests under one lock. Replies how many were accepted.
Reply Engine::post_send(Message& in) {
  auto* qp = find(qps_, in.take<std::uint32_t>());
  const auto count = in.take<std::uint32_t>();
  if (qp == nullptr) return answer(Status::NotFound);
  Status status = Status::Ok;
  std::uint32_t accepted = 0;
  qp->queues().send_lock().lock();
  for (; accepted < count; ++accepted) {
    const auto spec = in.take<SendSpec>();
    const auto sge = in.take_all<user::Sge>();
    user::SendWqe wqe;
    wqe.wr_id = spec.wr_id;
    wqe.opcode = spec.opcode;
    user::set_flags(wqe, spec.flags);
    user::set_sges(wqe, sge);
    wqe.imm = spec.imm;
    wqe.rkey = spec.rkey;
    wqe.remote_address = spec.remote_address;
    wqe.compare_add = spec.compare_add;
    wqe.swap = spec.swap;
    if (const auto* ah = find(addresses_, spec.address)) wqe.av = ah->av();
    wqe.remote_qpn = spec.remote_qpn;
    wqe.remote_qkey = spec.remote_qkey;
    wqe.remote_srqn = spec.remote_srqn;
    auto* window = find(windows_, spec.window);
    if (window == nullptr) {
      status = qp->queues().post_send(wqe);
    } else {
      const auto* region = find(regions_, spec.bind_region);
      wqe.window = window->index();
      wqe.bind_region = region != nullptr ? region->index() : hca::kNone;
      wqe.bind_address = spec.bind_address;
      wqe.bind_length = spec.bind_length;
      wqe.bind_access = spec.bind_access;
      wqe.bind_rkey = window->next_rkey(spec.bind_rkey);
      status = qp->queues().post_bind(wqe, *window);
    }
    if (status != Status::Ok) break;
  }
  qp->queues().send_lock().unlock();
  Reply reply = answer(status);
  reply.out.put(accepted);
  return reply;
}

Reply Engine::other(Command command, Message& in) {
  Reply reply;
  if (command == Command::Reregister) {
    auto* region = find(regions_, in.take<std::uint32_t>());
    const auto change = in.take<std::uint32_t>();
    if (region == nullptr) return answer(Status::NotFound);
    const Status status = region->reregister(change, to_registration(in.take<RegionSpec>()));
    if (status != Status::Ok) return answer(status);
    reply.out.put(RegionOut{kNoHandle, region->lkey(), region->rkey(), 0});
    return reply;
  }
  if (command == Command::AllocWindow) {
    const auto* pd = find(pds_, in.take<std::uint32_t>());
    if (pd == nullptr) return answer(Status::NotFound);
    auto made = hca_->alloc_window(*pd, in.take<std::uint32_t>());
    if (!made) return answer(made.error());
    reply.out.put((*made)->rkey());
    reply.out.put(add(windows_, *std::move(made)));
    return reply;
  }
  if (command == Command::AllocDeviceMemory) {
    const auto length = in.take<std::uint64_t>();
    auto made = hca_->alloc_device_memory(length, in.take<std::uint32_t>());
    if (!made) return answer(made.error());
    reply.out.put(address_of((*made)->bytes().data()));
    reply.out.put(add(dms_, *std::move(made)));
    return reply;
  }
  if (command == Command::OpenXrcd) {
    return created(xrcds_, hca_->open_xrcd(in.take<control::OpenXrcdIn>()));
  }
  if (command == Command::CreateAddress) {
    auto* pd = find(pds_, in.take<std::uint32_t>());
    if (pd == nullptr) return answer(Status::NotFound);
    return created(addresses_, hca_->create_ah(*pd, in.take<verbs::AddressVector>()));
  }
  const auto port = in.take<std::uint32_t>();
  if (command == Command::QueryPort) {
    const auto out = hca_->query_port(port);
    if (!out) return answer(out.error());
    reply.out.put(*out);
    return reply;
  }
  const auto gid = hca_->query_gid(port, in.take<std::uint32_t>());
  if (!gid) return answer(gid.error());
  reply.out.put(gid->gid);
  return reply;
}

Reply Engine::next_event(std::uint32_t milliseconds) {
  std::unique_lock guard(event_lock_);
  if (!event_came_.wait_until(guard, deadline_in(milliseconds),
                              [this] { return !events_.empty(); })) {
    return answer(Status::Timeout);
  }
  Reply reply;
  reply.out.put(events_.front());
  events_.pop_front();
  return reply;
}

Reply Engine::destroy(Kind kind, std::uint32_t handle) {
  switch (kind) {
    case Kind::Pd: return destroy(pds_, handle);
    case Kind::Region: return destroy(regions_, handle);
    case Kind::Window: return destroy(windows_, handle);
    case Kind::DeviceMemory: return destroy(dms_, handle);
    case Kind::Channel: return destroy(channels_, handle);
    case Kind::Cq: return destroy(cqs_, handle);
    case Kind::Srq: return destroy(srqs_, handle);
    case Kind::Qp: return destroy(qps_, handle);
    case Kind::Xrcd: return destroy(xrcds_, handle);
    case Kind::Address: return destroy(addresses_, handle);
  }
  return answer(Status::InvalidParameter);
}

Reply Engine::destroy_all() {
  Reply first_failure;
  const auto all = [&](auto& table) {
    while (!table.empty()) {
      Reply reply = destroy(table, table.begin()->first);
      if (reply.status == Status::Ok) continue;
      if (first_failure.status == Status::Ok) first_failure = std::move(reply);
      // Left to softibd, which destroys the objects of a client that has gone.
      (void)table.begin()->second.release();
      table.erase(table.begin());
    }
  };
  all(qps_);
  all(srqs_);
  all(windows_);
  all(regions_);
  all(dms_);
  all(addresses_);
  all(cqs_);
  all(channels_);
  all(xrcds_);
  all(pds_);
  return first_failure;
}

}  // namespace ib::conformance
