// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/defaults.h"

#include "softib/launch/environment_edit.h"

#include <gtest/gtest.h>

#include <string>

namespace ib::softib {
namespace {

std::string value(const Environment& environment, const char* name) {
  const std::string* found = find(environment, name);
  return found == nullptr ? "(unset)" : *found;
}

Environment with_defaults(Environment base) {
  add_defaults(base);
  return base;
}

Environment without_defaults(Environment base) {
  remove_defaults(base);
  return base;
}

// The user's value in the list that `softib doctor` shows; "(ours)" if softib supplies its own.
std::string shown(const Environment& environment, const std::string& variable) {
  for (const SuppliedSetting& it : supplied_settings(environment)) {
    if (variable == it.setting->variable) return it.user.empty() ? "(ours)" : it.user;
  }
  return "(not in the table)";
}

TEST(Defaults, AddressSanitizerMayBeTheSecondLibrary) {
  EXPECT_EQ(value(with_defaults({}), "ASAN_OPTIONS"), "verify_asan_link_order=0");
  const Environment base{{"ASAN_OPTIONS", "detect_leaks=0"}};
  const Environment once = with_defaults(base);
  EXPECT_EQ(value(once, "ASAN_OPTIONS"), "verify_asan_link_order=0:detect_leaks=0");
  EXPECT_EQ(with_defaults(once), once);
  EXPECT_EQ(without_defaults(once), base);
  const Environment chosen{{"ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=1"}};
  EXPECT_EQ(value(with_defaults(chosen), "ASAN_OPTIONS"), value(chosen, "ASAN_OPTIONS"));
  EXPECT_EQ(shown(chosen, "ASAN_OPTIONS"), "verify_asan_link_order=1");
}

TEST(Defaults, ThreadsOfUcxTakeTurnsUnlessTheUserSaysOtherwise) {
  const Environment once = with_defaults({});
  EXPECT_EQ(value(once, "UCX_USE_MT_MUTEX"), "y");
  EXPECT_EQ(without_defaults(once), Environment{});
  const Environment chosen{{"UCX_USE_MT_MUTEX", "n"}};
  EXPECT_EQ(value(with_defaults(chosen), "UCX_USE_MT_MUTEX"), "n");
  EXPECT_EQ(without_defaults(chosen), chosen);
  EXPECT_EQ(shown(chosen, "UCX_USE_MT_MUTEX"), "n");
}

// OpenMPI's MPI_Send is UCX's ucp_tag_send_nbr().
TEST(Defaults, BlockingSendsOfUcxGoWithoutCopiesUnlessTheUserSaysOtherwise) {
  const Environment once = with_defaults({});
  EXPECT_EQ(value(once, "UCX_RNDV_SEND_NBR_THRESH"), "24k");
  const Environment chosen{{"UCX_RNDV_SEND_NBR_THRESH", "256k"}};
  EXPECT_EQ(value(with_defaults(chosen), "UCX_RNDV_SEND_NBR_THRESH"), "256k");
  EXPECT_EQ(without_defaults(chosen), chosen);
  EXPECT_EQ(shown(chosen, "UCX_RNDV_SEND_NBR_THRESH"), "256k");
}

TEST(Defaults, AnEmptyValueIsTheUsersToo) {
  const Environment chosen{{"UCX_USE_MT_MUTEX", ""}};
  EXPECT_EQ(value(with_defaults(chosen), "UCX_USE_MT_MUTEX"), "");
  EXPECT_EQ(shown(chosen, "UCX_USE_MT_MUTEX"), "(empty)");
}

TEST(Defaults, CopiesOfTheSocketSwitchAvoidASlowInstruction) {
  const Environment base{{"SOFTIB_SOCKETS", "127.77.0.0/16"}, {"GLIBC_TUNABLES", "glibc.x=1"}};
  if (!copies_unevenly()) {
    EXPECT_EQ(value(with_defaults(base), "GLIBC_TUNABLES"), "glibc.x=1");
    EXPECT_EQ(shown(base, "GLIBC_TUNABLES"), "(not in the table)");
    return;
  }
  const Environment once = with_defaults(base);
  EXPECT_EQ(value(once, "GLIBC_TUNABLES"),
            "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.x=1");
  EXPECT_EQ(with_defaults(once), once);
  EXPECT_EQ(without_defaults(once), base);
  Environment chosen = base;
  set(chosen, "GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=4096");
  EXPECT_EQ(with_defaults(chosen), with_defaults(with_defaults(chosen)));
  EXPECT_EQ(value(with_defaults(chosen), "GLIBC_TUNABLES"), value(chosen, "GLIBC_TUNABLES"));
  EXPECT_EQ(shown(chosen, "GLIBC_TUNABLES"), "glibc.cpu.x86_rep_movsb_threshold=4096");
  EXPECT_EQ(value(with_defaults({}), "GLIBC_TUNABLES"), "(unset)");
}

TEST(Defaults, EachRowIsListedAndComesAndGoes) {
  const Environment base{{"PATH", "/bin"}};
  const Environment once = with_defaults(base);
  EXPECT_EQ(with_defaults(once), once);
  EXPECT_EQ(without_defaults(once), base);
  for (const Default& it : run_defaults()) {
    SCOPED_TRACE(it.variable);
    if (it.applies != nullptr && !it.applies(base)) continue;
    const bool by_file = it.file_of_user != nullptr && !it.file_of_user(base).empty();
    EXPECT_EQ(value(once, it.variable), by_file ? "(unset)" : it.value);
    EXPECT_EQ(shown(once, it.variable), by_file ? it.file_of_user(base) : "(ours)");
    EXPECT_STRNE(it.program, "");
    EXPECT_STRNE(it.reason, "");
  }
}

}  // namespace
}  // namespace ib::softib
