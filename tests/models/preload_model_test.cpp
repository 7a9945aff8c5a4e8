// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Words of the preload library that threads of a program read without a lock: the working
// directory, the process that has the table of descriptors, and splices.
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {
int no_atfork(void (*)(), void (*)(), void (*)()) {
  return 0;
}
}  // namespace
#define pthread_atfork no_atfork  // thousands of runs in one process

// One source has it, and the model links no library.
#include "host_abi/preload/versioned_words.h"

#include "host_abi/preload/fd_table.cpp"  // NOLINT(bugprone-suspicious-include)

namespace ib::host_abi::preload {

// Of other sources; nothing here depends on them.
std::size_t devices::index_of(const DeviceKind&) {
  return 0;
}
const DeviceKind* devices::at(std::size_t) {
  return nullptr;
}

}  // namespace ib::host_abi::preload

namespace ib::models {
namespace {

namespace preload = host_abi::preload;
namespace fds = host_abi::preload::fds;

// A change of the working directory while another thread reads it.
TEST(PreloadModel, AWorkingDirectoryIsReadWhole) {
  const auto build = [](Scene& scene, const Weakened& weakened) {
    using Words = preload::VersionedWords<2>;
    auto path = std::make_shared<Words>();
    scene.thread([path] { path->store({1, 1}); });
    scene.thread([path] {
      const Words::Values read = path->load();
      require(read[0] == read[1], "parts of two paths");
    });
    scene.weaken(weakened);
  };
  expect_holds([&](Scene& scene) { build(scene, {}); });
  expect_fails([&](Scene& scene) { build(scene, {nullptr, true}); });
}

// Two threads open their first files at once; each finds that the process is its own.
TEST(PreloadModel, WhoFindsForksWatchedFindsTheProcess) {
  const auto build = [](Scene& scene, const void* weak) {
    fds::forks_watched.store(false);
    fds::owner_pid.store(0);
    for (int i = 0; i < 2; ++i) {
      scene.thread([] {
        fds::watch_forks();
        require(!fds::is_borrowed_memory(), "the table is taken for a parent's");
      });
    }
    if (weak != nullptr) scene.weaken({weak});
  };
  expect_holds([&](Scene& scene) { build(scene, nullptr); });
  expect_fails([&](Scene& scene) { build(scene, &fds::forks_watched); });
}

// A thread splices memory while another opens the first device, whose provider registers.
TEST(PreloadModel, TheProviderHearsOfEachSplice) {
  const auto build = [](Scene& scene, const void* weak) {
    static int reports;
    reports = 0;
    fds::spliced.store(false);
    fds::spliced_hook.store(nullptr);
    scene.thread([] { fds::note_splice(); });
    scene.thread([] {
      softib_preload_hooks hooks{};
      hooks.size = sizeof hooks;
      hooks.spliced = [] { ++reports; };
      require(fds::set_hooks(&hooks) == 0, "the hooks are refused");
    });
    scene.finally([] { require(reports > 0, "the provider has not heard of it"); });
    if (weak != nullptr) scene.weaken({weak});
  };
  expect_holds([&](Scene& scene) { build(scene, nullptr); });
  expect_fails([&](Scene& scene) { build(scene, &fds::spliced_hook); });
}

}  // namespace
}  // namespace ib::models
