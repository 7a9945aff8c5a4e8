// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The files of a kernel client (al/al.h) while Create or Close is under way. A gate between the
// client and the device stacks holds these requests.
#include "kernel_client.h"

#include <optional>
#include <utility>
#include <vector>

namespace ib::conformance {
namespace {

// Stands in the place of the verifier and holds the requests of one kind. softibd's thread.
class Gate {
 public:
  explicit Gate(io::Major held) : held_(held) {
    device_.set_extension(this);
    driver_.dispatch.fill([](io::DeviceObject& gate, io::IrpRef irp) {
      auto& self = gate.extension<Gate>();
      if (irp->major == self.held_) return self.requests.push_back(std::move(irp));
      self.send(std::move(irp));
    });
  }
  void release() {
    for (io::IrpRef& irp : std::exchange(requests, {})) send(std::move(irp));
  }

  io::DeviceObject& device() { return device_; }

  std::vector<io::IrpRef> requests;

 private:
  static void send(io::IrpRef irp) {
    io::DeviceObject& to = irp->file->device();
    io::call_driver(to, std::move(irp));
  }

  io::Major held_;
  io::DriverObject driver_{"gate"};
  io::DeviceObject device_{driver_, "gate", io::DeviceKind::Functional};
};

// A request whose end the test waits for later.
class Call {
 public:
  io::IrpRef start() {
    return irp_.start(
        [](io::Irp&, void* context) { static_cast<Call*>(context)->done_.set_value(); }, this);
  }
  Status wait() {
    if (done_.get_future().wait_for(std::chrono::milliseconds(kTimeLimitMs)) !=
        std::future_status::ready) {
      // Its memory is here, so returning is not safe.
      std::fprintf(stderr, "a request of a kernel client has not ended in %u ms\n", kTimeLimitMs);
      std::abort();
    }
    return irp_.status;
  }
  const std::string& reason() const { return irp_.reason; }

 private:
  io::Irp irp_;
  std::promise<void> done_;
};

class KernelFilesTest : public KernelClient {
 protected:
  // A second client, behind a gate.
  void begin(io::Major held) {
    on_loop([&] {
      gate_.emplace(held);
      system_.emplace(daemon().access_layer());
      system_->verifier = &gate_->device();
      system_->last_client = 1ull << 62;  // not the numbers of the clients without a gate
      al2 = std::make_unique<al::Al>(*system_, driver);
      ca2 = std::make_unique<al::Ca>(*al2);
    });
  }
  void TearDown() override {
    on_loop([this] {
      ca2.reset();
      al2.reset();
      EXPECT_TRUE(gate_->requests.empty());
      gate_.reset();
    });
    KernelClient::TearDown();
  }
  void open_al(Call& call) { al2->open(home(), "kernel_files", call.start()); }
  void open_ca(Call& call) { ca2->open("\\Device\\ibal", call.start()); }
  void release() {
    on_loop([this] { gate_->release(); });
  }
  void must_open() {
    Call first;
    Call second;
    on_loop([&] { open_al(first); });
    ASSERT_EQ(first.wait(), Status::Ok) << first.reason();
    on_loop([&] { open_ca(second); });
    ASSERT_EQ(second.wait(), Status::Ok) << second.reason();
  }
  void must_close() {
    Call first;
    Call second;
    on_loop([&] { ca2->close(first.start()); });
    release();
    EXPECT_EQ(first.wait(), Status::Ok) << first.reason();
    on_loop([&] { al2->close(second.start()); });
    release();
    EXPECT_EQ(second.wait(), Status::Ok) << second.reason();
  }

  std::optional<Gate> gate_;
  std::optional<al::System> system_;
  std::unique_ptr<al::Al> al2;
  std::unique_ptr<al::Ca> ca2;
};
IB_EVERY_SETTING(KernelFilesTest);

TEST_P(KernelFilesTest, ACaThatIsBeingClosedIsNotClosedYet) {
  begin(io::Major::Close);
  must_open();
  Call first;
  Call second;
  on_loop([&] {
    ca2->close(first.start());
    ca2->close(second.start());
    EXPECT_EQ(gate_->requests.size(), 1u);
  });
  EXPECT_EQ(second.wait(), Status::InvalidState);
  EXPECT_EQ(second.reason(), "this CA is being closed");
  release();
  EXPECT_EQ(first.wait(), Status::Ok);
  must_close();
}

TEST_P(KernelFilesTest, AFileThatIsBeingOpenedIsNotClosed) {
  begin(io::Major::Create);
  Call opened[2];
  Call closed[2];
  on_loop([&] {
    open_al(opened[0]);
    al2->close(closed[0].start());
  });
  EXPECT_EQ(closed[0].wait(), Status::InvalidState);
  EXPECT_EQ(closed[0].reason(), "this client of the access layer is being opened");
  release();
  EXPECT_EQ(opened[0].wait(), Status::Ok) << opened[0].reason();
  on_loop([&] {
    open_ca(opened[1]);
    ca2->close(closed[1].start());
  });
  EXPECT_EQ(closed[1].wait(), Status::InvalidState);
  EXPECT_EQ(closed[1].reason(), "this CA is being opened");
  release();
  EXPECT_EQ(opened[1].wait(), Status::Ok) << opened[1].reason();
  must_close();
}

// Its files go before it does, so there may be no new one.
TEST_P(KernelFilesTest, AClientThatIsBeingClosedOpensNoCa) {
  begin(io::Major::Close);
  must_open();
  Call ca_closed;
  on_loop([&] { ca2->close(ca_closed.start()); });
  release();
  EXPECT_EQ(ca_closed.wait(), Status::Ok);
  Call closed;
  Call opened;
  on_loop([&] {
    al2->close(closed.start());
    EXPECT_FALSE(al2->is_open());
    open_ca(opened);
  });
  EXPECT_EQ(opened.wait(), Status::InvalidState);
  release();
  EXPECT_EQ(closed.wait(), Status::Ok);
}

}  // namespace
}  // namespace ib::conformance
