// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The cost of control operations in kernel form: direct calls at dispatch level, without a socket
// and without posters to wait for. One iteration creates an object and destroys it.
#include "drivers/test/driver_world_test.h"
#include "io/device.h"
#include "mad/smp.h"

#include <benchmark/benchmark.h>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace ib::drivers {
namespace {

using namespace verbs::control;

// A kernel client with an open HCA.
class Client {
 public:
  Client() {
    client_.session = 1ull << 63;
    client_.pid = 1;
    zero_ = std::make_unique<io::FileObject>(world_.root->device(), 0, client_, nullptr);
    send(*zero_, io::Major::Create, 0, {}, {});
    AttachIn attach;
    std::memcpy(attach.node.data(), "node0", 5);
    AttachOut attached;
    send(*zero_, io::Major::DeviceControl, static_cast<std::uint32_t>(Code::Attach),
         std::as_bytes(std::span(&attach, 1)), std::as_writable_bytes(std::span(&attached, 1)));
    std::string reason;
    const auto device = world_.tree->resolve("node0", "\\Device\\ibal", reason);
    IB_ASSERT(device);
    file_ = std::make_unique<io::FileObject>(**device, 1, client_, zero_.get());
    OpenOut opened;
    send(*file_, io::Major::Create, 0, {}, std::as_writable_bytes(std::span(&opened, 1)));
  }
  ~Client() {
    send(*file_, io::Major::Close, 0, {}, {});
    file_.reset();
    send(*zero_, io::Major::Close, 0, {}, {});
    zero_.reset();
    world_.executor.advance(std::chrono::seconds(1));
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  template <class In, class Out>
  std::uint32_t create(Code code, const In& in, Out& out) {
    irp_.file = file_.get();
    io::call_direct(file_->device(), code, in, out, irp_.start(&done, nullptr));
    IB_ASSERT(irp_.status == Status::Ok);
    return static_cast<std::uint32_t>(irp_.information);
  }
  void destroy(Code code, std::uint32_t handle) {
    const IndexIn in{handle, 0};
    Nothing nothing;
    irp_.file = file_.get();
    io::call_direct(file_->device(), code, in, nothing, irp_.start(&done, nullptr));
    IB_ASSERT(irp_.status == Status::Ok);
  }
  struct Nothing {};

 private:
  static void done(io::Irp&, void*) {}
  void send(io::FileObject& file, io::Major major, std::uint32_t code,
            std::span<const std::byte> in, std::span<std::byte> out) {
    irp_.major = major;
    irp_.file = &file;
    irp_.code = code;
    irp_.in = in;
    irp_.out = out;
    io::call_driver(file.device(), irp_.start(&done, nullptr));
    IB_ASSERT(irp_.status == Status::Ok);
  }

  test::Bench world_;
  io::Client client_;
  std::unique_ptr<io::FileObject> zero_;
  std::unique_ptr<io::FileObject> file_;
  io::Irp irp_;
};

std::uint32_t make_pd(Client& client) {
  // AllocPd takes no input.
  struct {
  } none;
  static_assert(sizeof none == 1);
  Client::Nothing nothing;
  return client.create(Code::AllocPd, none, nothing);
}

CreateCqIn cq_of(std::uint32_t cqe) {
  CreateCqIn in;
  in.cqe = cqe;
  return in;
}

void pd(benchmark::State& state) {
  Client client;
  for (auto _ : state) client.destroy(Code::DeallocPd, make_pd(client));
}
BENCHMARK(pd);

void cq(benchmark::State& state) {
  Client client;
  const CreateCqIn in = cq_of(static_cast<std::uint32_t>(state.range(0)));
  CqOut out;
  for (auto _ : state) client.destroy(Code::DestroyCq, client.create(Code::CreateCq, in, out));
}
BENCHMARK(cq)->Arg(16)->Arg(4096);

void mr(benchmark::State& state) {
  Client client;
  RegMrIn in;
  in.pd = make_pd(client);
  in.access = verbs::access::kLocalWrite | verbs::access::kRemoteAny;
  in.address = in.iova = 0x10000;
  in.length = 1 << 20;
  MrOut out;
  for (auto _ : state) client.destroy(Code::DeregMr, client.create(Code::RegMr, in, out));
}
BENCHMARK(mr);

void qp(benchmark::State& state) {
  Client client;
  CqOut cq_out;
  CreateQpIn in;
  in.pd = make_pd(client);
  in.send_cq = in.recv_cq = client.create(Code::CreateCq, cq_of(64), cq_out);
  in.caps = {16, 16, 1, 1, 0, 0};
  QpOut out;
  for (auto _ : state) client.destroy(Code::DestroyQp, client.create(Code::CreateQp, in, out));
}
BENCHMARK(qp);

// A Get of NodeInfo to the own port.
MadIn get_node_info() {
  mad::Smp smp;
  smp.header = {mad::kBaseVersion,
                mad::mgmt_class::kSubnLid,
                mad::kClassVersion,
                mad::method::kGet,
                0,
                0,
                1,
                mad::smp_attribute::kNodeInfo,
                0,
                0};
  MadIn in;
  in.port = 1;
  std::memcpy(in.mad.data(), &smp, sizeof smp);
  return in;
}

void local_mad(benchmark::State& state) {
  Client client;
  const MadIn in = get_node_info();
  MadOut out;
  for (auto _ : state) client.create(Code::LocalMad, in, out);
}
BENCHMARK(local_mad)->UseRealTime();

// The same by a worker thread, which answers and wakes the caller, as in WinOFED.
void local_mad_by_worker(benchmark::State& state) {
  Client client;
  const MadIn in = get_node_info();
  MadOut out;
  std::mutex mutex;
  std::condition_variable changed;
  enum class Turn { Asker, Worker, Nobody } turn = Turn::Asker;
  std::thread worker([&] {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return turn != Turn::Asker; });
      if (turn == Turn::Nobody) return;
      client.create(Code::LocalMad, in, out);
      turn = Turn::Asker;
      changed.notify_all();
    }
  });
  const auto pass_to = [&](Turn next) {
    std::unique_lock lock(mutex);
    turn = next;
    changed.notify_all();
    if (next == Turn::Worker) changed.wait(lock, [&] { return turn == Turn::Asker; });
  };
  for (auto _ : state) pass_to(Turn::Worker);
  pass_to(Turn::Nobody);
  worker.join();
}
BENCHMARK(local_mad_by_worker)->UseRealTime();

}  // namespace
}  // namespace ib::drivers
