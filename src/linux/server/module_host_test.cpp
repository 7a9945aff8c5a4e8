// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/server/module_host.h"

#include "linux/server/event_loop.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace ib::os {
namespace {

namespace fs = std::filesystem;

// A shared object that every machine has.
fs::path some_library() {
  void* const handle = ::dlopen("libm.so.6", RTLD_NOW);
  link_map* map = nullptr;
  if (handle == nullptr || ::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return {};
  return map->l_name;
}

class ModuleHostTest : public ::testing::Test {
 protected:
  ModuleHostTest() : file_(fs::temp_directory_path() / ("softib-" + std::to_string(::getpid()))) {
    fs::copy_file(some_library(), file_, fs::copy_options::overwrite_existing);
  }
  ~ModuleHostTest() override { fs::remove(file_); }
  ModuleHostTest(const ModuleHostTest&) = delete;
  ModuleHostTest& operator=(const ModuleHostTest&) = delete;

  std::shared_ptr<platform::Module> open() {
    std::shared_ptr<platform::Module> opened;
    host_.open("name", file_, [&](const auto& module, const std::string& why) {
      if (module) opened = *module;
      reason_ = why;
      loop_.stop();
    });
    loop_.run();
    return opened;
  }
  void write(const std::string& text) { std::ofstream(file_) << text; }
  const fs::path& file() const { return file_; }
  const std::string& reason() const { return reason_; }

 private:
  EventLoop loop_;
  DlopenHost host_{loop_};
  fs::path file_;
  std::string reason_;
};

TEST_F(ModuleHostTest, AFileMayChangeWhileItsCodeIsLoaded) {
  const auto module = open();
  ASSERT_NE(module, nullptr) << reason();
  write("");  // in place, as cp does it
  auto* const floor = reinterpret_cast<double (*)(double)>(module->symbol("floor"));
  ASSERT_NE(floor, nullptr);
  EXPECT_EQ(floor(2.5), 2.0);
  EXPECT_EQ(module->symbol("nothing_of_this_name"), nullptr);
}

TEST_F(ModuleHostTest, AFailureNamesTheFile) {
  write("");
  EXPECT_EQ(open(), nullptr);
  EXPECT_NE(reason().find(file().string() + ": file too short"), std::string::npos) << reason();
}

TEST_F(ModuleHostTest, AMissingFileHasItsReason) {
  fs::remove(file());
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(reason(), "cannot open " + file().string() + ": No such file or directory");
}

}  // namespace
}  // namespace ib::os
