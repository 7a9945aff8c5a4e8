// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every transition of ClientFile, with a driver that answers, parks or keeps requests.
#include "io/client_file.h"

#include "io/test/client_bed_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace ib::io::test {
namespace {

using State = ClientFile::State;
using Does = ClientBed::Does;
using Trail = ClientBed::Trail;
using testing::ElementsAre;

class ClientFileTest : public testing::Test {
 protected:
  void send(ClientCall& call) {
    call.then = [this](Irp& irp) { on_back(irp); };
    call_driver(bed.device, call.start());
  }
  void open() {
    file->open(create.irp);
    send(create);
  }
  bool begin(ClientCall& call) {
    if (!file->begin(call.irp)) return false;
    send(call);
    return true;
  }
  void start_close() {
    close.then = [this](Irp& irp) { on_back(irp); };
    file->close(close.start());
    send_close();
  }
  void send_close() {
    if (auto irp = file->take_close()) call_driver(bed.device, *std::move(irp));
  }
  void on_back(Irp& irp) {
    file->end(irp);
    send_close();
  }

  ClientBed bed;
  std::optional<ClientFile> file{std::in_place, bed.device, 1u, bed.client, nullptr};
  ClientCall create;
  ClientCall first;
  ClientCall second;
  ClientCall close;
};

TEST_F(ClientFileTest, IsOpenOnceCreateIsBack) {
  bed.create = Does::Keeps;
  EXPECT_EQ(file->state(), State::New);
  open();
  EXPECT_EQ(file->state(), State::Opening);
  EXPECT_FALSE(begin(first));
  bed.release();
  EXPECT_EQ(file->state(), State::Open);
  EXPECT_TRUE(begin(first));
  EXPECT_EQ(file->under_way(), 1u);
  EXPECT_EQ(first.irp.file, &file->object());
  start_close();
  EXPECT_EQ(file->state(), State::Closed);
  EXPECT_THAT(bed.trail, ElementsAre("create 1", "control 1", "close 1"));
}

TEST_F(ClientFileTest, ThatWasNeverCreatedMayGo) {
  file.reset();
  EXPECT_TRUE(bed.device.open_files().empty());
}

TEST_F(ClientFileTest, WhoseCreateFailsIsNotClosed) {
  bed.status = Status::NotFound;
  open();
  EXPECT_EQ(file->state(), State::Closed);
  EXPECT_FALSE(begin(first));
  file.reset();
  EXPECT_THAT(bed.trail, ElementsAre("create 1"));
}

TEST_F(ClientFileTest, ThatIsOpeningIsCancelled) {
  bed.create = Does::Parks;
  open();
  file->clean_up();
  EXPECT_EQ(create.irp.status, Status::Cancelled);
  EXPECT_EQ(file->state(), State::Closed);
  EXPECT_THAT(bed.trail, ElementsAre("create 1"));
}

// The driver has opened it, so the driver has to see Close.
TEST_F(ClientFileTest, WhoseCreateSucceedsTooLateIsClosed) {
  bed.create = Does::Keeps;
  open();
  file->clean_up();
  EXPECT_TRUE(create.irp.is_cancelled());
  EXPECT_EQ(file->state(), State::CleaningUp);
  bed.release();
  EXPECT_EQ(file->state(), State::CleaningUp);
  EXPECT_FALSE(begin(first));
  start_close();
  EXPECT_EQ(file->state(), State::Closed);
  EXPECT_THAT(bed.trail, ElementsAre("create 1", "close 1"));
}

TEST_F(ClientFileTest, WhoseCreateFailsTooLateIsNotClosed) {
  bed.create = Does::Keeps;
  open();
  file->clean_up();
  bed.release(Status::IoError);
  EXPECT_EQ(file->state(), State::Closed);
}

TEST_F(ClientFileTest, CloseCancelsRequestsAndFollowsThem) {
  open();
  EXPECT_TRUE(begin(first));
  EXPECT_TRUE(begin(second));
  start_close();
  EXPECT_EQ(first.irp.status, Status::Cancelled);
  EXPECT_EQ(second.irp.status, Status::Cancelled);
  EXPECT_EQ(close.done, 1);
  EXPECT_EQ(file->state(), State::Closed);
  EXPECT_THAT(bed.trail, ElementsAre("create 1", "control 1", "control 1", "close 1"));
}

TEST_F(ClientFileTest, CloseWaitsForACancelThatIsAnsweredLate) {
  bed.control = Does::Keeps;
  open();
  EXPECT_TRUE(begin(first));
  EXPECT_TRUE(begin(second));
  start_close();
  EXPECT_TRUE(first.irp.is_cancelled() && second.irp.is_cancelled());
  EXPECT_EQ(file->state(), State::CleaningUp);
  IrpRef last = std::move(bed.kept.back());
  bed.kept.pop_back();
  bed.release();
  EXPECT_EQ(file->state(), State::CleaningUp);
  EXPECT_EQ(file->under_way(), 1u);
  std::move(last).complete(Status::Ok);  // it may succeed all the same
  EXPECT_EQ(file->state(), State::Closed);
  EXPECT_THAT(bed.trail, ElementsAre("create 1", "control 1", "control 1", "close 1"));
}

TEST_F(ClientFileTest, ARequestAfterCleanupIsRefused) {
  bed.control = Does::Keeps;
  bed.close = Does::Keeps;
  open();
  EXPECT_TRUE(begin(first));
  start_close();
  EXPECT_FALSE(begin(second)) << "cleaning up";
  bed.release();
  EXPECT_EQ(file->state(), State::Closing);
  EXPECT_FALSE(begin(second)) << "closing";
  bed.release();
  EXPECT_EQ(file->state(), State::Closed);
  EXPECT_FALSE(begin(second)) << "closed";
  EXPECT_EQ(second.done, 0);
  EXPECT_THAT(bed.trail, ElementsAre("create 1", "control 1", "close 1"));
}

TEST_F(ClientFileTest, CleanupWithoutCloseWaitsForClose) {
  open();
  EXPECT_TRUE(begin(first));
  file->clean_up();
  EXPECT_EQ(first.irp.status, Status::Cancelled);
  EXPECT_EQ(file->state(), State::CleaningUp);
  EXPECT_FALSE(file->take_close());
  file->clean_up();  // changes nothing
  EXPECT_EQ(file->state(), State::CleaningUp);
  start_close();
  EXPECT_EQ(file->state(), State::Closed);
}

// A driver that parks Close would answer a cancelled one without having closed the file.
TEST_F(ClientFileTest, CloseIsNotCancelled) {
  bed.close = Does::Parks;
  open();
  start_close();
  EXPECT_EQ(file->state(), State::Closing);
  file->clean_up();
  EXPECT_FALSE(close.irp.is_cancelled());
  EXPECT_EQ(bed.parked.size(), 1u);
  (*bed.parked.take()).complete(Status::Ok);
  EXPECT_EQ(file->state(), State::Closed);
}

TEST_F(ClientFileTest, ThatADriverFailsToCloseIsClosed) {
  open();
  bed.status = Status::IoError;
  start_close();
  EXPECT_EQ(file->state(), State::Closed);
}

// The second one is answered from inside the cancellation of the first one.
TEST_F(ClientFileTest, ACancelledRequestMayCompleteOthers) {
  open();
  EXPECT_TRUE(begin(first));
  EXPECT_TRUE(begin(second));
  first.then = [this](Irp& irp) {
    on_back(irp);
    bed.parked.fail_all(Status::DeviceBusy, "not now");
    EXPECT_EQ(file->state(), State::CleaningUp) << "Close was sent in the middle";
  };
  start_close();
  EXPECT_EQ(second.irp.status, Status::DeviceBusy);
  EXPECT_EQ(file->state(), State::Closed);
  EXPECT_THAT(bed.trail, ElementsAre("create 1", "control 1", "control 1", "close 1"));
}

// The drivers of a device that is removed end its requests. The file stays until it is closed.
TEST_F(ClientFileTest, ARemovalInTheMiddleLeavesTheFile) {
  open();
  EXPECT_TRUE(begin(first));
  bed.parked.fail_all(Status::DeviceRemoved, "the device was removed");
  EXPECT_EQ(first.irp.status, Status::DeviceRemoved);
  EXPECT_EQ(file->state(), State::Open);
  bed.control = Does::Answers;
  bed.status = Status::DeviceRemoved;
  EXPECT_TRUE(begin(second));
  EXPECT_EQ(second.irp.status, Status::DeviceRemoved);
  EXPECT_EQ(bed.device.open_files().size(), 1u);
  start_close();
  EXPECT_EQ(file->state(), State::Closed);
  file.reset();
  EXPECT_TRUE(bed.device.open_files().empty());
}

TEST_F(ClientFileTest, ARemovalWhileItCleansUpLetsItClose) {
  bed.control = Does::Keeps;
  open();
  EXPECT_TRUE(begin(first));
  start_close();
  EXPECT_EQ(file->state(), State::CleaningUp);
  bed.release(Status::DeviceRemoved);
  EXPECT_EQ(file->state(), State::Closed);
}

TEST_F(ClientFileTest, ItsCloserMayDestroyIt) {
  open();
  EXPECT_TRUE(begin(first));
  close.then = [this](Irp& irp) {
    file->end(irp);
    file.reset();
  };
  file->close(close.start());
  auto irp = file->take_close();
  ASSERT_TRUE(irp);
  call_driver(bed.device, *std::move(irp));
  EXPECT_FALSE(file);
}

using ClientFileDeathTest = ClientFileTest;

TEST_F(ClientFileDeathTest, IsNotDestroyedBeforeItIsClosed) {
  bed.create = Does::Keeps;
  bed.close = Does::Keeps;
  open();
  EXPECT_DEATH(file.reset(), "client_file") << "opening";
  bed.release();
  EXPECT_DEATH(file.reset(), "client_file") << "open";
  file->clean_up();
  EXPECT_DEATH(file.reset(), "client_file") << "cleaning up";
  start_close();
  EXPECT_DEATH(file.reset(), "client_file") << "closing";
  bed.release();
  file.reset();
}

TEST_F(ClientFileDeathTest, IsClosedOnce) {
  bed.close = Does::Keeps;
  open();
  start_close();
  ClientCall again;
  EXPECT_DEATH(file->close(again.start()), "client_file");
  bed.release();
}

}  // namespace
}  // namespace ib::io::test
