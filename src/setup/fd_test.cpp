// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/fd.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace ib::softib {
namespace {

class LastLines : public testing::Test {
 public:
  ~LastLines() override { ::unlink(path_.c_str()); }

 protected:
  LastLines() {
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
  }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  std::string path_ = "/tmp/softib-test-XXXXXX";
};

TEST_F(LastLines, OfAFileThatHasFewerAreAll) {
  write("a\nb\n");
  EXPECT_EQ(last_lines(path_, 5), "a\nb\n");
}

TEST_F(LastLines, OfALongerFileAreTheLast) {
  write("a\nb\n\nc\nd");
  EXPECT_EQ(last_lines(path_, 1), "d\n");
  EXPECT_EQ(last_lines(path_, 2), "c\nd\n");
  EXPECT_EQ(last_lines(path_, 3), "\nc\nd\n");
}

TEST_F(LastLines, BehindAMarkAreOnlyTheNewOnes) {
  write("old\nnew\n");
  EXPECT_EQ(last_lines(path_, 9, 4), "new\n");
  EXPECT_EQ(last_lines(path_, 9, 8), "");
  EXPECT_EQ(last_lines(path_, 9, 100), "old\nnew\n") << "the log was started anew";
}

TEST_F(LastLines, OfNothingAreNone) {
  EXPECT_EQ(last_lines(path_, 3), "");
  EXPECT_EQ(last_lines("/nonexistent", 3), "");
}

}  // namespace
}  // namespace ib::softib
