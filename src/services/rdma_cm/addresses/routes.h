// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Routes: what the rdma_cm service needs of a subnet: paths between ports, and memberships in
// multicast groups. An answer may come from inside the call that requests it, or later; it does not
// come after the object that stands for the question was destroyed.
#pragma once

#include "platform/executor.h"
#include "services/rdma_cm/addresses/path.h"
#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/command/ucma_layout.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace ib::services::rdma_cm {

class Routes {
 public:
  // A question, or a share in a membership, which ends with it.
  class Share {
   public:
    virtual ~Share() = default;
  };
  // `reason`: in words, if there is an error.
  using OnPath = std::function<void(ucma::Error error, std::string_view reason, const Path& path)>;

  struct Group {
    std::uint16_t mlid = 0;  // 0: on Ethernet
    std::uint32_t qkey = 0;
    std::uint8_t sl = 0;
    std::uint8_t hop_limit = 0;
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;
  };
  // Again after success only with an error: the membership is lost.
  using OnGroup =
      std::function<void(ucma::Error error, std::string_view reason, const Group& group)>;

  virtual ~Routes() = default;
  // May return nullptr if the answer has come already. After `timeout` it is an error; 0: the
  // subnet's own limits hold.
  [[nodiscard]] virtual std::unique_ptr<Share> find_path(const Way& way, std::uint8_t traffic_class,
                                                         Duration timeout, OnPath on_path) = 0;
  // The group comes into being with its first member, who names its partition and its Q_Key.
  [[nodiscard]] virtual std::unique_ptr<Share> join(const fabric::Port& port, std::uint16_t pkey,
                                                    const verbs::Gid& mgid, std::uint32_t qkey,
                                                    bool send_only, OnGroup on_group) = 0;
};

}  // namespace ib::services::rdma_cm
