// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/device.h"

#include "io/irp_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ib::io {
namespace {

using Trail = std::vector<std::string>;

void note_done(Irp& irp, void* context) {
  static_cast<Trail*>(context)->push_back(std::string("done: ") + status_text(irp.status));
}

// A filter that records requests and results.
struct Step {
  Trail* trail;
  std::string name;
};

void up(IrpRef irp, void* context) {
  auto& step = *static_cast<Step*>(context);
  step.trail->push_back("up " + step.name);
  std::move(irp).pass_up();
}

void down(DeviceObject& device, IrpRef irp) {
  auto& step = device.extension<Step>();
  step.trail->push_back("down " + step.name);
  call_driver(*device.lower(), std::move(irp), &up, &step);
}

void answer(DeviceObject& device, IrpRef irp) {
  device.extension<Step>().trail->push_back("answer");
  const auto in = irp->input<std::uint32_t>();
  if (!in) return std::move(irp).fail(Status::Malformed, "a number was expected");
  if (!irp->set_output(*in + 1)) return std::move(irp).complete(Status::InvalidParameter);
  std::move(irp).complete(Status::Ok, 1);
}

struct Stack {
  Trail trail;
  DriverObject function{"soft_hca"};
  DriverObject filter{"filter"};
  DeviceObject bottom{function, "bottom", DeviceKind::Functional};
  DeviceObject middle{filter, "middle", DeviceKind::Filter};
  DeviceObject top{filter, "top", DeviceKind::Filter};
  Step bottom_step{&trail, "bottom"};
  Step middle_step{&trail, "middle"};
  Step top_step{&trail, "top"};
  Client client;

  Stack() {
    function.on(Major::DeviceControl) = answer;
    filter.on(Major::DeviceControl) = down;
    bottom.set_extension(&bottom_step);
    middle.set_extension(&middle_step);
    top.set_extension(&top_step);
    EXPECT_EQ(middle.attach(bottom), Status::Ok);
    EXPECT_EQ(top.attach(bottom), Status::Ok);  // on top, wherever one points into the stack
  }
};

TEST(DeviceStack, RequestsGoDownAndCompletionsUpLastGivenFirst) {
  Stack s;
  Irp irp;
  const std::uint32_t in = 41;
  std::uint32_t out = 0;
  call_direct(s.bottom.top(), 0u, in, out, irp.start(note_done, &s.trail));
  EXPECT_EQ(out, 42u);
  EXPECT_EQ(irp.out_size, 4u);
  EXPECT_EQ(s.trail,
            (Trail{"down top", "down middle", "answer", "up middle", "up top", "done: success"}));
}

TEST(DeviceStack, IoctlAndDirectCallReachTheSameHandler) {
  Stack s;
  Irp irp;
  std::array<std::byte, 4> in{std::byte{1}};
  std::array<std::byte, 64> out{};
  irp.requestor_mode = RequestorMode::User;
  irp.in = in;
  irp.out = out;
  call_driver(s.top, irp.start(note_done, &s.trail));
  EXPECT_EQ(irp.status, Status::Ok);
  EXPECT_EQ(irp.out_size, 4u);
  EXPECT_EQ(std::to_integer<int>(out[0]), 2);
  EXPECT_EQ(irp.information, 1u);
}

TEST(DeviceStack, KnowsItsDepthAndItsTop) {
  Stack s;
  EXPECT_EQ(&s.bottom.top(), &s.top);
  EXPECT_EQ(s.top.stack_depth(), 3u);
  EXPECT_EQ(s.middle.upper(), &s.top);
  EXPECT_EQ(s.middle.lower(), &s.bottom);
}

TEST(DeviceStack, GetsNoDeeperThanARequestHasLocations) {
  DriverObject driver("d");
  std::vector<std::unique_ptr<DeviceObject>> devices;
  auto add = [&] {
    devices.push_back(std::make_unique<DeviceObject>(driver, "x", DeviceKind::Filter));
    return devices.size() == 1 ? Status::Ok : devices.back()->attach(*devices.front());
  };
  for (std::size_t i = 0; i < kMaxStackDepth; ++i) EXPECT_EQ(add(), Status::Ok);
  EXPECT_EQ(add(), Status::LimitExceeded);
  Irp irp;
  Trail trail;
  irp.major = Major::Pnp;
  call_driver(devices.front()->top(), irp.start(note_done, &trail));  // the deepest one works
  EXPECT_EQ(trail, Trail{"done: success"});
  while (!devices.empty()) devices.pop_back();
}

TEST(DeviceStack, UnknownControlCodesAreRefusedInWords) {
  DriverObject driver("mute");
  DeviceObject device(driver, "m0", DeviceKind::Functional);
  Irp irp;
  Trail trail;
  irp.code = 999;
  call_driver(device, irp.start(note_done, &trail));
  EXPECT_EQ(irp.status, Status::NotSupported);
  EXPECT_EQ(irp.reason, "the driver mute of device m0 does not know request 999");
}

// A completion routine may keep the request and send it again.
struct Retry {
  DeviceObject* lower;
  int tries = 0;
};
void retry(IrpRef irp, void* context) {
  auto& self = *static_cast<Retry*>(context);
  if (irp->status == Status::Ok || ++self.tries == 3) return std::move(irp).pass_up();
  call_driver(*self.lower, std::move(irp), &retry, context);
}

TEST(DeviceStack, ACompletionRoutineMaySendTheRequestDownAgain) {
  Stack s;
  Retry state{&s.bottom};
  Irp irp;  // without input: fails with Malformed each time
  call_driver(s.bottom, irp.start(note_done, &s.trail), &retry, &state);
  EXPECT_EQ(state.tries, 3);
  EXPECT_EQ(s.trail, (Trail{"answer", "answer", "answer", "done: malformed data"}));
}

TEST(DeviceStackDeathTest, SendingARequestRoundInACircleIsABug) {
  DriverObject driver("loop");
  driver.on(Major::DeviceControl) = [](DeviceObject& device, IrpRef irp) {
    call_driver(device, std::move(irp));
  };
  DeviceObject device(driver, "l0", DeviceKind::Functional);
  Irp irp;
  Trail trail;
  EXPECT_DEATH(call_driver(device, irp.start(note_done, &trail)), "depth_ < kMaxStackDepth");
}

TEST(FileObject, KeepsOneContextPerDriverOfTheStack) {
  Stack s;
  FileObject file(s.bottom, 3, s.client, nullptr);
  EXPECT_EQ(&file.device(), &s.top);
  EXPECT_EQ(s.top.open_files().size(), 1u);
  int a = 1;
  double b = 2;
  file.set_context(s.bottom, &a);
  file.set_context(s.middle, &b);
  EXPECT_EQ(file.context<int>(s.bottom), &a);
  EXPECT_EQ(file.context<double>(s.middle), &b);
  EXPECT_EQ(file.context<int>(s.top), nullptr);
  file.set_context<int>(s.bottom, nullptr);
  EXPECT_EQ(file.context<double>(s.bottom), nullptr);
}

TEST(FileObjectDeathTest, AskingForAContextOfAnotherTypeIsABug) {
  Stack s;
  FileObject file(s.bottom, 3, s.client, nullptr);
  int a = 1;
  file.set_context(s.bottom, &a);
  EXPECT_DEATH((void)file.context<double>(s.bottom), "type_");
}

TEST(IrpQueue, FindsTheOldestRequestOfAFile) {
  Stack s;
  FileObject one(s.bottom, 1, s.client, nullptr);
  FileObject two(s.bottom, 2, s.client, nullptr);
  std::array<Irp, 3> irps;
  IrpQueue queue;
  irps[0].file = &one;
  irps[1].file = &two;
  irps[2].file = &two;
  for (Irp& irp : irps) queue.park(irp.start(note_done, &s.trail));
  auto found = queue.take_of(two);
  ASSERT_TRUE(found);
  EXPECT_EQ(&**found, &irps[1]);
  (*std::move(found)).complete(Status::Ok);
  queue.fail_all(Status::Cancelled, "end");
  EXPECT_FALSE(queue.take_of(two));
}

}  // namespace
}  // namespace ib::io
