// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DirectRoutes: paths that follow from the fabric, and a LID for each multicast group for as long
// as it has members. For tests of the service: all answers come at once.
#pragma once

#include "services/rdma_cm/addresses/routes.h"

#include <map>

namespace ib::services::rdma_cm {

class DirectRoutes final : public Routes {
 public:
  std::unique_ptr<Share> find_path(const Way& way, std::uint8_t traffic_class, Duration,
                                   OnPath on_path) override {
    const auto path = rdma_cm::find_path(way, traffic_class);
    on_path(path ? ucma::Error::None : ucma::Error::HostUnreachable, "", path.value_or(Path{}));
    return nullptr;
  }
  std::unique_ptr<Share> join(const fabric::Port& port, std::uint16_t, const verbs::Gid& mgid,
                              std::uint32_t qkey, bool, OnGroup on_group) override {
    Group group;
    group.qkey = qkey;
    if (!port.is_ethernet()) {
      group.mlid = mlids_.try_emplace(mgid, static_cast<std::uint16_t>(0xc000 + mlids_.size()))
                       .first->second;
    }
    on_group(ucma::Error::None, "", group);
    return nullptr;
  }

 private:
  std::map<verbs::Gid, std::uint16_t> mlids_;
};

}  // namespace ib::services::rdma_cm
