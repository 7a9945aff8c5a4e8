// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SaRoutes: on InfiniBand what the subnet administrator says; on Ethernet, which has none, what
// follows from the addresses.
#pragma once

#include "services/rdma_cm/addresses/routes.h"
#include "services/sa/sa_client.h"

namespace ib::services::rdma_cm {

class SaRoutes final : public Routes {
 public:
  SaRoutes(SaClient& sa, platform::Executor& executor) : sa_(sa), executor_(executor) {}

  std::unique_ptr<Share> find_path(const Way& way, std::uint8_t traffic_class, Duration timeout,
                                   OnPath on_path) override;
  std::unique_ptr<Share> join(const fabric::Port& port, std::uint16_t pkey, const verbs::Gid& mgid,
                              std::uint32_t qkey, bool send_only, OnGroup on_group) override;

 private:
  SaClient& sa_;
  platform::Executor& executor_;
};

}  // namespace ib::services::rdma_cm
