// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two nodes of a softibd in this process, with the verifier on, and a program with services at
// each.
#pragma once

#include "fabric.h"
#include "services/service_client.h"
#include "softibd/in_process_daemon.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace ib::conformance {

class ServicesFixture : public testing::Test {
 protected:
  void SetUp() override {
    softib::DaemonOptions options;
    options.keep = true;
    options.shape.nodes = {kEast, kWest};
    options.verify = softib::Verify::On;
    std::string reason;
    auto daemon = softib::InProcessDaemon::start(options, reason);
    ASSERT_TRUE(daemon) << reason;
    daemon_ = *std::move(daemon);
    socket_ = daemon_->socket_path();
    east_ = start(kEast);
    west_ = start(kWest);
    ASSERT_TRUE(east_ != nullptr && west_ != nullptr);
  }

  HostSettings settings(const char* node) {
    HostSettings settings;
    settings.socket = socket_;
    settings.node = node;
    return settings;
  }
  std::unique_ptr<ServiceClient> start(const char* node) {
    std::string reason;
    auto client = ServiceClient::start(settings(node), reason);
    EXPECT_NE(client, nullptr) << reason;
    return client;
  }

  std::string socket_;
  std::unique_ptr<softib::InProcessDaemon> daemon_;
  std::unique_ptr<ServiceClient> east_;
  std::unique_ptr<ServiceClient> west_;
};

}  // namespace ib::conformance
