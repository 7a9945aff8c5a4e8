// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A client with file 0 and others: the order of the end.
#include "io/client_files.h"

#include "io/test/client_bed_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <memory>

namespace ib::io::test {
namespace {

using Does = ClientBed::Does;
using testing::ElementsAre;

class ClientFilesTest : public testing::Test, protected ClientFiles::Owner {
 protected:
  ClientCall& new_call(ClientFile* file) {
    ClientCall& call = calls.emplace_back();
    call.then = [this, file](Irp& irp) { on_back(*file, irp); };
    return call;
  }
  ClientCall& open(std::uint32_t number) {
    auto file = std::make_unique<ClientFile>(bed.device, number, bed.client, nullptr);
    ClientCall& call = new_call(file.get());
    files.open(std::move(file), call.irp);
    call_driver(bed.device, call.start());
    return call;
  }
  ClientCall& begin(std::uint32_t number) {
    ClientFile& file = *files.find(number);
    ClientCall& call = new_call(&file);
    EXPECT_TRUE(files.begin(file, call.irp));
    call_driver(bed.device, call.start());
    return call;
  }
  void close_file(ClientFile& file) override {
    if (auto irp = files.close(file, new_call(&file).start())) {
      call_driver(bed.device, *std::move(irp));
    }
  }
  void on_over() override { bed.trail.push_back("over"); }
  void on_back(ClientFile& file, Irp& irp) {
    if (auto close = files.end(file, irp)) call_driver(bed.device, *std::move(close));
    files.go_on();
  }
  void end() {
    bed.trail.clear();
    files.end();
    files.go_on();
  }

  ClientBed bed;
  std::list<ClientCall> calls;
  ClientFiles files{*this};
};

TEST_F(ClientFilesTest, TheFilesEndInOrderFileZeroLast) {
  open(0);
  open(files.new_number());
  open(files.new_number());
  bed.control = Does::Keeps;
  const ClientCall& kept = begin(2);
  bed.control = Does::Parks;
  const ClientCall& parked = begin(0);
  end();
  EXPECT_TRUE(files.is_ending());
  EXPECT_EQ(parked.irp.status, Status::Cancelled);
  EXPECT_TRUE(kept.irp.is_cancelled());
  EXPECT_TRUE(bed.trail.empty()) << "a driver keeps a request, so it keeps the client";
  EXPECT_EQ(files.find(1), nullptr);
  bed.release();
  EXPECT_THAT(bed.trail, ElementsAre("close 1", "close 2", "close 0", "over"));
  EXPECT_TRUE(files.is_over());
}

TEST_F(ClientFilesTest, EachCloseWaitsForTheOneBefore) {
  open(0);
  open(1);
  open(2);
  bed.close = Does::Keeps;
  end();
  EXPECT_THAT(bed.trail, ElementsAre("close 1"));
  bed.release();
  EXPECT_THAT(bed.trail, ElementsAre("close 1", "close 2"));
  bed.release();
  EXPECT_THAT(bed.trail, ElementsAre("close 1", "close 2", "close 0"));
  EXPECT_FALSE(files.is_over());
  bed.release();
  EXPECT_TRUE(files.is_over());
}

TEST_F(ClientFilesTest, ACloseThatIsUnderWayIsWaitedForAndNotRepeated) {
  open(0);
  open(1);
  open(2);
  bed.close = Does::Keeps;
  close_file(*files.find(2));
  EXPECT_EQ(files.find(2), nullptr);
  EXPECT_EQ(files.size(), 3u);
  end();
  EXPECT_TRUE(bed.trail.empty());
  EXPECT_FALSE(bed.kept.front()->is_cancelled());
  bed.close = Does::Answers;
  bed.release();
  EXPECT_THAT(bed.trail, ElementsAre("close 1", "close 0", "over"));
}

// Its client has sent Close; the end does not send it again.
TEST_F(ClientFilesTest, ACloseThatWaitsIsSentInTheEnd) {
  open(0);
  open(1);
  bed.control = Does::Keeps;
  begin(1);
  close_file(*files.find(1));
  end();
  EXPECT_TRUE(bed.trail.empty());
  bed.release();
  EXPECT_THAT(bed.trail, ElementsAre("close 1", "close 0", "over"));
}

TEST_F(ClientFilesTest, AFileThatIsOpenedMeanwhileIsClosed) {
  open(0);
  bed.create = Does::Keeps;
  open(1);
  EXPECT_EQ(files.find(1), nullptr);
  end();
  bed.release();
  EXPECT_THAT(bed.trail, ElementsAre("close 1", "close 0", "over"));
}

TEST_F(ClientFilesTest, AnOpenThatIsCancelledLeavesNoFile) {
  open(0);
  bed.create = Does::Parks;
  open(1);
  open(2);
  EXPECT_EQ(files.size(), 3u);
  end();
  EXPECT_THAT(bed.trail, ElementsAre("close 0", "over"));
}

TEST_F(ClientFilesTest, AClientWhoseFileZeroFailsIsOverAtItsEnd) {
  bed.status = Status::InsufficientResources;
  open(0);
  EXPECT_EQ(files.size(), 0u);
  EXPECT_FALSE(files.is_over()) << "its connection has not ended";
  end();
  EXPECT_THAT(bed.trail, ElementsAre("over"));
}

TEST_F(ClientFilesTest, ANumberIsNotUsedAgainSoon) {
  open(0);
  const std::uint32_t number = files.new_number();
  open(number);
  close_file(*files.find(number));
  EXPECT_EQ(files.size(), 1u);
  EXPECT_NE(files.new_number(), number);
  end();
  EXPECT_TRUE(files.is_over());
}

}  // namespace
}  // namespace ib::io::test
