// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "verbs/qp_state.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <utility>

namespace ib::verbs {
namespace {

using enum QpState;
using namespace qp_attr;

constexpr auto kStates = {Reset, Init, Rtr, Rts, Sqd, Sqe, Error};
constexpr auto kTypes = {QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcSend, QpType::XrcRecv};

TEST(QpState, TransitionsAreThoseOfTheStateDiagram) {
  const std::set<std::pair<QpState, QpState>> legal = {
      {Reset, Reset}, {Reset, Init}, {Init, Init}, {Init, Rtr},    {Rtr, Rts},    {Rts, Rts},
      {Rts, Sqd},     {Sqd, Rts},    {Sqd, Sqd},   {Sqe, Rts},     {Init, Reset}, {Rtr, Reset},
      {Rts, Reset},   {Sqd, Reset},  {Sqe, Reset}, {Error, Reset}, {Init, Error}, {Rtr, Error},
      {Rts, Error},   {Sqd, Error},  {Sqe, Error}, {Error, Error}};
  for (const QpType type : kTypes) {
    for (const QpState from : kStates) {
      for (const QpState to : kStates) {
        EXPECT_EQ(qp_transition(type, from, to).legal, legal.contains({from, to}))
            << qp_type_name(type) << ' ' << qp_state_name(from) << ' ' << qp_state_name(to);
      }
    }
  }
}

TEST(QpState, RequiredAttributesAreNeverOptionalToo) {
  for (const QpType type : kTypes) {
    for (const QpState from : kStates) {
      for (const QpState to : kStates) {
        const QpTransition rule = qp_transition(type, from, to);
        EXPECT_EQ(rule.required & rule.optional, 0u);
        EXPECT_EQ((rule.required | rule.optional) & (kState | kCap | kRateLimit), 0u);
      }
    }
  }
}

// The optional attributes, spelled out; the required ones are static_asserts beside the table.
TEST(QpState, OptionalAttributes) {
  const auto optional = [](QpType type, QpState from, QpState to) {
    return qp_transition(type, from, to).optional;
  };
  EXPECT_EQ(optional(QpType::Rc, Init, Init), kPkeyIndex | kPort | kAccessFlags);
  EXPECT_EQ(optional(QpType::Rc, Init, Rtr), kAltPath | kAccessFlags | kPkeyIndex);
  EXPECT_EQ(optional(QpType::Ud, Init, Rtr), kPkeyIndex | kQkey);
  EXPECT_EQ(optional(QpType::Rc, Rtr, Rts),
            kCurState | kAltPath | kAccessFlags | kMinRnrTimer | kPathMigState);
  EXPECT_EQ(optional(QpType::XrcSend, Rtr, Rts),
            kCurState | kAltPath | kAccessFlags | kPathMigState);
  EXPECT_EQ(optional(QpType::Ud, Rts, Rts), kCurState | kQkey);
  EXPECT_EQ(optional(QpType::Uc, Rts, Sqd), kEnSqdAsyncNotify);
  EXPECT_EQ(optional(QpType::Ud, Sqd, Sqd), kPkeyIndex | kQkey);
  EXPECT_EQ(optional(QpType::Uc, Sqd, Sqd),
            kAv | kAltPath | kAccessFlags | kPkeyIndex | kPathMigState);
  EXPECT_EQ(optional(QpType::Rc, Sqd, Sqd),
            kPort | kAv | kTimeout | kRetryCnt | kRnrRetry | kMaxQpRdAtomic | kMaxDestRdAtomic |
                kAltPath | kAccessFlags | kPkeyIndex | kMinRnrTimer | kPathMigState);
  EXPECT_EQ(optional(QpType::XrcRecv, Sqd, Sqd), kPort | kAv | kTimeout | kMaxDestRdAtomic |
                                                     kAltPath | kAccessFlags | kPkeyIndex |
                                                     kMinRnrTimer | kPathMigState);
  EXPECT_EQ(optional(QpType::Ud, Sqe, Rts), kCurState | kQkey);
  EXPECT_EQ(optional(QpType::Uc, Sqe, Rts), kCurState | kAccessFlags);
  EXPECT_EQ(optional(QpType::XrcSend, Sqe, Rts), 0u);
}

TEST(QpState, ARefusalNamesTheAttributes) {
  const std::uint32_t mask = kState | kAv | kPathMtu | kRqPsn | kMaxDestRdAtomic | kMinRnrTimer;
  const QpModifyCheck missing = check_qp_modify(QpType::Rc, Init, Rtr, mask);
  EXPECT_EQ(missing.verdict, QpModifyVerdict::MissingAttributes);
  EXPECT_EQ(explain_qp_modify(QpType::Rc, Init, Rtr, missing),
            "RC queue pair from INIT to RTR: the mask also needs IBV_QP_DEST_QPN");

  const QpModifyCheck extra = check_qp_modify(QpType::Rc, Init, Rtr, mask | kDestQpn | kSqPsn);
  EXPECT_EQ(extra.verdict, QpModifyVerdict::ExtraAttributes);
  EXPECT_EQ(extra.attributes, kSqPsn);

  const QpModifyCheck none = check_qp_modify(QpType::Rc, Reset, Rtr, kState);
  EXPECT_EQ(none.verdict, QpModifyVerdict::NoSuchTransition);
  EXPECT_EQ(check_qp_modify(QpType::Rc, Init, Rtr, mask | kDestQpn).verdict, QpModifyVerdict::Ok);
}

TEST(QpState, TheCurrentStateMayBeNamedOnlyWhereItMayChangeByItself) {
  EXPECT_EQ(check_qp_modify(QpType::Rc, Rts, Rts, kCurState).verdict, QpModifyVerdict::Ok);
  EXPECT_EQ(check_qp_modify(QpType::Rc, Init, Init, kCurState).verdict,
            QpModifyVerdict::ExtraAttributes);
}

TEST(QpState, UnknownBitsAreNamedToo) {
  EXPECT_EQ(qp_attr_names(kAv | (1u << 30)), "IBV_QP_AV, bit 30");
}

}  // namespace
}  // namespace ib::verbs
