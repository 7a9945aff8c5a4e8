// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// VerbsTest: two clients, A in this process and B in this or another one, over one memory path;
// at the end everything can be destroyed and softibd has no object left.
//
// SOFTIB_PEERS=64-32: there is always another process, a 32-bit one. 32-32: A is in one, too.
// SOFTIB_TREE: B is on another node, behind switches (fabric.h).
#pragma once

#include "fabric.h"
#include "side.h"

#include <gtest/gtest.h>

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

namespace ib::conformance {

enum class Where { SameProcess, OtherProcess };

struct Setting {
  const char* path;  // SOFTIB_MEMORY_PATH
  Where where;
  verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand;
};
std::vector<Setting> infiniband_settings();
std::vector<Setting> every_setting();  // those, and each path with two processes over Ethernet
std::string setting_name(const ::testing::TestParamInfo<Setting>& info);
void PrintTo(const Setting& setting, std::ostream* out);

class VerbsTest : public ::testing::TestWithParam<Setting> {
 protected:
  void SetUp() override;
  void TearDown() override;

  static bool is_ethernet() { return GetParam().link_layer == verbs::LinkLayer::Ethernet; }
  // The node of both sides, and one that is joined to it; in a tree that of B.
  static const char* home() { return is_ethernet() ? kNorth : kEast; }
  static const char* away() { return is_ethernet() ? kSouth : kWest; }
  std::unique_ptr<Side> new_side(const std::string& name, Where where,
                                 const std::string& node = home());
  // Kills B without cleanup.
  void kill_b() {
    b->channel().kill();
    b_lives_ = false;
  }
  // A pair of connected queue pairs, A's and B's.
  void make_pair(QpType type, const Connection& with = {}, QpSpec spec = {});
  std::unique_ptr<Side> a;
  std::unique_ptr<Side> b;
  Qp qa;
  Qp qb;

 private:
  bool b_lives_ = true;
};

#define IB_INFINIBAND_SETTINGS(suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(Verbs, suite,                                                  \
                           ::testing::ValuesIn(::ib::conformance::infiniband_settings()), \
                           ::ib::conformance::setting_name)
#define IB_EVERY_SETTING(suite)                                                                   \
  INSTANTIATE_TEST_SUITE_P(Verbs, suite, ::testing::ValuesIn(::ib::conformance::every_setting()), \
                           ::ib::conformance::setting_name)

}  // namespace ib::conformance
