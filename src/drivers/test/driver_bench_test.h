// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the tests of this folder: processes that send IRPs to a fabric (driver_world_test.h). The
// test itself acts as the posters: it writes into device memory.
#pragma once

#include "base/buffers.h"
#include "drivers/test/driver_world_test.h"
#include "verbs/control.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace ib::drivers::test {

using control::AttachIn;
using control::AttachOut;
using control::Code;
using control::CqOut;
using control::CreateCqIn;
using control::CreateQpIn;
using control::kNoIndex;
using control::ModifyQpIn;
using control::ModifyQpOut;
using control::MrOut;
using control::QpAttr;
using control::QpOut;
using control::RegMrIn;

template <class Out>
struct Reply {
  Status status = Status::Ok;
  std::uint32_t handle = 0;
  Out out{};
  std::string reason;
};
struct Nothing {};

// A process that has attached to a node and opened its HCA.
class Process {
 public:
  Process(Bench& bench, std::uint32_t pid, const std::string& node, bool attached = true,
          std::uint32_t flags = 0)
      : bench_(bench) {
    client_.session = attached ? pid : kUnattached + pid;  // beside an attached one of the process
    client_.pid = pid;
    zero_ = std::make_unique<io::FileObject>(bench.root->device(), 0, client_, nullptr);
    send(*zero_, io::Major::Create);
    bench.host.alive.insert(pid);
    if (!attached) return;
    AttachIn in;
    in.flags = flags;
    put_text(in.node, node);
    put_text(in.program, "test");
    const auto out = root_call<AttachOut>(Code::Attach, in);
    EXPECT_EQ(out.status, Status::Ok) << out.reason;
    attach = out.out;
    if (out.status == Status::Ok) {
      // Tests play its threads.
      sure(bench.arena().slot(attach.slot)).words_used.store(hca::kThreadsPerSlot);
    }
    std::string reason;
    const auto device = bench.tree->resolve(node, "\\Device\\ibal", reason);
    EXPECT_TRUE(device) << reason;
    file_ = std::make_unique<io::FileObject>(**device, 1, client_, zero_.get());
    send(*file_, io::Major::Create);
  }
  ~Process() { exit(); }

  // Sends without waiting.
  template <class In>
  std::unique_ptr<Request> start(io::FileObject& file, Code code, const In& in,
                                 io::Major major = io::Major::DeviceControl) {
    auto request = std::make_unique<Request>();
    if constexpr (!std::is_same_v<In, Nothing>) {
      const auto bytes = std::as_bytes(std::span(&in, 1));
      request->in.assign(bytes.begin(), bytes.end());
    }
    io::IrpRef irp = request->irp.start(&Request::on_done, request.get());
    irp->major = major;
    irp->requestor_mode = io::RequestorMode::User;
    irp->code = static_cast<std::uint32_t>(code);
    irp->file = &file;
    irp->in = request->in;
    irp->out = request->out;
    irp->in_handles[0] = FakeHost::handle();
    irp->in_handles[1] = FakeHost::handle();
    io::call_driver(file.device(), std::move(irp));
    return request;
  }
  template <class Out>
  Reply<Out> finish(Request& request) {
    for (int i = 0; i < 100 && !request.done; ++i) {
      bench_.executor.advance(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(request.done);
    Reply<Out> reply{request.irp.status,
                     static_cast<std::uint32_t>(request.irp.information),
                     {},
                     request.irp.reason};
    if constexpr (!std::is_same_v<Out, Nothing>) {
      if (request.irp.out_size == sizeof(Out)) {
        std::memcpy(static_cast<void*>(&reply.out), request.out.data(), sizeof(Out));
      }
    }
    return reply;
  }
  template <class Out = Nothing, class In = Nothing>
  Reply<Out> call(Code code, const In& in = {}) {
    return finish<Out>(*start(*file_, code, in));
  }
  template <class Out = Nothing, class In = Nothing>
  Reply<Out> root_call(Code code, const In& in = {}) {
    return finish<Out>(*start(*zero_, code, in));
  }
  template <class In>
  std::unique_ptr<Request> begin(Code code, const In& in) {
    return start(*file_, code, in);
  }

  // As in softibd when the socket closes.
  void exit() {
    if (zero_ == nullptr) return;
    bench_.host.alive.erase(client_.pid);
    bench_.root->disconnect(*zero_);
    if (file_ != nullptr) send(*file_, io::Major::Close);
    for (const auto& file : more_files_) send(*file, io::Major::Close);
    send(*zero_, io::Major::Close);
    more_files_.clear();
    file_.reset();
    zero_.reset();
  }
  // Opens its HCA once more.
  io::FileObject& open_again() {
    const auto number = static_cast<std::uint32_t>(2 + more_files_.size());
    more_files_.push_back(
        std::make_unique<io::FileObject>(file_->device(), number, client_, zero_.get()));
    send(*more_files_.back(), io::Major::Create);
    return *more_files_.back();
  }
  void close_file() {
    send(*file_, io::Major::Close);
    file_.reset();
  }

  // --- Shorthands; each expects success ---
  std::uint32_t pd() { return good(call(Code::AllocPd)); }
  std::uint32_t cq(std::uint32_t cqe = 10, std::uint32_t channel = kNoIndex) {
    return good(call<CqOut>(Code::CreateCq, CreateCqIn{cqe, channel, 0, 0, 77}));
  }
  Reply<MrOut> mr(std::uint32_t of_pd, std::uint32_t access = verbs::access::kLocalWrite) {
    return call<MrOut>(Code::RegMr, RegMrIn{of_pd, access, 0x10000, 4096, 0x10000, kNoIndex, 0});
  }
  CreateQpIn qp_in(verbs::QpType type, std::uint32_t of_pd, std::uint32_t of_cq) {
    CreateQpIn in;
    in.type = type;
    in.pd = of_pd;
    in.send_cq = of_cq;
    in.recv_cq = of_cq;
    in.caps = {16, 16, 2, 2, 64, 0};
    in.cookie = 99;
    return in;
  }
  Reply<QpOut> qp(verbs::QpType type, std::uint32_t of_pd, std::uint32_t of_cq) {
    return call<QpOut>(Code::CreateQp, qp_in(type, of_pd, of_cq));
  }
  template <class R>
  std::uint32_t good(const R& reply) {
    EXPECT_EQ(reply.status, Status::Ok) << reply.reason;
    return reply.handle;
  }
  Reply<ModifyQpOut> modify(std::uint32_t of_qp, verbs::QpState state, std::uint32_t mask,
                            QpAttr attr = {}) {
    attr.state = state;
    return call<ModifyQpOut>(Code::ModifyQp,
                             ModifyQpIn{of_qp, mask | verbs::qp_attr::kState, attr});
  }
  // Brings an RC queue pair to RTS.
  void connect(std::uint32_t of_qp, std::uint32_t dest_qpn, std::uint16_t dlid,
               std::uint8_t timeout = 14) {
    verbs::AddressVector av;
    av.dlid = dlid;
    av.port = 1;
    connect(of_qp, dest_qpn, av, timeout);
  }
  void connect(std::uint32_t of_qp, std::uint32_t dest_qpn, const verbs::Gid& dgid) {
    verbs::AddressVector av;
    av.is_global = 1;
    av.port = 1;
    av.sgid_index = 1;
    av.dgid = dgid;
    connect(of_qp, dest_qpn, av);
  }
  void connect(std::uint32_t of_qp, std::uint32_t dest_qpn, const verbs::AddressVector& av,
               std::uint8_t timeout = 14) {
    namespace a = verbs::qp_attr;
    QpAttr attr;
    attr.port = av.port;
    attr.access = verbs::access::kRemoteWrite;
    good(modify(of_qp, verbs::QpState::Init, a::kPort | a::kPkeyIndex | a::kAccessFlags, attr));
    attr.dest_qpn = dest_qpn;
    attr.av = av;
    attr.path_mtu = verbs::Mtu::B4096;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    good(modify(
        of_qp, verbs::QpState::Rtr,
        a::kAv | a::kPathMtu | a::kDestQpn | a::kRqPsn | a::kMaxDestRdAtomic | a::kMinRnrTimer,
        attr));
    attr.timeout = timeout;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    good(modify(of_qp, verbs::QpState::Rts,
                a::kTimeout | a::kRetryCnt | a::kRnrRetry | a::kSqPsn | a::kMaxQpRdAtomic, attr));
  }

  io::FileObject& file() { return *file_; }
  io::FileObject& zero() { return *zero_; }
  AttachOut attach;

 private:
  void send(io::FileObject& file, io::Major major) {
    const auto request = start(file, Code::Ping, Nothing{}, major);
    EXPECT_EQ(finish<Nothing>(*request).status, Status::Ok);
  }

  Bench& bench_;
  static constexpr std::uint64_t kUnattached = std::uint64_t{1} << 32;
  io::Client client_;
  std::unique_ptr<io::FileObject> zero_;
  std::unique_ptr<io::FileObject> file_;
  std::vector<std::unique_ptr<io::FileObject>> more_files_;
};

}  // namespace ib::drivers::test
