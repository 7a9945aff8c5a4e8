// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs_fixture.h"

#include "base/sanitizer.h"

#include <cstdlib>
#include <iterator>
#include <ostream>
#include <string_view>

namespace ib::conformance {

namespace {

constexpr const char* kPaths[] = {"adopted", "process_vm", "bounce"};

// Empty: all processes are of this build.
std::string_view peers() {
  const char* const words = std::getenv("SOFTIB_PEERS");
  return words == nullptr ? "" : words;
}

constexpr bool kIsSanitized = IB_THREAD_SANITIZER != 0 || IB_ADDRESS_SANITIZER != 0;

// ThreadSanitizer sees the threads of one process. Of two, one has a thread that works for the
// other only where it bounces. The link layer is nothing to the sanitizers.
std::vector<const char*> paths_of_two(verbs::LinkLayer link_layer) {
  if (kIsSanitized && link_layer == verbs::LinkLayer::Ethernet) return {"adopted"};
  if (IB_THREAD_SANITIZER != 0) return {"adopted", "bounce"};
  return {std::begin(kPaths), std::end(kPaths)};
}

// To AddressSanitizer one process is as good as two where no path differs.
std::vector<const char*> paths_of_one() {
  if (IB_ADDRESS_SANITIZER != 0) return {"adopted"};
  return {std::begin(kPaths), std::end(kPaths)};
}

}  // namespace

std::vector<Setting> infiniband_settings() {
  std::vector<Setting> all;
  for (const char* path : paths_of_one()) {
    if (peers().empty()) all.push_back({path, Where::SameProcess});
  }
  for (const char* path : paths_of_two(verbs::LinkLayer::InfiniBand)) {
    all.push_back({path, Where::OtherProcess});
  }
  return all;
}

std::vector<Setting> every_setting() {
  std::vector<Setting> all = infiniband_settings();
  for (const char* path : paths_of_two(verbs::LinkLayer::Ethernet)) {
    all.push_back({path, Where::OtherProcess, verbs::LinkLayer::Ethernet});
  }
  return all;
}

std::string setting_name(const ::testing::TestParamInfo<Setting>& info) {
  return std::string(info.param.path) +
         (info.param.where == Where::SameProcess ? "_same_process" : "_other_process") +
         (info.param.link_layer == verbs::LinkLayer::Ethernet ? "_ethernet" : "");
}

void PrintTo(const Setting& setting, std::ostream* out) {
  *out << setting.path
       << (setting.where == Where::SameProcess ? ", one process" : ", two processes")
       << (setting.link_layer == verbs::LinkLayer::Ethernet ? ", Ethernet" : "");
}

std::unique_ptr<Side> VerbsTest::new_side(const std::string& name, Where where,
                                          const std::string& node) {
  HostSettings settings;
  settings.socket = TestFabric::shared().socket();
  settings.path = GetParam().path;
  settings.node = node;
  std::string reason;
  const bool is_here = where == Where::SameProcess && peers() != "32-32";
  auto channel =
      is_here ? make_local_channel(settings, reason) : make_process_channel(settings, reason);
  if (!channel) {
    ADD_FAILURE() << "side " << name << " cannot attach: " << reason;
    return nullptr;
  }
  return std::make_unique<Side>(name, std::move(channel));
}

void VerbsTest::SetUp() {
  a = new_side("A", Where::SameProcess);
  ASSERT_NE(a, nullptr);
  b = new_side("B", GetParam().where, is_tree() ? away() : home());
  ASSERT_NE(b, nullptr);
}

void VerbsTest::TearDown() {
  // Without cascade: an object that is busy here was left behind by mistake.
  if (a) (void)a->expect(Command::DestroyAll);
  if (b && b_lives_) (void)b->expect(Command::DestroyAll);
  a.reset();
  b.reset();
  const std::string left = TestFabric::shared().wait_until_empty();
  EXPECT_EQ(left, "") << "softibd still has objects or clients";
}

void VerbsTest::make_pair(QpType type, const Connection& with, QpSpec spec) {
  spec.type = type;
  qa = a->new_qp(spec);
  qb = b->new_qp(spec);
  connect(qa, qb, type, with);
}

}  // namespace ib::conformance
