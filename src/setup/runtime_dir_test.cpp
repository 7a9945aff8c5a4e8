// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/runtime_dir.h"

#include "setup/cli_error.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace ib::softib {
namespace {

namespace fs = std::filesystem;

class RuntimeDir : public testing::Test {
 public:
  ~RuntimeDir() override { fs::remove_all(base_); }

 protected:
  RuntimeDir() {
    EXPECT_NE(::mkdtemp(base_.data()), nullptr);
    here_.tmp_dir = base_;
    here_.uid = ::geteuid();
  }
  // Returns the error's text; "" if there is none.
  static std::string complaint(const std::string& path, uid_t uid) {
    try {
      prepare_runtime_dir(path, uid);
    } catch (const CliError& error) {
      EXPECT_EQ(error.code(), Exit::Permission);
      return error.what();
    }
    return {};
  }

  std::string base_ = "/tmp/softib-test-XXXXXX";
  Surroundings here_;
};

TEST_F(RuntimeDir, WithoutAnyVariableItIsInTmp) {
  EXPECT_EQ(choose_runtime_dir(here_), base_ + "/softib-" + std::to_string(here_.uid));
}

TEST_F(RuntimeDir, AUsableSessionDirectoryIsPreferred) {
  here_.xdg_dir = base_;
  EXPECT_EQ(choose_runtime_dir(here_), base_ + "/softib");
}

TEST_F(RuntimeDir, ASessionDirectoryOfAnotherUserIsIgnored) {
  here_.xdg_dir = base_;
  here_.uid += 1;
  EXPECT_EQ(choose_runtime_dir(here_), base_ + "/softib-" + std::to_string(here_.uid));
  here_.xdg_dir = base_ + "/missing";
  here_.uid -= 1;
  EXPECT_EQ(choose_runtime_dir(here_), base_ + "/softib-" + std::to_string(here_.uid));
  here_.xdg_dir = "relative";
  EXPECT_EQ(choose_runtime_dir(here_), base_ + "/softib-" + std::to_string(here_.uid));
}

TEST_F(RuntimeDir, TheUsersOwnChoiceWinsAndBecomesAbsolute) {
  here_.xdg_dir = base_;
  here_.softib_dir = "/a/b/../c//";
  EXPECT_EQ(choose_runtime_dir(here_), "/a/c");
  here_.softib_dir = "here";
  EXPECT_EQ(choose_runtime_dir(here_), fs::current_path().string() + "/here");
}

TEST_F(RuntimeDir, IsMadeForUsAlone) {
  const std::string path = base_ + "/new";
  EXPECT_EQ(complaint(path, here_.uid), "");
  struct stat s {};
  ASSERT_EQ(::stat(path.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777u, 0700u);
  EXPECT_EQ(complaint(path, here_.uid), "") << "and may be there";
}

TEST_F(RuntimeDir, IsRefusedIfItIsALinkOrAFile) {
  fs::create_directory_symlink(base_, base_ + "/link");
  EXPECT_NE(complaint(base_ + "/link", here_.uid).find("symbolic link"), std::string::npos);
  ::close(::creat((base_ + "/file").c_str(), 0600));
  EXPECT_NE(complaint(base_ + "/file", here_.uid).find("not a directory"), std::string::npos);
}

TEST_F(RuntimeDir, IsRefusedIfItIsNotOursAlone) {
  EXPECT_NE(complaint(base_, here_.uid + 1).find("belongs to uid"), std::string::npos);
  ::chmod(base_.c_str(), 0770);
  EXPECT_NE(complaint(base_, here_.uid).find("mode 0770"), std::string::npos);
}

TEST_F(RuntimeDir, IsRefusedIfItsParentIsMissing) {
  EXPECT_NE(complaint(base_ + "/a/b", here_.uid).find("No such file"), std::string::npos);
}

TEST_F(RuntimeDir, FilesOfAFabricLieInIt) {
  const FabricFiles files = fabric_files("/r", "lab-2");
  EXPECT_EQ(files.socket, "/r/lab-2.sock");
  EXPECT_EQ(files.lock, "/r/lab-2.lock");
  EXPECT_EQ(files.log, "/r/lab-2.log");
}

TEST_F(RuntimeDir, BadFabricNamesAreRefused) {
  for (const char* name : {"", ".", "..", "../x", "a/b", "-x", "a b", "\xc3\xa4"}) {
    EXPECT_THROW(fabric_files("/r", name), CliError) << name;
  }
  EXPECT_THROW(fabric_files("/r", std::string(33, 'x')), CliError);
}

TEST_F(RuntimeDir, ASocketPathThatIsTooLongIsRefusedWithItsLength) {
  EXPECT_NO_THROW(fabric_files("/" + std::string(99, 'x'), "a"));
  try {
    fabric_files("/" + std::string(100, 'x'), "a");
    FAIL();
  } catch (const CliError& error) {
    EXPECT_NE(std::string(error.what()).find("has 108 characters"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace ib::softib
