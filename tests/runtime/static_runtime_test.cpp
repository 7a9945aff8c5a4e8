// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A library that brings its C++ runtime along works although glibc's own functions for unwinding
// and random numbers are not used: exceptions pass its frames, in threads and children, too.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string library_path;

template <class Function>
Function* function(const char* name) {
  static void* library = ::dlopen(library_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

TEST(StaticRuntime, AnExceptionPassesEachFrame) {
  auto* probe = function<int(int)>("probe_throw");
  ASSERT_NE(probe, nullptr) << ::dlerror();
  EXPECT_EQ(probe(0), 1);
  EXPECT_EQ(probe(50), 51);
}

TEST(StaticRuntime, ThreadsAndChildrenThrowToo) {
  auto* probe = function<int(int)>("probe_throw");
  ASSERT_NE(probe, nullptr);
  std::vector<int> results(8);
  std::vector<std::thread> threads;
  for (int& result : results) threads.emplace_back([&result, probe] { result = probe(10); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(results, std::vector<int>(8, 11));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(probe(5));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 6);
}

TEST(StaticRuntime, RandomNumbersDiffer) {
  auto* probe = function<unsigned()>("probe_random");
  ASSERT_NE(probe, nullptr);
  std::set<unsigned> seen;
  for (int i = 0; i < 16; ++i) seen.insert(probe());
  EXPECT_GT(seen.size(), 14u);
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc > 1) library_path = argv[1];
  return RUN_ALL_TESTS();
}
