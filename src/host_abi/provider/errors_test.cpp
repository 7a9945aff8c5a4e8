// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "host_abi/provider/errors.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace ib::host_abi {
namespace {

TEST(Errors, EveryStatusHasAnErrno) {
  for (std::uint32_t i = 0; i < kStatusCount; ++i) {
    const auto status = static_cast<Status>(i);
    const int error = errno_of(status);
    EXPECT_EQ(error == 0, status == Status::Ok) << status_text(status);
    EXPECT_GE(error, 0) << status_text(status);
  }
}

TEST(Errors, AStatusFromAnotherVersionIsAnError) {
  EXPECT_EQ(errno_of(static_cast<Status>(kStatusCount)), EIO);
}

TEST(Errors, WhatApplicationsTestForIsRight) {
  EXPECT_EQ(errno_of(Status::DeviceBusy), EBUSY);
  EXPECT_EQ(errno_of(Status::TooManyHandles), EMFILE);
  EXPECT_EQ(errno_of(Status::NotSupported), EOPNOTSUPP);
  EXPECT_EQ(errno_of(Status::InvalidState), EINVAL);
  EXPECT_EQ(errno_of(Status::LimitExceeded), EINVAL);
  EXPECT_EQ(errno_of(Status::NotFound), ENOENT);
  EXPECT_EQ(errno_of_posting(Status::LimitExceeded), ENOMEM);
  EXPECT_EQ(errno_of_posting(Status::InvalidState), EINVAL);
}

TEST(Errors, ASystemCallsReasonStays) {
  for (const int error : {EMFILE, ENOMEM, EIO}) EXPECT_EQ(errno_of(status_of(error)), error);
  EXPECT_EQ(status_of(ENOENT), Status::DeviceRemoved) << "the HCA's files are gone";
}

TEST(Errors, FailSetsErrnoAndReturnsIt) {
  errno = 0;
  EXPECT_EQ(fail("test", Status::DeviceBusy), EBUSY);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(fail_null("test", EPERM, "because"), nullptr);
  EXPECT_EQ(errno, EPERM);
}

TEST(Errors, NothingIsThrownIntoTheCaller) {
  EXPECT_EQ(guarded_int("test", []() -> int { throw std::bad_alloc(); }), ENOMEM);
  EXPECT_EQ(guarded("test", 7, []() -> int { throw std::runtime_error("x"); }), 7);
  EXPECT_EQ(errno, EIO);
}

TEST(Errors, SuccessLeavesErrnoAlone) {
  int object = 0;
  const auto with = [](int error, auto result) {
    return [error, result] {
      errno = error;
      return result;
    };
  };
  errno = ENODEV;
  EXPECT_EQ(guarded_int("test", with(EAGAIN, 0)), 0);
  EXPECT_EQ(guarded("test", static_cast<int*>(nullptr), with(EAGAIN, &object)), &object);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(guarded_int("test", with(EPERM, EPERM)), EPERM);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(guarded("test", static_cast<int*>(nullptr), with(ENOMEM, static_cast<int*>(nullptr))),
            nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

}  // namespace
}  // namespace ib::host_abi
