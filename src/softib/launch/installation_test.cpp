// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/installation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ib::softib {
namespace {

namespace fs = std::filesystem;

class InstallationTest : public ::testing::Test {
 protected:
  InstallationTest() { fs::create_directories(prefix_ / "bin"); }
  ~InstallationTest() override { fs::remove_all(prefix_); }
  InstallationTest(const InstallationTest&) = delete;
  InstallationTest& operator=(const InstallationTest&) = delete;

  void add(const std::string& folder) {
    fs::create_directories(prefix_ / folder);
    std::ofstream(prefix_ / folder / kPreloadName) << "x";
  }
  Installation find() const { return find_installation((prefix_ / "bin").string()); }
  std::string in_prefix(const std::string& folder) const { return (prefix_ / folder).string(); }

  const fs::path prefix_ =
      fs::temp_directory_path() / ("softib-prefix-" + std::to_string(::getpid()));
};

TEST_F(InstallationTest, TheLoaderSaysWhereItsLibrariesAre) {
  EXPECT_TRUE(loader_library_folder().starts_with("lib")) << loader_library_folder();
}

TEST_F(InstallationTest, LibrariesOfOneWordSizeAreNamedAsTheyAre) {
  EXPECT_EQ(find().lib_dir, "");
  add(loader_library_folder() + "/softib");
  EXPECT_EQ(find().lib_dir, in_prefix(loader_library_folder() + "/softib"));
  EXPECT_EQ(find().loader_dir, find().lib_dir);
}

TEST_F(InstallationTest, LibrariesOfBothAreNamedByTheLoadersFolder) {
  const std::string folder = loader_library_folder();
  const std::string other = folder == "lib64" ? "lib" : "lib/i386-linux-gnu";
  if (folder != "lib64" && folder != "lib/x86_64-linux-gnu") GTEST_SKIP() << "only in " << folder;
  add(folder + "/softib");
  add(other + "/softib");
  EXPECT_EQ(find().lib_dir, in_prefix(folder + "/softib"));
  EXPECT_EQ(find().preload(), in_prefix("$LIB/softib/") + kPreloadName);
  EXPECT_EQ(find().lib_dir_32, in_prefix(other + "/softib"));
}

// As the tar.gz has them, on a distribution of the other family.
TEST_F(InstallationTest, TheLoadersFolderMayBeALink) {
  const std::string folder = loader_library_folder();
  const std::string other = folder_of_32_bit(folder);
  if (other.empty()) GTEST_SKIP() << "only on x86-64";
  const std::string found = folder == "lib64" ? "lib/x86_64-linux-gnu/softib" : "lib64/softib";
  add(found);
  add(other + "/softib");
  fs::create_directories(prefix_ / folder);
  fs::remove(prefix_ / folder / "softib");
  fs::create_directory_symlink(prefix_ / found, prefix_ / folder / "softib");
  EXPECT_EQ(find().preload(), in_prefix("$LIB/softib/") + kPreloadName);
}

TEST_F(InstallationTest, ABuildTreeHasOneFolder) {
  add("lib");
  add("lib/i386-linux-gnu/softib");
  EXPECT_EQ(find().loader_dir, in_prefix("lib"));
  EXPECT_EQ(find().lib_dir_32, "");
}

}  // namespace
}  // namespace ib::softib
